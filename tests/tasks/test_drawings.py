"""Whether drawings are brought to the form of the training sketches: tried, stored and used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from cppcl.features.descriptors.pixels import Pixels
from cppcl.pictures.decoding import decode_picture
from cppcl.pictures.form import Form, form_of, in_form
from tasks import drawings as module
from tasks.drawings import Drawings, drawings_of
from tasks.model import Model
from tasks.samples import open_split
from tasks.workspace import Workspace

pytestmark = pytest.mark.usefixtures("inline_blocks")


@pytest.fixture
def model(finished_run: Any, tmp_path: Path) -> Model:
    place: Workspace = finished_run.copy(tmp_path / "copy")
    return Model(place, place.find_model("tiny"))


def test_it_is_found_out_once_from_training_sketches_alone(model, monkeypatch):
    read = []
    sample = module.read_sample

    def reading(root: Path, path: str, **options: Any) -> Any:
        read.append(path)
        return sample(root, path, **options)

    monkeypatch.setattr(module, "read_sample", reading)
    found = drawings_of(model.workspace, model.lineage)
    table, split = model.pictures.table, open_split(model.workspace.store, model.lineage.split)
    paths = np.array(table.column("paths", "sketch"))
    assert sorted(read) == sorted(paths[split.train_sketches])
    assert found.n_tried == len(read)
    assert 0 < found.as_they_are <= 1
    pictures = [decode_picture(model.pictures.root / path, longest_side=40) for path in read]
    assert found.form == form_of(pictures)
    read.clear()
    assert drawings_of(model.workspace, model.lineage) == found
    assert not read


def test_a_store_that_cannot_be_written_to_is_left_as_it_is(model, monkeypatch):
    before = sorted(model.workspace.store.root.rglob("*"))
    monkeypatch.setattr(module.os, "access", lambda *_: False)
    found = drawings_of(model.workspace, model.lineage)
    assert sorted(model.workspace.store.root.rglob("*")) == before
    monkeypatch.undo()
    assert drawings_of(model.workspace, model.lineage) == found


def test_a_search_says_once_what_it_is_trying(model, finished_run, cppcl):
    sketch = finished_run.shapes / "sketches/circle/0.png"
    said = [
        cppcl("search", "tiny", sketch, "--workspace", model.workspace.root).stderr
        for _ in range(2)
    ]
    assert "drawings find more" in said[0]
    assert said[1] == ""


@pytest.mark.parametrize("helps", [True, False])
def test_a_search_takes_the_form_too_where_it_helps(model, tmp_path, monkeypatch, helps):
    drawn = np.full((40, 40, 3), 255, np.uint8)
    drawn[2:12, 3] = drawn[2:12, 12] = drawn[2, 3:12] = drawn[12, 3:13] = 0
    form = Form(40, 40, 0.06, 0.8)
    found = Drawings(form, 9, 0.5, 0.6 if helps else 0.53, 0.02)
    monkeypatch.setattr("tasks.model.drawings_of", lambda *_: found)
    seen: list[Any] = []
    encode = model.method.encode_sketches
    monkeypatch.setattr(model.method, "encode_sketches", lambda f: seen.append(f) or encode(f))
    Image.fromarray(drawn).save(tmp_path / "small.png")
    model.search(tmp_path / "small.png", 1)
    features = Pixels(size=(8, 8)).transform([drawn, in_form(drawn, form)])
    expected = features.mean(axis=0) if helps else features[0]
    np.testing.assert_allclose(seen[0][0], expected, rtol=1e-6)
    assert not np.allclose(features[0], features[1])


def test_a_drawing_in_the_form_is_described_once():
    form = Form(40, 40, 0.06, 0.8)
    drawn = np.full((40, 40, 3), 255, np.uint8)
    drawn[10:30, 8:10] = drawn[10:30, 30:32] = 0
    drawings = Drawings(form, 9, 0.5, 0.6, 0.02)
    assert len(drawings.pictures(drawn)) == 2
    formed = in_form(drawn, form)
    (only,) = drawings.pictures(formed)
    assert only is formed
