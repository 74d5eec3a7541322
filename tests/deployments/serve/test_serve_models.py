"""Models in memory: what close means, and newer ones while it runs."""

from __future__ import annotations

import hashlib
import math
from threading import Event, Thread
from typing import Any

import httpx
import numpy as np
import pytest
from PIL import Image

from cppcl.errors import InputError
from cppcl.retrieval.exact import nearest
from deployments.serve.app import make_app
from deployments.serve.closeness import OF_RIGHT, Closeness, answers, closeness_of, lower_bound
from deployments.serve.live import AGAIN_SECONDS, CHECK_SECONDS, Live
from deployments.serve.served_model import ServedModel
from deployments.serve.work import WorkQueue
from deployments.web import pictures as module
from deployments.web.pictures import PictureFile, PictureReader
from deployments.web.security import access_for
from storage import Reference
from tasks.workspace import Workspace
from tests.deployments.serve.serving import in_thread, record, train_shapes


class TestCloseness:
    @pytest.mark.parametrize(("n", "share"), [(19, 0.05), (40, 0.05), (99, 0.01), (250, 0.01)])
    def test_no_more_fall_below_than_is_said(self, n, share):
        rng = np.random.default_rng(n)
        values = rng.standard_exponential((20_000, n + 1))
        below = np.mean([v[-1] < lower_bound(v[:-1], share) for v in values])
        expected = math.floor(share * (n + 1) + 1e-9) / (n + 1)
        assert expected <= share
        assert below == pytest.approx(expected, abs=4 * math.sqrt(share / 20_000))

    @pytest.mark.parametrize(("n", "share"), [(0, 0.05), (18, 0.05), (98, 0.01)])
    def test_few_answers_tell_nothing(self, n, share):
        assert lower_bound(np.arange(n), share) is None
        assert lower_bound(np.arange(round(1 / share) - 1), share) == 0

    @pytest.mark.parametrize("metric", ["cosine", "l2"])
    def test_answers_are_those_of_brute_force(self, metric):
        rng = np.random.default_rng(0)
        queries, gallery = rng.standard_normal((30, 4)), rng.standard_normal((200, 4))
        gallery[:150] += queries[0]  # so that some sketches have nothing but right ones near
        query_targets = np.array(["a"] * 20 + ["b"] * 10)
        gallery_targets = np.array(["a"] * 150 + ["b"] * 20 + ["c"] * 30)
        if metric == "cosine":
            unit = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in (queries, gallery)]
            scores = unit[0] @ unit[1].T
        else:
            scores = -np.linalg.norm(queries[:, None] - gallery, axis=2)
        is_right = query_targets[:, None] == gallery_targets
        first = scores.argmax(axis=1)
        best = is_right[np.arange(30), first]
        right, wrong = answers(queries, gallery, query_targets, gallery_targets, metric=metric)
        np.testing.assert_allclose(np.sort(right), np.sort(scores.max(axis=1)[best]))
        expected = np.where(is_right, -np.inf, scores).max(axis=1)
        np.testing.assert_allclose(np.sort(wrong), np.sort(expected))
        assert 0 < len(right) < 30

    def test_sketches_without_any_wrong_picture_count_for_the_right_ones(self):
        codes = np.eye(3)
        right, wrong = answers(codes, codes, *[np.array(["a"] * 3)] * 2, metric="cosine")
        assert len(right) == 3
        assert len(wrong) == 0

    def test_it_comes_from_sketches_that_the_model_did_not_learn_from(self, live, served_place):
        from tasks.model import Model
        from tasks.samples import open_split

        model = Model(served_place, served_place.find_model("shapes"))
        rows = open_split(served_place.store, model.lineage.split).test_sketches
        table = model.pictures.table
        labels = [np.array(table.column("labels", m)) for m in ("sketch", "image")]
        unit = [
            codes / np.linalg.norm(codes, axis=1, keepdims=True)
            for codes in (model.codes.array("sketch_codes"), model.codes.array("image_codes"))
        ]
        scores = unit[0][rows] @ unit[1].T
        is_right = labels[0][rows, None] == labels[1]
        best = is_right[np.arange(len(rows)), scores.argmax(axis=1)]
        found = live.get(None).closeness
        if best.sum() >= 19:
            expected = lower_bound(scores.max(axis=1)[best], OF_RIGHT)
            assert (found.n_right, found.n_wrong) == (best.sum(), len(rows))
        else:
            expected = None
        assert found.threshold == pytest.approx(expected, abs=1e-6)


class TestOfAGallery:
    """Sketches of 20 classes; pictures of these classes, of others, or without a class."""

    @staticmethod
    def made(seed: int, n: int, noise: float) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(seed)
        classes = rng.integers(0, 20, n)
        centres = np.random.default_rng(99).standard_normal((20, 16))
        return centres[classes] + noise * rng.standard_normal((n, 16)), classes.astype(str)

    def far(self, known: bool, gallery: np.ndarray, names: np.ndarray) -> tuple[Any, float]:
        """What is close, and the share of new right answers that are called far."""
        shares = []
        for seed in range(20):
            bank = self.made(seed, 200, 1.0)
            found = closeness_of(bank[0], gallery, bank[1], names, metric="cosine")
            new, classes = self.made(1000 + seed, 400, 1.0)
            rows, best = nearest(new, gallery, 1, metric="cosine")
            is_right = names[rows[:, 0]] == classes if known else np.ones(400, bool)
            shares.append((best[is_right, 0] < found.threshold).mean())
        return found, float(np.mean(shares))

    def test_of_right_answers_one_in_twenty_is_called_far_at_most(self):
        gallery, names = self.made(7, 300, 1.0)
        found, share = self.far(True, gallery, names)
        assert found.n_unknown == 0
        assert 100 < found.n_right < found.n_wrong == 200
        assert 0.95 <= found.right_kept < 0.96
        assert 0.035 < share < 0.055

    def test_it_goes_by_the_gallery_and_not_by_the_training_data(self):
        home, names = self.made(7, 300, 1.0)
        rng = np.random.default_rng(5)
        other = rng.standard_normal((60, 16))
        at_home, _ = self.far(True, home, names)
        found, share = self.far(False, other, np.array([f"other {k}" for k in range(60)]))
        assert (found.n_right, found.n_wrong, found.n_unknown) == (0, 0, 200)
        assert math.isnan(found.right_kept)
        assert found.threshold < at_home.threshold - 0.1
        assert 0.002 < share < 0.015

    def test_a_gallery_with_a_few_right_pictures_says_so_by_all_answers(self):
        other = np.random.default_rng(5).standard_normal((60, 16))
        bank, classes = self.made(3, 200, 1.0)
        names = np.array([classes[0], *(f"other {k}" for k in range(59))])
        found = closeness_of(bank, other, classes, names, metric="cosine")
        assert found.n_unknown == 200

    def test_sketches_without_a_code_take_no_part(self):
        gallery, names = self.made(7, 300, 1.0)
        bank, classes = self.made(3, 200, 1.0)
        whole = closeness_of(bank, gallery, classes, names, metric="cosine")
        padded = np.concatenate([bank, np.zeros((40, 16))])
        more = np.concatenate([classes, classes[:40]])
        assert closeness_of(padded, gallery, more, names, metric="cosine") == whole
        assert closeness_of(
            padded[200:], gallery, more[200:], names, metric="cosine"
        ) == Closeness(None)


def set_event() -> Event:
    event = Event()
    event.set()
    return event


class Clock:
    """Stands still unless it is set."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


class TestNewer:
    @pytest.fixture
    def place(self, tmp_path, draw_pictures, inline_blocks) -> Workspace:
        place = Workspace(tmp_path / "workspace")
        train_shapes(place, draw_pictures(tmp_path / "shapes", per_class=4))
        return place

    @pytest.fixture
    def clock(self) -> Clock:
        return Clock()

    @pytest.fixture
    def clocked(self, place, clock) -> Live:
        return Live(place, ["shapes"], clock=clock)

    def look(self, live: Any) -> bool:
        """Look for newer after a while; whether it did."""
        live.clock.now += CHECK_SECONDS
        thread = live.look_for_newer()
        if thread is not None:
            thread.join(60)
        return thread is not None

    def test_a_newer_run_takes_the_place(self, place, clocked, draw_pictures):
        old = clocked.get("shapes")
        assert old.n_pictures == 12
        newer = train_shapes(place, draw_pictures(place.root / "more", per_class=6))
        assert clocked.look_for_newer() is None  # too early
        assert clocked.get("shapes") is old
        assert self.look(clocked)
        model = clocked.get("shapes")
        assert model.reference == newer
        assert model.n_pictures == 18
        # Pictures of answers that were given just before can still be seen.
        assert clocked.by_key(old.reference.key) is old
        assert clocked.by_key(newer.key) is model
        assert clocked.by_key("0" * 32) is None
        assert self.look(clocked)
        assert clocked.get("shapes") is model

    def test_what_cannot_be_loaded_changes_nothing_but_what_is_said(
        self, place, clocked, draw_pictures
    ):
        from tests.deployments.conftest import Browser

        old = clocked.get("shapes")
        newer = train_shapes(place, draw_pictures(place.root / "more", per_class=6))
        manifest = place.store.path(newer) / "manifest.json"
        whole = manifest.read_bytes()
        manifest.write_bytes(whole[:-10])
        assert self.look(clocked)
        assert clocked.get("shapes") is old
        assert "manifest.json" in clocked.served["shapes"].problem
        page = Browser(make_app(clocked, access_for("127.0.0.1", 1)))
        state = page.get("/healthz").json()
        assert state["status"] == "degraded"
        assert "manifest.json" in state["models"]["shapes"]["problem"]
        assert page.post("/api/search", json={"image": 1}).status_code == 200
        # It is tried again after a while, though nothing new is recorded.
        manifest.write_bytes(whole)
        assert self.look(clocked)
        assert clocked.get("shapes") is old
        clocked.clock.now += AGAIN_SECONDS
        assert self.look(clocked)
        assert clocked.get("shapes").reference == newer
        assert page.get("/healthz").json()["status"] == "ok"

    def test_any_failure_while_loading_is_told(self, place, clocked, monkeypatch):
        record(place, "shapes", [Reference("encode", "0" * 32)])
        monkeypatch.setattr(Workspace, "find_model", lambda *_: 1 / 0)
        assert self.look(clocked)
        assert clocked.served["shapes"].problem == "ZeroDivisionError: division by zero"

    def test_an_index_is_served_and_a_newer_state_of_it_too(
        self, place, draw_pictures, inline_blocks
    ):
        from tasks.stages.index import update_index

        folder = draw_pictures(place.root / "mine", per_class=2, first=30) / "images"
        index = {"workspace": place, "model": "shapes", "folder": folder, "name": "mine"}
        first = update_index(**index)
        live = Live(place, ["shapes", "mine"], clock=Clock())
        model = live.get("mine")
        assert model.reference.key == first.key
        assert model.n_pictures == 6
        # Sketches are those of the model, what is close is found in this gallery.
        assert model.examples == live.get("shapes").examples
        assert model.closeness.n_unknown == len(live.get("shapes").examples)
        assert len(model.by_example(model.examples[0], 99)) == 6
        draw_pictures(place.root / "mine", per_class=1, first=40)
        update_index(**index)
        assert self.look(live)
        assert live.get("mine").n_pictures == 9
        assert live.get("shapes").n_pictures == 12

    def test_names_are_given_once(self, place):
        with pytest.raises(InputError, match="one is given twice"):
            Live(place, ["shapes", "shapes"])


class TestPreparing:
    """Small pictures are encoded before they are asked for."""

    @pytest.fixture
    def drawn(self, tmp_path) -> dict[int, PictureFile]:
        rng, files = np.random.default_rng(0), {}
        for number in range(12):
            file = tmp_path / f"{number}.png"
            Image.fromarray(rng.integers(0, 256, (20, 20, 3), np.uint8)).save(file)
            digest = hashlib.sha256(file.read_bytes()).hexdigest()
            files[number] = PictureFile(file.name, digest)
        return files

    def test_those_that_can_be_had_are_kept(self, drawn, tmp_path):
        (tmp_path / "3.png").unlink()
        (tmp_path / "4.png").write_bytes(b"another one")
        pictures = PictureReader(tmp_path, drawn)
        pictures.prepare(Event(), set_event())
        assert set(pictures._kept) == set(drawn) - {3, 4}
        asked = PictureReader(tmp_path, drawn)
        assert all(asked[number] == kept for number, kept in pictures._kept.items())

    def test_no_more_than_are_kept(self, drawn, tmp_path, monkeypatch):
        size = len(PictureReader(tmp_path, drawn)[0].content)
        monkeypatch.setattr(module, "KEPT_BYTES", round(5.5 * size))
        pictures = PictureReader(tmp_path, drawn)
        pictures.prepare(Event(), set_event())
        # In their order, and none was let go for another one.
        assert list(pictures._kept) == [0, 1, 2, 3, 4]

    def test_it_ends_when_the_server_does(self, drawn, tmp_path):
        pictures = PictureReader(tmp_path, drawn)
        pictures.prepare(set_event(), set_event())
        pictures.prepare(set_event(), Event())
        assert not pictures._kept

    def test_searches_come_first(self, drawn, tmp_path):
        pictures, stop, idle = PictureReader(tmp_path, drawn), Event(), Event()
        looked = Event()
        wait = idle.wait

        def searching(timeout: float | None = None) -> bool:
            looked.set()
            return wait(timeout)

        idle.wait = searching
        thread = Thread(target=pictures.prepare, args=(stop, idle))
        thread.start()
        try:
            assert looked.wait(60)
            assert not pictures._kept
            idle.set()
            thread.join(60)
            assert set(pictures._kept) == set(drawn)
        finally:
            stop.set()
            thread.join(60)

    def test_a_server_does_so_for_what_is_served_and_what_takes_its_place(
        self, tmp_path, draw_pictures, inline_blocks, monkeypatch
    ):
        def all_kept(live: Live) -> bool:
            small = live.get("shapes").small.values()
            return all(len(pictures._kept) == len(pictures._files) > 0 for pictures in small)

        place = Workspace(tmp_path / "workspace")
        train_shapes(place, draw_pictures(tmp_path / "shapes", per_class=4))
        live = Live(place, ["shapes"], clock=Clock())
        threads: list[Thread] = []
        begin = Live.prepare
        monkeypatch.setattr(Live, "prepare", lambda one: threads.append(begin(one)) or threads[0])
        work = WorkQueue()
        with in_thread(make_app(live, access_for("127.0.0.1", 0), work)) as port:
            # It answers when it has begun.
            assert httpx.get(f"http://127.0.0.1:{port}/healthz").status_code == 200
            (thread,) = threads
            assert live.idle is work.idle
            thread.join(60)
            assert all_kept(live)
            old = live.get("shapes")
            train_shapes(place, draw_pictures(tmp_path / "more", per_class=6))
            live.check()
            assert live.get("shapes") is not old
            assert all_kept(live)
        assert live.stopping.is_set()


def test_models_of_features_cannot_be_drawn_for(served_place, monkeypatch):
    from dataclasses import replace

    from deployments.serve import served_model

    def open_matrix(*arguments: Any) -> Any:
        found = open_pictures(*arguments)
        paths = tuple(f"m.npy#{row}" for row in range(len(found.table)))
        return replace(found, table=replace(found.table, paths=paths))

    open_pictures = served_model.open_pictures
    monkeypatch.setattr(served_model, "open_pictures", open_matrix)
    with pytest.raises(InputError, match="features and not from pictures"):
        ServedModel(served_place, "shapes", served_place.find_model("shapes"))
