"""The sample table and its splits, as plain functions on a small store."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cppcl.datasets import Folder
from cppcl.errors import InputError
from storage import Reference
from tasks.samples import open_pictures, open_split
from tasks.stages.contract import Mode, StageNotStoredError, StageResult
from tasks.stages.fetch import fetch_data
from tasks.stages.split import split_table
from tasks.workspace import Workspace


def fetch(
    workspace: Workspace, root: Path, mode: Mode = "reuse", pairing: str = "name"
) -> StageResult:
    return fetch_data(
        workspace=workspace,
        name="folder",
        options={"root": root, "pairing": pairing},
        key_parameters={"pairing": pairing},
        mode=mode,
    )


def split(workspace: Workspace, table: Reference, seed: int = 0, n_train: int = 7) -> StageResult:
    return split_table(
        workspace=workspace, table=table, rule="instance", options={"n_train": n_train}, seed=seed
    )


def test_table_is_made_once(workspace, shapes):
    first, second = fetch(workspace, shapes), fetch(workspace, shapes)
    assert (first.cached, second.cached) == (False, True)
    assert first.reference == second.reference
    pictures = open_pictures(workspace.store, first.reference)
    assert pictures.root == shapes
    assert len(pictures.table) == 24
    assert "licence unknown" in pictures.licence
    assert pictures.findings == ()


def test_required_table_must_be_stored(workspace, shapes):
    with pytest.raises(StageNotStoredError, match=r"'fetch' .* --from fetch"):
        fetch(workspace, shapes, "require")
    made = fetch(workspace, shapes)
    assert fetch(workspace, shapes, "require") == StageResult(
        made.reference, True, pytest.approx(0, abs=5)
    )


def test_forced_table_is_made_anew(workspace, shapes):
    first = fetch(workspace, shapes)
    path = workspace.store.path(first.reference)
    before = path.stat().st_ino
    again = fetch(workspace, shapes, "force")
    assert again.reference == first.reference
    assert not again.cached
    assert path.stat().st_ino != before


@pytest.mark.parametrize("mode", ["reuse", "require", "force"])
def test_a_moved_folder_is_found_in_every_mode(mode, workspace, shapes):
    first = fetch(workspace, shapes)
    moved = shapes.rename(shapes.with_name("moved"))
    again = fetch(workspace, moved, mode)
    assert again.reference == first.reference
    assert open_pictures(workspace.store, again.reference).root == moved


def test_titles_that_are_known_later_are_stored_under_the_same_key(workspace, shapes, monkeypatch):
    first = fetch(workspace, shapes)
    plain = Folder.table
    monkeypatch.setattr(
        Folder, "table", lambda self, root: replace(plain(self, root), titles=("a shape",) * 24)
    )
    assert fetch(workspace, shapes).reference == first.reference
    assert open_pictures(workspace.store, first.reference).table.title(3) == "a shape"
    assert fetch(workspace, shapes).cached


def test_table_is_keyed_on_content_and_labels(workspace, shapes):
    before = fetch(workspace, shapes)
    (shapes / "images/circle").rename(shapes / "images/disc")
    (shapes / "sketches/circle").rename(shapes / "sketches/disc")
    after = fetch(workspace, shapes)
    assert after.reference != before.reference
    (shapes / "images/disc").rename(shapes / "images/circle")
    (shapes / "sketches/disc").rename(shapes / "sketches/circle")
    assert fetch(workspace, shapes) == StageResult(before.reference, True, pytest.approx(0, abs=5))


def test_missing_folder_is_named(workspace, tmp_path):
    with pytest.raises(InputError, match="nowhere' is not a folder"):
        fetch(workspace, tmp_path / "nowhere")


def test_split_divides_groups(workspace, shapes):
    table = fetch(workspace, shapes).reference
    made = split(workspace, table)
    assert not made.cached
    assert split(workspace, table).cached
    rows = open_split(workspace.store, made.reference)
    samples = open_pictures(workspace.store, table).table
    groups = np.array(samples.column("groups", "sketch"))
    assert len(rows.train_sketches) == 7
    assert len(rows.test_sketches) == 5
    assert not set(groups[rows.train_sketches]) & set(groups[rows.test_sketches])
    images = np.array(samples.column("groups", "image"))
    assert set(images[rows.train_images]) == set(groups[rows.train_sketches])
    assert rows.test_images.dtype == np.int64


@pytest.mark.parametrize("change", [{"seed": 1}, {"n_train": 6}])
def test_split_is_keyed_on_its_options(change, workspace, shapes):
    table = fetch(workspace, shapes).reference
    before = split(workspace, table)
    after = split(workspace, table, **change)
    assert after.reference != before.reference
    assert not after.cached


def test_impossible_split_leaves_nothing_published(workspace, shapes):
    table = fetch(workspace, shapes).reference
    with pytest.raises(InputError, match="n_train is 12"):
        split(workspace, table, n_train=12)
    assert list(workspace.store.references("split")) == []
