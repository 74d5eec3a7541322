"""``cppcl annotate`` as a process: what it says, what it refuses, what survives its death."""

from __future__ import annotations

import csv
import io
import json
import re
import signal
import socket
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from cppcl.curriculum.annotation.answers import read_answers
from cppcl.errors import CppclError, InputError
from deployments.annotate.database import AnswerDatabase
from deployments.annotate.samples import gather
from deployments.annotate.session import Session
from tests.deployments.annotate.annotating import serving
from tests.deployments.processes import SECONDS

Command = Callable[..., Any]


def ids_of(question: dict[str, Any]) -> dict[str, str]:
    return {side: question[side]["id"] for side in ("left", "right")}


def first_question(client: httpx.Client, who: dict[str, str]) -> dict[str, str]:
    return ids_of(client.get("/ask", params=who).json()["question"])


class TestKilled:
    def test_nothing_that_was_acknowledged_is_lost(self, record_shapes, tmp_path):
        """Kill -9 in the middle of 100 answers of two annotators, three times; then compare."""
        place = record_shapes(tmp_path, per_class=20)
        rng = np.random.default_rng(0)
        acknowledged: list[tuple[str, str, str, str]] = []
        unknown: list[tuple[str, str, str, str]] = []
        deaths = iter([17, 50, 83])
        death = next(deaths)
        while len(acknowledged) < 100:
            with (
                serving(place) as (process, address),
                httpx.Client(
                    base_url=address, timeout=SECONDS, headers={"Accept": "application/json"}
                ) as client,
            ):
                shown: dict[str, dict[str, str]] = {}
                while len(acknowledged) < 100:
                    name = ("Ada", "Bo")[len(acknowledged) % 2]
                    who = {"annotator": name, "modality": "sketch"}
                    if name not in shown:
                        shown[name] = first_question(client, who)
                    easier = str(rng.choice(["a", "b", "skip"]))
                    form = {**who, **shown[name], "easier": easier, "seconds": "1"}
                    given = (name, *shown[name].values(), easier)
                    if len(acknowledged) == death:
                        # The kill and the answer race; what is not acknowledged may be kept.
                        death = next(deaths, -1)
                        killer = threading.Timer(rng.uniform(0, 0.01), process.kill)
                        killer.start()
                        try:
                            client.post("/answer", data=form).raise_for_status()
                            acknowledged.append(given)
                        except httpx.TransportError:
                            unknown.append(given)
                        killer.join()
                        assert process.wait(SECONDS) == -signal.SIGKILL
                        break
                    response = client.post("/answer", data=form).raise_for_status()
                    acknowledged.append(given)
                    shown[name] = ids_of(response.json()["question"])
                else:
                    text = client.get("/answers.csv").text
        assert death == -1
        kept = [
            (row["annotator"], row["sample_a"], row["sample_b"], row["easier"])
            for row in csv.DictReader(io.StringIO(text))
        ]
        extra = [answer for answer in kept if answer not in acknowledged]
        assert [answer for answer in kept if answer not in extra] == acknowledged
        assert set(extra) <= set(unknown)
        file = place.root / "annotations" / "shapes.sqlite"
        with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        connection.close()

    def test_an_open_address_comes_with_a_token(self, shapes_place, tmp_path):
        arguments = ("--database", tmp_path / "a.sqlite", "--host", "0.0.0.0")
        with serving(shapes_place, *arguments) as (_, address):
            found = re.fullmatch(r"http://[^/]+:(\d+)/\?token=([\w-]{32})", address)
            with httpx.Client(base_url=f"http://127.0.0.1:{found[1]}", timeout=SECONDS) as client:
                assert client.get("/").status_code == 401
                response = client.get(f"/?token={found[2]}", follow_redirects=True)
                assert response.status_code == 200
                assert client.get("/").status_code == 200


class TestDatabase:
    @pytest.fixture
    def file(self, tmp_path) -> Path:
        return tmp_path / "answers.sqlite"

    def test_every_commit_is_synchronised(self, file):
        database = AnswerDatabase(file, "shapes", ())
        run = database._connection.execute
        assert run("PRAGMA journal_mode").fetchone() == ("wal",)
        assert run("PRAGMA synchronous").fetchone() == (2,)  # FULL
        database.close()

    def test_a_file_of_another_experiment_or_program_is_refused(self, file, tmp_path):
        AnswerDatabase(file, "shapes", ()).close()
        with pytest.raises(InputError, match=r"of the experiment 'shapes', not of 'other'"):
            AnswerDatabase(file, "other", ())
        foreign = tmp_path / "foreign.sqlite"
        connection = sqlite3.connect(foreign)
        connection.execute("CREATE TABLE t (x)")
        connection.close()
        before = foreign.read_bytes()
        with pytest.raises(InputError, match=r"foreign.sqlite: a database of another program"):
            AnswerDatabase(foreign, "shapes", ())
        assert foreign.read_bytes() == before
        text = tmp_path / "text.sqlite"
        text.write_text("no database " * 100)
        with pytest.raises(InputError, match=r"text.sqlite: no database, or damaged"):
            AnswerDatabase(text, "shapes", ())
        with pytest.raises(CppclError, match=r"cannot be (made|read)"):
            AnswerDatabase(text / "below.sqlite", "shapes", ())
        connection = sqlite3.connect(file)
        connection.execute("PRAGMA user_version = 99")
        connection.close()
        with pytest.raises(InputError, match=r"has format 99"):
            AnswerDatabase(file, "shapes", ())

    def test_answers_about_pictures_that_are_gone_are_told(self, file):
        from cppcl.curriculum.annotation.answers import GivenAnswer

        database = AnswerDatabase(file, "shapes", ("s", "t"))
        assert database.add(GivenAnswer("s", "t", "a", "Ada"))
        database.close()
        AnswerDatabase(file, "shapes", ("s", "t", "u")).close()
        with pytest.raises(InputError, match=r"1 answers are about pictures .*'s' or 't'"):
            AnswerDatabase(file, "shapes", ("s", "u"))

    def test_another_process_is_seen(self, file):
        from cppcl.curriculum.annotation.answers import GivenAnswer

        one, other = (AnswerDatabase(file, "shapes", ("s", "t", "u")) for _ in range(2))
        assert other.add(GivenAnswer("s", "t", "a", "Ada"))
        assert one.n_answers == 1
        assert not one.add(GivenAnswer("t", "s", "b", "Ada"))
        assert len(one.answers()) == 1
        assert one.undo("Ada", ("s",))
        assert other.n_answers == 0
        assert other.answers() == []
        one.close()
        other.close()


class TestGathering:
    def test_pairs_are_of_training_pictures_of_the_split(self, shapes_place):
        from storage import Reference
        from tasks.samples import open_pictures, open_split

        _, record = shapes_place.find_run("shapes")
        keys = [Reference.parse(a).key for a in record["all_artifacts"] if "split/" in a]
        table = open_pictures(
            shapes_place.store, Reference("fetch", record["artifacts"]["fetch"])
        ).table
        for chosen, key in ((None, record["artifacts"]["split"]), (keys[0], keys[0])):
            found = gather(shapes_place, "shapes", chosen)
            split = open_split(shapes_place.store, Reference("split", key))
            ids = table.column("ids", "sketch")
            assert [s.id for s in found.modalities["sketch"].samples] == [
                ids[row] for row in split.train_sketches
            ]
        sizes = {
            len(gather(shapes_place, "shapes", k[:8]).modalities["image"].samples) for k in keys
        }
        assert sizes == {12, 9}
        with pytest.raises(InputError, match=rf"--split 'zz' .*its splits: {keys[0][:12]}, "):
            gather(shapes_place, "shapes", "zz")

    def test_stored_shog_is_preferred_to_hog(self, record_shapes, inline_blocks, tmp_path, capsys):
        from cppcl.curriculum.annotation.questions import nearest_pairs
        from deployments.annotate.samples import features_of
        from storage import Recipe, Reference, Writer
        from tasks.stages.extract import VERSION

        place = record_shapes(tmp_path)
        _, record = place.find_run("shapes")
        table = Reference("fetch", record["artifacts"]["fetch"])
        values = np.random.default_rng(0).random((18, 4)).astype(np.float32)

        def create(writer: Writer) -> None:
            writer.put_array("features", values)
            writer.put_array("ok", np.ones(18, dtype=bool))

        parameters = {"modality": "sketch", "extractor": "shog"}
        recipe = Recipe("extract", VERSION, parameters, {"table": table})
        place.store.get_or_create(recipe, create)
        record["all_artifacts"].append(str(recipe.reference))
        references = [Reference.parse(r) for r in record["all_artifacts"]]
        for modality, name in (("sketch", "shog"), ("image", "hog")):
            made = features_of(place, record, references, table, modality)
            assert made.parameters["extractor"] == name
        place.record_run("shapes", "20300101T000000000000Z", record)
        found = gather(place, "shapes").modalities["sketch"]
        ids = [f"{s.id}" for s in found.samples]
        rows = [gather_ids(place, table).index(name) for name in ids]
        expected = nearest_pairs(values[rows], found.classes)
        assert list(found.proposals) == [tuple(pair) for pair in expected.tolist()]

    def test_hog_is_extracted_where_the_run_stored_none(
        self, record_shapes, inline_blocks, tmp_path
    ):
        place = record_shapes(tmp_path, extractor="pixels", per_class=4)
        assert not inline_blocks or inline_blocks.clear() is None
        found = gather(place, "shapes")
        assert len(inline_blocks) == 24
        again = gather(place, "shapes")
        assert len(inline_blocks) == 24
        assert again.modalities["sketch"].proposals == found.modalities["sketch"].proposals

    def test_a_picture_that_cannot_be_read_is_never_asked_about(self, record_shapes, tmp_path):
        asked: dict[str, set[str]] = {}
        for name, spoiled in (("whole", None), ("spoiled", "sketches/circle/3.png")):
            found = gather(record_shapes(tmp_path / name, spoiled=spoiled), "shapes")
            file = tmp_path / f"{name}.sqlite"
            database = AnswerDatabase(file, "shapes", found.modality_of)
            session = Session(found, database)
            paths = {sample.id: sample.path for sample in found.modalities["sketch"].samples}
            while (question := session.question("Ada", "sketch")) is not None:
                left, right = question.left.id, question.right.id
                asked.setdefault(name, set()).update({paths[left], paths[right]})
                session.answer("Ada", "sketch", left, right, "a", None)
            database.close()
        assert asked["whole"] - asked["spoiled"] == {"sketches/circle/3.png"}
        assert len(asked["spoiled"]) == 11

    def test_no_pairs_and_no_pictures(self, shapes_place, monkeypatch):
        import dataclasses

        from deployments.annotate import samples

        with monkeypatch.context() as patch:
            empty = np.zeros(0, dtype=np.int64)
            patch.setattr(samples, "training_rows", lambda split, modality: empty)
            with pytest.raises(InputError, match=r"no two training pictures of one class"):
                gather(shapes_place, "shapes")
        opened = samples.open_pictures

        def matrix(*arguments: Any) -> Any:
            pictures = opened(*arguments)
            paths = tuple(f"x.npy#{k}" for k in range(len(pictures.table)))
            return dataclasses.replace(
                pictures, table=dataclasses.replace(pictures.table, paths=paths)
            )

        monkeypatch.setattr(samples, "open_pictures", matrix)
        with pytest.raises(InputError, match="has features and no pictures"):
            gather(shapes_place, "shapes")


def gather_ids(place: Any, table: Any) -> list[str]:
    """Ids of all sketches in the order of the table."""
    from tasks.samples import open_pictures

    return open_pictures(place.store, table).table.column("ids", "sketch")


class TestCommand:
    def test_answers_go_out_and_in(self, shapes_place, cppcl, annotated, tmp_path):
        s, t = (sample.id for sample in annotated.modalities["sketch"].samples[:2])
        i, j = (sample.id for sample in annotated.modalities["image"].samples[:2])
        lines = [
            {"sample_a": s, "sample_b": t, "easier": "a", "annotator": "Ada"},
            {"sample_a": s, "sample_b": "gone", "easier": "a"},
            {"sample_a": i, "sample_b": j, "easier": "b", "seconds": 2.5},
        ]
        source = tmp_path / "in.jsonl"
        source.write_text("".join(json.dumps(line) + "\n" for line in lines))
        place = ("--workspace", shapes_place.root, "--database", tmp_path / "a.sqlite")
        result = cppcl("annotate", "shapes", *place, "--import", source, code=1)
        assert result.stdout == "2 answers are new, 0 were here, 1 lines were left out\n"
        assert f"{source}, line 2: 'gone' is no sample" in result.stderr
        for options, n in (((), 2), (("--modality", "image"), 1)):
            for name in ("out.csv", "out.jsonl"):
                target = tmp_path / name
                result = cppcl("annotate", "shapes", *place, "--export", target, *options)
                assert (result.code, result.stdout) == (0, f"{target}\n")
                assert len(read_answers(target)) == n
        assert cppcl("annotate", "shapes", *place, "--import", tmp_path / "out.csv").code == 0

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (("nowhere",), "no run 'nowhere' in .*experiments that were run: shapes"),
            (("shapes", "--export", "x.txt"), r"--export x.txt: give a .csv or .jsonl file"),
            (("shapes", "--import", "x.txt"), r"--import x.txt: give a .csv or .jsonl file"),
            (("shapes", "--import", "none.csv"), r"--import none.csv: cannot be read"),
            (("shapes", "--split", "zz"), r"--split 'zz' names no one split"),
        ],
    )
    def test_wrong_use_is_told(self, arguments, words, shapes_place, cppcl, tmp_path):
        file = ("--database", tmp_path / "a.sqlite")
        result = cppcl("annotate", *arguments, "--workspace", shapes_place.root, *file, code=2)
        assert re.search(words, result.stderr)

    def test_a_table_without_columns_is_named(self, shapes_place, cppcl, tmp_path):
        (tmp_path / "bad.csv").write_text("a,b\n")
        place = ("--workspace", shapes_place.root, "--database", tmp_path / "a.sqlite")
        result = cppcl("annotate", "shapes", *place, "--import", tmp_path / "bad.csv", code=2)
        assert re.search("bad.csv.* lacks the columns", result.stderr)

    def test_a_port_that_is_taken_is_named(self, shapes_place, cppcl, tmp_path):
        place = ("--workspace", shapes_place.root, "--database", tmp_path / "a.sqlite")
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            result = cppcl("annotate", "shapes", *place, "--port", port)
        assert result.code == 1
        assert f"--port {port}: not available" in result.stderr
        assert "Give another --port, or 0" in result.stderr
        result = cppcl("annotate", "shapes", *place, "--port", 99999, code=2)
        assert "--port 99999" in result.stderr
        result = cppcl("annotate", "shapes", *place, "--host", "192.0.2.1", "--port", 0, code=1)
        assert "--host 192.0.2.1" in result.stderr
