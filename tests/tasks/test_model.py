"""Searching where codes or pictures are missing."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from cppcl.errors import InputError, PictureError
from cppcl.features.descriptors.pixels import Pixels
from tasks.model import Model
from tasks.stages.index import index_folder
from tasks.workspace import Workspace

pytestmark = pytest.mark.usefixtures("inline_blocks")


@pytest.fixture
def model(finished_run: Any, tmp_path: Path) -> Model:
    place: Workspace = finished_run.copy(tmp_path / "copy")
    return Model(place, place.find_model("tiny"))


def test_a_sketch_without_a_code_is_refused(model, finished_run, monkeypatch):
    monkeypatch.setattr(model.method, "encode_sketches", lambda features: np.zeros((1, 4)))
    sketch = finished_run.shapes / "sketches/circle/0.png"
    with pytest.raises(InputError, match=r"circle/0\.png: .*code is all zero.*smaller alpha"):
        model.search(sketch, 3)


def test_a_model_of_features_takes_no_pictures(model, finished_run, monkeypatch):
    monkeypatch.setattr(Pixels, "takes_pictures", False)
    with pytest.raises(InputError, match="not from pictures"):
        model.search(finished_run.shapes / "sketches/circle/0.png", 3)
    with pytest.raises(InputError, match="not from pictures"):
        index_folder(
            workspace=model.workspace,
            model=model.codes.reference,
            folder=finished_run.shapes / "images",
        )


def test_a_sketch_of_one_colour_is_refused(model, tmp_path):
    empty = tmp_path / "empty.png"
    Image.new("RGB", (40, 30), "white").save(empty)
    with pytest.raises(PictureError, match=r"empty\.png is of one colour"):
        model.search(empty, 3)


def test_pictures_without_a_code_are_similar_to_nothing(model, finished_run, monkeypatch):
    sketch = finished_run.shapes / "sketches/circle/0.png"
    before = model.search(sketch, 99)
    codes = model.codes.array("image_codes")
    zero = [match.path for match in before[:2]]
    table = model.pictures.table
    paths = [model.pictures.root / path for path in table.column("paths", "image")]
    codes[[paths.index(path) for path in zero]] = 0
    monkeypatch.setattr(type(model.codes), "rows", lambda self, name, rows: codes[rows])
    after = Model(model.workspace, model.codes.reference).search(sketch, 99)
    assert [match.path for match in after] == [match.path for match in before[2:]]
    assert all(math.isfinite(match.similarity) for match in after)


def test_a_gallery_of_bad_pictures_only(model, finished_run, tmp_path):
    folder = tmp_path / "bad"
    folder.mkdir()
    (folder / "1.png").write_bytes(b"no picture")
    results = index_folder(
        workspace=model.workspace, model=model.codes.reference, folder=folder, max_bad_share=1
    )
    gallery = Model(model.workspace, results[-1].reference)
    with pytest.raises(InputError, match="holds no picture that could be read; index another"):
        gallery.search(finished_run.shapes / "sketches/circle/0.png", 3)


def test_an_index_of_bad_pictures_only_is_not_to_be_searched(model, tmp_path, cppcl):
    folder = tmp_path / "bad"
    folder.mkdir()
    (folder / "1.png").write_bytes(b"no picture")
    place = model.workspace.root
    options = ("--max-bad-share", "1", "--workspace", place)
    made = cppcl("index", "tiny", folder, *options)
    assert made.code == 0, made.stderr
    assert "no picture could be read, so there is nothing to search" in made.stderr
    assert "search it with" not in made.stderr


def test_the_share_of_bad_pictures_can_be_given(model, tmp_path, cppcl):
    folder = tmp_path / "new"
    folder.mkdir()
    (folder / "1.png").write_bytes(b"no picture")
    Image.new("RGB", (40, 40), "red").save(folder / "2.png")
    command = ("index", "tiny", folder, "--workspace", model.workspace.root)
    assert cppcl(*command).code == 1
    assert cppcl(*command, "--max-bad-share", 0.5).code == 0
    for wrong in ("1.5", "half"):
        result = cppcl(*command, "--max-bad-share", wrong)
        assert result.code == 2
        assert f"'{wrong}' must be a number from 0 to 1" in result.stderr
