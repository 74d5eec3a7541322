"""Searching and indexing with extractors that learned from training pictures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from storage import Reference
from tasks.drawings import Drawings
from tasks.model import Model
from tasks.samples import open_pictures
from tasks.workspace import Workspace

pytestmark = pytest.mark.flow

Command = Callable[..., Any]
NUMBERS = {"n_keyshapes": 6, "n_nearest": 2, "blocks": 2}


@dataclass(frozen=True)
class LearnedRun:
    """An experiment by keyshapes, run on Dask workers by the command line."""

    shapes: Path
    workspace: Workspace
    summary: Any

    def artifact(self, stage: str) -> Any:
        return self.workspace.store.open(Reference(stage, self.summary["artifacts"][stage]))


@pytest.fixture(scope="module")
def learned_run(
    tmp_path_factory, prefect_server, dask_address, draw_pictures, write_experiment, cppcl
) -> LearnedRun:
    folder = tmp_path_factory.mktemp("learned")
    shapes = draw_pictures(folder / "shapes")
    file = write_experiment(
        shapes,
        cluster=dask_address,
        curriculum=None,
        features={
            "sketch": {"name": "lks", "contours": "strokes", **NUMBERS},
            "image": {"name": "lks", "contours": "canny", **NUMBERS},
        },
        protocols={
            "instance": {
                "split": {"rule": "instance", "n_train": 7, "seeds": [0, 1]},
                "methods": {"centred_cosine": None},
            }
        },
    )
    workspace = Workspace(folder / "workspace")
    result = cppcl("run", file, "--workspace", workspace.root, "--json", code=0)
    assert "sketch lks, instance, split 0: learned from 7 of 7 training pictures" in result.stderr
    return LearnedRun(shapes, workspace, result.json())


def test_search_describes_the_sketch_by_what_was_learned(learned_run, cppcl, monkeypatch):
    """Nearest by brute force over stored codes, for a sketch of the data set itself."""
    monkeypatch.setattr(Drawings, "helps", False)
    codes = learned_run.artifact("encode")
    table = open_pictures(
        learned_run.workspace.store, learned_run.artifact("fetch").reference
    ).table
    query, gallery = (
        values / np.linalg.norm(values, axis=1, keepdims=True)
        for values in (codes.array("sketch_codes"), codes.array("image_codes"))
    )
    for row in (0, 5, 11):
        sketch = learned_run.shapes / table.column("paths", "sketch")[row]
        similarity = gallery @ query[row]
        matches = Model(learned_run.workspace, codes.reference).search(sketch, 12)
        assert [m.similarity for m in matches] == pytest.approx(
            sorted(similarity, reverse=True), abs=1e-5
        )
        best = cppcl(
            "search", "tiny", sketch, "--json", "--workspace", learned_run.workspace.root, code=0
        )
        assert best.json()[0]["path"] == str(matches[0].path)


def test_index_describes_pictures_by_what_was_learned(learned_run, cppcl, inline_blocks):
    """The same pictures as a new gallery: rows are known, and have the same codes."""
    place = learned_run.workspace
    indexed = cppcl(
        "index", "tiny", learned_run.shapes / "images", "--workspace", place.root, code=0
    )
    assert inline_blocks == []
    gallery = place.store.open(Reference("encode", indexed.stdout.strip()))
    np.testing.assert_allclose(
        gallery.array("image_codes"),
        learned_run.artifact("encode").array("image_codes"),
        atol=1e-6,
    )
    learned = place.store.open(gallery.inputs["image_features"]).inputs["learned"]
    assert learned == learned_run.artifact("learn").reference
    # What was learned is kept with the gallery that needs it.
    assert cppcl("store", "gc", "--workspace", place.root).code == 0
    assert place.store.find(learned) is not None
    sketch = learned_run.shapes / "sketches/circle/0.png"
    args = ("search", gallery.reference.key, sketch, "--workspace", place.root, "--json")
    assert cppcl(*args).code == 0


def test_new_pictures_of_an_index_are_described_too(
    learned_run, cppcl, draw_pictures, inline_blocks, tmp_path
):
    folder = draw_pictures(tmp_path / "new", per_class=2, first=6) / "images"
    place = learned_run.workspace
    indexed = cppcl("index", "tiny", folder, "--workspace", place.root, code=0)
    assert len(inline_blocks) == 6
    sketch = learned_run.shapes / "sketches/circle/0.png"
    args = ("search", indexed.stdout.strip(), sketch, "--workspace", place.root, "--json")
    assert {match["label"] for match in cppcl(*args).json()} == {"circle", "square", "triangle"}
