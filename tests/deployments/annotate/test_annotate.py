"""The annotation page: who is asked what, what is kept, what is exported and imported."""

from __future__ import annotations

import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor

import pytest

from cppcl.curriculum.annotation.answered_pairs import pairs_from_answers
from cppcl.curriculum.annotation.answers import read_answers
from tests.deployments.annotate.annotating import (
    JSON,
    SIDES,
    answer,
    answer_all,
    ask,
    begin,
    exported,
    pair_of,
)


class TestAsking:
    def test_the_start_page_has_the_instruction_and_what_is_asked(self, browser, annotated):
        page = browser.get("/").text
        assert "easy ones have more details" in page
        assert "little clutter" in page
        assert f"<td>{len(annotated.modalities['sketch'].proposals)}</td>" in page
        assert '<label for="annotator">' in page

    def test_proposals_come_first_in_their_order_then_what_is_least_sure(self, browser, annotated):
        side = annotated.modalities["sketch"]
        asked = answer_all(browser, "Ada", lambda shown: "a")
        ids = [sample.id for sample in side.samples]
        pairs = [frozenset({ids[a], ids[b]}) for a, b in side.proposals]
        found = [pair_of(shown) for shown in asked]
        assert found[: len(pairs)] == pairs
        assert len(set(found)) == len(found) > len(pairs)
        # Classes of 4: the three neighbours in the order of easiness are all there are.
        assert len(found) == 3 * 6
        labels = {sample.id: sample.label for sample in side.samples}
        assert all(len({labels[name] for name in pair}) == 1 for pair in found)

    def test_a_reload_shows_the_same_pair(self, browser):
        first = ask(browser, "Ada")
        assert ask(browser, "Ada") == first
        assert first is not None
        assert ask(browser, "Ada", "image") != first

    def test_two_annotators_are_not_shown_the_same_pair(self, browser):
        mine, theirs = begin(browser, "Ada"), begin(browser, "Bo")
        assert pair_of(mine) != pair_of(theirs)
        for _ in range(3):
            answer(browser, "Ada", mine)
            mine = ask(browser, "Ada")
            assert pair_of(mine) != pair_of(theirs)

    def test_a_pair_that_someone_left_is_asked_again(self, browser, session):
        left = begin(browser, "Ada")
        session.now = 299.0
        assert pair_of(begin(browser, "Bo")) != pair_of(left)
        session.now = 301.0
        assert ask(browser, "Cy") is not None
        assert pair_of(ask(browser, "Cy")) == pair_of(left)

    def test_every_fifth_question_is_one_that_someone_answered(self, browser):
        first = ask(browser, "Ada")
        answer(browser, "Ada", first)
        found = []
        for _ in range(5):
            shown = ask(browser, "Bo")
            found.append(pair_of(shown))
            answer(browser, "Bo", shown)
        assert found[4] == pair_of(first)
        assert pair_of(first) not in found[:4]

    def test_sides_are_drawn_for_every_annotator(self, browser, annotated):
        rows = {sample.id: k for k, sample in enumerate(annotated.modalities["sketch"].samples)}
        lower = []
        for number in range(40):
            shown = ask(browser, f"annotator {number}")
            lower.append(rows[shown["left"]] < rows[shown["right"]])
            answer(browser, f"annotator {number}", shown)
        assert 8 < sum(lower) < 32

    def test_agreement_and_times_are_shown(self, browser):
        answer_all(browser, "Ada", lambda shown: "a" if shown["left"] < shown["right"] else "b")
        answer_all(browser, "Bo", lambda shown: "a" if shown["left"] < shown["right"] else "b")
        page = browser.get("/").text
        assert "<td>1.00</td>" in page
        assert page.count("<td>1.5 s</td>") == 2
        done = browser.get("/ask", params={"annotator": "Ada", "modality": "sketch"}).text
        assert "No pair is left to ask you about" in done

    def test_without_the_script_an_answer_leads_to_the_next_page(self, browser):
        shown = ask(browser, "Ada L")
        form = {"annotator": "Ada L", "modality": "sketch", "easier": "skip", "seconds": ""}
        response = browser.post("/answer", data=form | shown, status=303)
        assert response.headers["location"] == "/ask?annotator=Ada+L&modality=sketch"
        assert ask(browser, "Ada L") != shown


class TestKeeping:
    def test_an_answer_is_kept_as_it_was_given(self, browser):
        shown = ask(browser, "Ada")
        state = answer(browser, "Ada", shown, "b").json()
        assert state["progress"] == {
            "proposals": state["progress"]["proposals"],
            "answered": 1,
            "mine": 1,
            "seconds": 1.5,
            "alpha": None,
            "shared": 0,
        }
        (row,) = exported(browser)
        assert row.pop("answered_at").endswith("+00:00")
        assert row == {
            "sample_a": shown["left"],
            "sample_b": shown["right"],
            "easier": "b",
            "annotator": "Ada",
            "seconds": "1.5",
        }

    def test_the_same_answer_twice_is_one_and_another_is_refused(self, browser):
        shown = ask(browser, "Ada")
        assert answer(browser, "Ada", shown, "a").status_code == 200
        assert answer(browser, "Ada", shown, "a").status_code == 200
        turned = {"left": shown["right"], "right": shown["left"]}
        assert answer(browser, "Ada", turned, "b").status_code == 200
        for other in (answer(browser, "Ada", turned, "a"), answer(browser, "Ada", shown, "skip")):
            assert other.status_code == 409
            assert "answered" in other.json()["error"]
        assert answer(browser, "Bo", shown, "b").status_code == 200
        assert [row["easier"] for row in exported(browser)] == ["a", "b"]

    def test_undo_takes_back_one_after_the_other_and_asks_again(self, browser):
        asked = []
        for easier in ("a", "skip", "b"):
            shown = ask(browser, "Ada")
            asked.append(shown)
            answer(browser, "Ada", shown, easier)
        answer(browser, "Bo", ask(browser, "Bo"))
        who = {"annotator": "Ada", "modality": "sketch"}
        for shown in reversed(asked):
            found = browser.post("/undo", data=who, headers=JSON).json()["question"]
            assert {side: found[side]["id"] for side in SIDES} == shown
            assert ask(browser, "Ada") == shown
        assert browser.post("/undo", data=who, headers=JSON).status_code == 409
        assert [row["annotator"] for row in exported(browser)] == ["Bo"]
        # Of images nothing was answered.
        image = who | {"modality": "image", "annotator": "Bo"}
        assert browser.post("/undo", data=image).status_code == 409

    def test_many_at_once_lose_nothing(self, session, database):
        def work(annotator: str) -> list[tuple[str, str, str]]:
            given = []
            for number in range(12):
                shown = session.question(annotator, "sketch")
                easier = ("a", "b", "skip")[number % 3]
                session.answer(annotator, "sketch", shown.left.id, shown.right.id, easier, None)
                given.append((shown.left.id, shown.right.id, easier))
            return given

        names = [f"annotator {number}" for number in range(6)]
        with ThreadPoolExecutor(6) as pool:
            given = dict(zip(names, pool.map(work, names), strict=True))
        for name in names:
            kept = [a for a in database.answers() if a.annotator == name]
            assert [(a.sample_a, a.sample_b, a.easier) for a in kept] == given[name]

    @pytest.mark.parametrize("kind", ["csv", "jsonl"])
    def test_curricula_read_what_is_exported(self, kind, browser, annotated, tmp_path):
        answer_all(browser, "Ada", lambda shown: "a")
        shown = ask(browser, "Ada", "image")
        answer(browser, "Ada", shown, "b", modality="image")
        path = tmp_path / f"answers.{kind}"
        for query, n in (({}, 19), ({"modality": "sketch"}, 18), ({"modality": "image"}, 1)):
            path.write_bytes(browser.get(f"/answers.{kind}", params=query).content)
            assert len(read_answers(path)) == n
        ids = [sample.id for sample in annotated.modalities["image"].samples]
        (pair,) = pairs_from_answers(read_answers(path), ids).pairs.pairs
        assert [ids[row] for row in pair] == [shown["left"], shown["right"]]

    def test_what_cannot_be_kept_is_not_acknowledged(self, browser, database):
        shown = ask(browser, "Ada")
        run = database._connection.execute
        (pages,) = run("PRAGMA page_count").fetchone()
        run(f"PRAGMA max_page_count = {pages}")
        statuses = []
        for number in range(1000):
            response = answer(browser, f"annotator {number}", shown)
            statuses.append(response.status_code)
            if response.status_code != 200:
                break
        assert statuses[-1] == 500
        assert "free space" in response.json()["error"]
        assert len(exported(browser)) == len(statuses) - 1 > 0
        run("PRAGMA max_page_count = 100000")
        assert answer(browser, f"annotator {number}", shown).status_code == 200
        assert len(exported(browser)) == len(statuses)

    def test_a_file_that_another_program_holds_is_told(self, browser, database, tmp_path):
        shown = ask(browser, "Ada")
        database._connection.execute("PRAGMA busy_timeout = 20")
        other = sqlite3.connect(database.path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        response = answer(browser, "Ada", shown)
        assert response.status_code == 500
        assert "no other program holds the file" in response.json()["error"]
        other.execute("ROLLBACK")
        other.close()
        assert answer(browser, "Ada", shown).status_code == 200

    def test_what_nobody_foresaw_is_answered_as_safely(self, browser, monkeypatch):
        from deployments.annotate.session import Session

        monkeypatch.setattr(Session, "question", lambda *_: 1 / 0)
        response = browser.get(
            "/ask", params={"annotator": "Ada", "modality": "sketch"}, status=500
        )
        assert "division" not in response.text
        assert "default-src 'none'" in response.headers["content-security-policy"]
        assert response.headers["cache-control"] == "no-store"


class TestImporting:
    def test_what_was_exported_comes_back_whole(self, browser, open_browser, annotated, tmp_path):
        from deployments.annotate.database import AnswerDatabase
        from deployments.annotate.session import Session

        answer_all(browser, "Ada", lambda shown: "skip")
        for kind in ("csv", "jsonl"):
            text = browser.get(f"/answers.{kind}").text
            assert browser.post(f"/import?kind={kind}", content=text).json() == {
                "n_new": 0,
                "n_known": 18,
                "n_wrong": 0,
                "problems": [],
            }
            file = tmp_path / f"{kind}.sqlite"
            other = Session(annotated, AnswerDatabase(file, "shapes", annotated.modality_of))
            assert other.take_in(text, kind).n_new == 18
            assert other.export(kind) == text
            other.database.close()

    def test_lines_are_reported_one_by_one(self, browser, annotated):
        s, t, u = (sample.id for sample in annotated.modalities["sketch"].samples[:3])
        image = annotated.modalities["image"].samples[0].id
        lines = [
            {"sample_a": s, "sample_b": t, "easier": "a", "annotator": "Ada"},
            {"sample_a": t, "sample_b": s, "easier": "a", "annotator": "Ada"},  # contradicts
            {"sample_a": t, "sample_b": s, "easier": "b", "annotator": "Ada"},  # says the same
            {"sample_a": s, "sample_b": "nowhere", "easier": "a"},
            {"sample_a": s, "sample_b": image, "easier": "a"},
            {"sample_a": s, "sample_b": u, "easier": "maybe"},
            {"sample_a": s, "sample_b": t, "easier": "b", "annotator": "Bo"},
        ]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        report = browser.post("/import?kind=jsonl", content=text).json()
        assert (report["n_new"], report["n_known"]) == (2, 1)
        assert [number for number, _ in report["problems"]] == [2, 4, 5, 6]
        words = ("before", "'nowhere' is no sample", "a sketch and an image", "'maybe'")
        for (_, problem), word in zip(report["problems"], words, strict=True):
            assert word in problem
        assert [row["annotator"] for row in exported(browser)] == ["Ada", "Bo"]

    def test_imported_answers_count_and_are_not_taken_back(self, browser, annotated):
        side = annotated.modalities["sketch"]
        a, b = (side.samples[row].id for row in side.proposals[0])
        table = f"sample_a,sample_b,easier,annotator\n{a},{b},a,Ada\n"
        assert browser.post("/import?kind=csv", content=table).json()["n_new"] == 1
        assert pair_of(ask(browser, "Ada")) != {a, b}
        who = {"annotator": "Ada", "modality": "sketch"}
        assert browser.post("/undo", data=who).status_code == 409

    def test_a_file_of_another_kind_is_refused(self, browser):
        for query, content, word in (
            ("kind=csv", b"a,b\n1,2\n", "lacks the columns"),
            ("kind=csv", b"\xff\xfe", "UTF-8"),
            ("kind=exe", b"", "kind='exe'"),
            ("", b"", "kind=''"),
        ):
            response = browser.post(f"/import?{query}", content=content, headers=JSON, status=422)
            assert word in response.json()["error"]
