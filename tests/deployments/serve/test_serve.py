"""The search page: what it answers, and how it is measured."""

from __future__ import annotations

import io
import math
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cppcl.retrieval.settling import SLACK
from tasks.model import Model
from tests.deployments.serve.serving import encoded, saved

KEY = "/pictures/{key}/image/{row}"


@pytest.fixture(scope="session")
def model(served_place) -> Model:
    return Model(served_place, served_place.find_model("shapes"))


def sketches(model: Model) -> list[Path]:
    return [model.pictures.root / p for p in model.pictures.table.column("paths", "sketch")]


class TestSearching:
    def test_answers_are_those_of_the_command(self, search_page, model):
        for path in sketches(model)[::11]:
            expected = model.search(path, 7)
            sent = {"picture": encoded(path.read_bytes()), "k": 7}
            answer = search_page.post("/api/search", json=sent).json()
            assert [m["rank"] for m in answer["matches"]] == list(range(1, 8))
            assert [m["name"] for m in answer["matches"]] == [
                match.path.relative_to(model.pictures.root).as_posix() for match in expected
            ]
            assert [m["similarity"] for m in answer["matches"]] == [m.similarity for m in expected]
            assert [m["label"] for m in answer["matches"]] == [m.label for m in expected]

    def test_a_data_address_is_a_picture_too(self, search_page, model):
        content = encoded(sketches(model)[0].read_bytes())
        answers = [
            search_page.post("/api/search", json={"picture": picture}).json()["matches"]
            for picture in (content, f"data:image/png;base64,{content}")
        ]
        assert answers[0] == answers[1] != []

    def test_pictures_shown_before_keep_their_places(self, search_page, model):
        sent = {"picture": encoded(sketches(model)[0].read_bytes())}

        def asked(k: int, shown: list[int]) -> list[dict]:
            return search_page.post("/api/search", json={**sent, "k": k, "shown": shown}).json()[
                "matches"
            ]

        exact = asked(8, [])
        rows, similar = ([match[name] for match in exact] for name in ("row", "similarity"))
        assert [match["row"] for match in asked(4, rows[:4])] == rows[:4]
        # What is far behind gives way; what falls behind the last place by little stays.
        spread = SLACK * (similar[0] - similar[3])
        for place in range(4):
            for other in range(place + 1, 8):
                shown = [rows[other] if at == place else 999 for at in range(4)]
                stays = similar[other] >= similar[place] - spread
                found = asked(4, shown)
                assert (found[place]["row"] == rows[other]) == stays
                assert [match["rank"] for match in found] == [1, 2, 3, 4]
                assert len({match["row"] for match in found}) == 4

    def test_a_photographed_sketch_is_cleaned_as_the_command_does(
        self, search_page, model, tmp_path
    ):
        light = np.linspace(120, 230, 300)[None, :, None] + np.zeros((240, 1, 3))
        light[60:180, 80:88] = light[60:68, 80:200] = light[172:180, 80:200] = 30
        file = tmp_path / "photo.png"
        file.write_bytes(saved(light.astype(np.uint8)))
        asked = {"picture": encoded(file.read_bytes()), "k": 9}
        answers = [
            search_page.post("/api/search", json={**asked, "photo": photo}).json()["matches"]
            for photo in (True, False)
        ]
        expected = [m.similarity for m in model.search(file, 9, photograph=True)]
        assert [m["similarity"] for m in answers[0]] == expected
        assert answers[0] != answers[1]

    def test_an_example_is_searched_by_its_stored_code(self, search_page, model, live):
        (described,) = search_page.get("/api/models").json()["models"]
        assert described["key"] == model.codes.reference.key
        held_out = set(live.get(None).examples)
        assert {e["row"] for e in described["examples"]} == held_out
        row = described["examples"][3]["row"]
        answer = search_page.post("/api/search", json={"example": row, "k": 5}).json()
        code, *images = (
            codes / np.linalg.norm(codes)
            for codes in (
                model.codes.array("sketch_codes")[row],
                *model.codes.array("image_codes"),
            )
        )
        expected = np.sort(np.array(images) @ code)[::-1][:5]
        assert [m["similarity"] for m in answer["matches"]] == pytest.approx(expected, abs=1e-6)

    def test_examples_are_sketches_that_it_did_not_learn_from(self, live, model):
        from tasks.samples import open_split

        split = open_split(model.workspace.store, model.lineage.split)
        assert sorted(live.get(None).examples) == sorted(split.test_sketches.tolist())

    def test_more_like_a_picture_is_by_its_own_code_without_itself(self, search_page, model):
        codes = model.codes.array("image_codes").astype(np.float64)
        codes /= np.linalg.norm(codes, axis=1, keepdims=True)
        for row in (0, 17, 59):
            cosines = codes @ codes[row]
            cosines[row] = -np.inf
            answer = search_page.post("/api/search", json={"image": row, "k": 6}).json()
            found = [m["similarity"] for m in answer["matches"]]
            assert found == pytest.approx(np.sort(cosines)[::-1][:6], abs=1e-6)
            assert row not in [m["row"] for m in answer["matches"]]
            assert answer["close"] is None

    def test_a_query_moves_towards_what_is_liked_and_away_from_what_is_not(
        self, search_page, model, live
    ):
        row = live.get(None).examples[0]
        sketch, images = (
            codes / np.linalg.norm(codes, axis=1, keepdims=True)
            for codes in (
                model.codes.array("sketch_codes")[[row]],
                model.codes.array("image_codes"),
            )
        )
        sent = {"example": row, "liked": [3, 40], "disliked": [17], "k": 59}
        answer = search_page.post("/api/search", json=sent).json()
        moved = sketch[0] + 0.75 * images[[3, 40]].mean(axis=0) - 0.1 * images[17]
        cosines = np.delete(images @ (moved / np.linalg.norm(moved)), 17)
        found = [m["similarity"] for m in answer["matches"]]
        assert found == pytest.approx(np.sort(cosines)[::-1], abs=1e-6)
        assert 17 not in [m["row"] for m in answer["matches"]]
        assert (answer["close"], answer["threshold"]) == (None, None)
        refused = search_page.post("/api/search", json=sent | {"liked": [17]}, status=422).json()
        assert refused["error"] == "row 17 is both liked and disliked; give it once"

    def test_pictures_are_served_by_row(self, search_page, model):
        match = search_page.post("/api/search", json={"image": 5, "k": 1}).json()["matches"][0]
        path = model.pictures.root / match["name"]
        for address in (match["thumbnail"], match["original"]):
            response = search_page.get(address)
            assert response.headers["content-type"] == "image/png"
            assert "immutable" in response.headers["cache-control"]
            with Image.open(io.BytesIO(response.content)) as shown, Image.open(path) as stored:
                np.testing.assert_array_equal(shown.convert("RGB"), stored.convert("RGB"))
        assert response.content == path.read_bytes()

    def test_close_is_what_reaches_the_threshold(self, search_page, live, monkeypatch):
        from deployments.serve.closeness import Closeness

        gallery = live.get(None)
        row = gallery.examples[0]
        best = search_page.post("/api/search", json={"example": row}).json()["matches"][0]
        similarity = best["similarity"]
        for threshold, close in ((similarity, True), (math.nextafter(similarity, 2), False)):
            monkeypatch.setattr(gallery, "closeness", Closeness(threshold, 9, 9, 1.0, 1.0))
            answer = search_page.post("/api/search", json={"example": row}).json()
            assert (answer["close"], answer["threshold"]) == (close, threshold)
            assert answer["matches"]
        monkeypatch.setattr(gallery, "closeness", Closeness(None))
        answer = search_page.post("/api/search", json={"example": row}).json()
        assert answer["close"] is None
        described = search_page.get("/api/models").json()["models"][0]
        assert described["closeness"]["right_kept"] is None

    def test_a_drawing_without_a_code_finds_nothing_and_says_so(
        self, search_page, live, model, monkeypatch
    ):
        method = live.get(None)._method
        monkeypatch.setattr(method, "encode_sketches", lambda features: np.zeros((1, 4)))
        sent = {"picture": encoded(sketches(model)[0].read_bytes())}
        answer = search_page.post("/api/search", json=sent).json()
        assert answer["matches"] == []
        assert "draw more" in answer["reason"]


class TestWatching:
    def test_health(self, search_page, model):
        state = search_page.get("/healthz").json()
        assert state["status"] == "ok"
        assert state["models"]["shapes"]["key"] == model.codes.reference.key
        assert state["models"]["shapes"]["n_pictures"] == 60

    def test_metrics_count_requests_errors_and_seconds(self, search_page, live, monkeypatch):
        from prometheus_client.parser import text_string_to_metric_families

        gallery = live.get(None)
        for row in gallery.examples[:3]:
            search_page.post("/api/search", json={"example": row})
        search_page.post("/api/search", json={"example": 10**6})
        search_page.get("/nowhere/at/all")
        monkeypatch.setattr(type(gallery), "by_example", lambda *_: 1 / 0)
        assert search_page.post("/api/search", json={"example": 0}).status_code == 500
        response = search_page.get("/metrics")
        assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
        samples = {
            (sample.name, *(sample.labels[name] for name in sorted(sample.labels))): sample.value
            for family in text_string_to_metric_families(response.text)
            for sample in family.samples
        }
        search = "/api/search"
        assert samples["cppcl_requests_total", search, "200"] == 3
        assert samples["cppcl_requests_total", search, "422"] == 1
        assert samples["cppcl_requests_total", search, "500"] == 1
        assert samples["cppcl_errors_total", search] == 1
        assert samples["cppcl_request_seconds_count", search] == 5
        assert samples["cppcl_request_seconds_sum", search] > 0
        assert samples["cppcl_requests_total", "other", "404"] == 1
        assert samples[("cppcl_requests_in_flight",)] == 1  # this one
