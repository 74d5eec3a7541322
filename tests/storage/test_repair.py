"""Damaged artifacts are mended by making again what is broken, and nothing else."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import numpy as np
import pytest

from storage import (
    Artifact,
    DamagedArtifactError,
    Recipe,
    Store,
    Writer,
    write_block,
    write_block_note,
)
from tests.storage.artifacts import Killed, flip, interrupted, tree

RECIPE = Recipe("blocks", "1")
N_BLOCKS = 5


class Blocks:
    """Makes an artifact of blocks, notes and a file, and tells which blocks it made."""

    def __init__(self, offset: float = 0) -> None:
        self.made: list[int] = []
        self.offset = offset

    def __call__(self, writer: Writer) -> None:
        for name in ("x", "y"):
            writer.array(name, shape=(9, 2), dtype="float64", rows_per_block=2)
        for block in writer.pending_blocks("x", "y", notes=["skipped"]):
            self.made.append(block)
            rows = np.full((2 if block < 4 else 1, 2), float(block + self.offset))
            write_block_note(writer.path, "skipped", block, [f"{block}.png"])
            write_block(writer.path, "x", block, rows)
            write_block(writer.path, "y", block, -rows)
        writer.put_array("sum", np.arange(3))
        notes = writer.block_notes("skipped")
        writer.put_json("skipped.json", {str(block): note for block, note in notes.items()})


def contents(artifact: Artifact) -> dict[str, bytes]:
    return tree(artifact.path, without="run.json")


@pytest.fixture
def blocks(store) -> Artifact:
    return store.get_or_create(RECIPE, Blocks()).artifact


def chunk(artifact: Artifact, name: str, block: int) -> Path:
    return artifact.path / "arrays" / name / f"c.{block}.0"


def test_only_broken_blocks_are_made_again(store, blocks):
    before, run = contents(blocks), blocks.run
    flip(chunk(blocks, "x", 1))
    chunk(blocks, "y", 3).unlink()
    (repair,) = store.repair()
    assert repair == (RECIPE.reference, {"x": [1], "y": [3]}, False)
    assert store.find(RECIPE.reference) is None
    assert store.verify() == store.repair() == []
    create = Blocks()
    mended = store.get_or_create(RECIPE, create).artifact
    assert create.made == [1, 3]
    assert contents(mended) == before
    assert mended.run["repaired"] == {"blocks": {"x": [1], "y": [3]}, "differs": []}
    assert mended.run["block_notes"] == run["block_notes"]
    assert store.verify() == []


@pytest.mark.parametrize("name", ["files/skipped.json", "arrays/sum/c.0"])
def test_what_is_no_block_costs_no_block(store, blocks, name):
    before = contents(blocks)
    flip(blocks.path / name)
    (repair,) = store.repair([RECIPE.reference])
    assert repair == (RECIPE.reference, {"x": [], "y": []}, False)
    create = Blocks()
    assert contents(store.get_or_create(RECIPE, create).artifact) == before
    assert create.made == []


def test_an_intact_chunk_in_the_wrong_place_costs_its_array(store, blocks):
    before = contents(blocks)
    shutil.copy(chunk(blocks, "x", 0), chunk(blocks, "x", 1))
    (repair,) = store.repair()
    assert repair.blocks == {"x": list(range(N_BLOCKS)), "y": []}
    assert contents(store.get_or_create(RECIPE, Blocks()).artifact) == before


@pytest.mark.parametrize("damage", ["stray", "altered", "missing"])
def test_what_can_be_mended_at_once(store, blocks, damage):
    before = contents(blocks)
    metadata = blocks.path / "arrays/x/zarr.json"
    if damage == "stray":
        (blocks.path / "arrays/x/c.9.9").write_text("")
        (blocks.path / "link").symlink_to("nowhere")
    elif damage == "altered":
        flip(metadata)
    else:
        metadata.unlink()
    assert store.verify() != []
    assert store.repair() == [(RECIPE.reference, {}, True)]
    assert contents(store.open(RECIPE.reference)) == before
    assert store.verify() == []


@pytest.mark.parametrize("name", ["manifest.json", "run.json"])
def test_without_its_documents_it_is_removed(store, blocks, name):
    before = contents(blocks)
    flip(blocks.path / name)
    assert store.repair() == [(RECIPE.reference, None, False)]
    assert not blocks.path.exists()
    create = Blocks()
    assert contents(store.get_or_create(RECIPE, create).artifact) == before
    assert create.made == list(range(N_BLOCKS))


def test_other_chunks_of_the_same_values_are_no_difference(store, caplog):
    class InChunks(Blocks):
        """Cuts the array that is put whole otherwise."""

        def __call__(self, writer: Writer) -> None:
            super().__call__(writer)
            writer.put_array("ok", np.arange(6), rows_per_block=self.height)

        height = 2

    made = store.get_or_create(RECIPE, InChunks()).artifact
    flip(made.path / "arrays/x/c.1.0")
    store.repair()
    again = InChunks()
    again.height = 6
    mended = store.get_or_create(RECIPE, again).artifact
    assert again.made == [1]
    assert mended.rows_per_block("ok") == 6
    assert mended.run["repaired"]["differs"] == []
    assert "came out differently" not in caplog.text


def test_what_was_not_made_in_blocks_is_removed(store, blocks):
    recipe = Recipe("codes", "1", {}, {"features": RECIPE.reference})
    codes = store.get_or_create(recipe, lambda w: w.put_array("codes", np.arange(9.0))).artifact
    flip(codes.path / "arrays/codes/c.0")
    assert store.repair([blocks.reference]) == []
    assert store.repair() == [(recipe.reference, None, False)]
    assert [artifact.reference for artifact in store.artifacts()] == [blocks.reference]


def test_an_unfinished_one_gives_way_to_what_is_repaired(store, blocks):
    before = contents(blocks)

    def begin(writer: Writer) -> None:
        writer.array("x", shape=(9, 2), dtype="float64", rows_per_block=2)
        write_block(writer.path, "x", 0, np.full((2, 2), 7.0))

    interrupted(store, RECIPE, begin, force=True)
    chunk(blocks, "x", 2).unlink()
    store.repair()
    create = Blocks()
    assert contents(store.get_or_create(RECIPE, create).artifact) == before
    assert create.made == [2]


def test_other_values_than_before_are_told(store, blocks, caplog):
    chunk(blocks, "x", 2).unlink()
    store.repair()
    with caplog.at_level(logging.WARNING, "storage.repair"):
        mended = store.get_or_create(RECIPE, Blocks(offset=1e-9)).artifact
    assert mended.run["repaired"]["differs"] == ["x", "y"]
    assert "x, y came out differently" in caplog.text
    assert mended.array("x")[4].tolist() == [2 + 1e-9] * 2


@pytest.mark.parametrize("damaged", [False, True])
def test_a_kill_between_sealing_and_publishing(store, monkeypatch, damaged):
    def killed(folder: Path, *arguments: object) -> None:
        if damaged:
            flip(folder / "arrays/y/c.1.0")
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr("storage.store.publish", killed)
        with pytest.raises(Killed):
            store.get_or_create(RECIPE, Blocks())
    assert list(store.references()) == []
    create = Blocks()
    artifact = store.get_or_create(RECIPE, create).artifact
    # It costs nothing; if it is damaged, all blocks, since their notes are gone.
    assert create.made == (list(range(N_BLOCKS)) if damaged else [])
    assert artifact.json("skipped.json")["4"] == ["4.png"]
    assert store.verify() == []


@pytest.mark.parametrize("damage", ["note", "no note", "chunk"])
def test_damage_to_what_a_killed_call_left(store, damage):
    partial = interrupted(store, RECIPE, Blocks())
    note = partial / "notes/skipped/2.note"
    create = Blocks()
    if damage == "note":
        flip(note)
    elif damage == "no note":
        note.unlink()
    else:
        flip(partial / "arrays/x/c.2.0")
        with pytest.raises(DamagedArtifactError, match="block 2"):
            store.get_or_create(RECIPE, create)
        assert create.made == []
    artifact = store.get_or_create(RECIPE, create).artifact
    assert create.made == [2]
    whole = Store(store.root / "whole").get_or_create(RECIPE, Blocks()).artifact
    assert contents(artifact) == contents(whole)
