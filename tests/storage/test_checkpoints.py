"""Arrays that outlive a killed call of `create`, and are gone once it has published."""

from __future__ import annotations

import errno
from typing import Any

import numpy as np
import pytest

from storage import Recipe, StoreAccessError, Writer, files
from storage.unfinished import load_checkpoint
from tests.storage.artifacts import flip, interrupted, tree

RECIPE = Recipe("train", "1", {"alpha": 0.1})
STATE = {
    "codes": np.arange(12, dtype=np.float32).reshape(3, 4),
    "file": np.array([1.5]),
    "allow_pickle": np.array([True, False]),
    "empty": np.empty((0, 3)),
}


def save(writer: Writer) -> None:
    assert writer.load_checkpoint("training") is None
    writer.save_checkpoint("training", {"codes": np.zeros(2)})
    writer.save_checkpoint("training", STATE)


def test_the_last_checkpoint_is_found_and_not_published(store):
    interrupted(store, RECIPE, save)
    found: list[Any] = []

    def go_on(writer: Writer) -> None:
        found.append(writer.load_checkpoint("training"))
        found.append(writer.load_checkpoint("another"))
        writer.put_text("done.txt", "done")

    artifact, _ = store.get_or_create(RECIPE, go_on)
    state, nothing = found
    assert nothing is None
    assert state.keys() == STATE.keys()
    for name, array in STATE.items():
        assert state[name].dtype == array.dtype
        np.testing.assert_array_equal(state[name], array)
    assert tree(artifact.path).keys() == {"files/done.txt", "manifest.json", "run.json"}
    assert store.verify() == []


@pytest.mark.parametrize("damage", ["cut", "emptied", "another file"])
def test_a_damaged_checkpoint_is_as_good_as_none(store, damage):
    partial = interrupted(store, RECIPE, save)
    (path,) = partial.glob("checkpoints/*")
    data = path.read_bytes()
    path.write_bytes({"cut": data[:-30], "emptied": b"", "another file": b"codes"}[damage])

    def go_on(writer: Writer) -> None:
        assert writer.load_checkpoint("training") is None
        assert not path.exists()
        writer.put_text("done.txt", "done")

    store.get_or_create(RECIPE, go_on)


def test_no_flipped_byte_of_a_checkpoint_passes(store):
    """Headers too, which the checksums of the format do not guard."""
    partial = interrupted(store, RECIPE, save)
    (path,) = partial.glob("checkpoints/*")
    assert load_checkpoint(partial, "training") is not None
    for position in range(0, path.stat().st_size, 7):
        intact = flip(path, position, position % 8)
        assert load_checkpoint(partial, "training") is None, position
        path.write_bytes(intact)


def test_force_starts_anew(store):
    interrupted(store, RECIPE, save)

    def start(writer: Writer) -> None:
        assert writer.load_checkpoint("training") is None
        writer.put_text("done.txt", "done")

    store.get_or_create(RECIPE, start, force=True)


def test_a_checkpoint_that_cannot_be_written_leaves_the_one_before(store, monkeypatch):
    def full(stream: Any, **arrays: Any) -> None:
        stream.write(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    def create(writer: Writer) -> None:
        writer.save_checkpoint("training", STATE)
        with monkeypatch.context() as patch:
            patch.setattr(np, "savez", full)
            with pytest.raises(StoreAccessError, match="disk is full"):
                writer.save_checkpoint("training", {})
        (path,) = (writer.path / "checkpoints").iterdir()
        assert not path.name.endswith(files.TEMPORARY_SUFFIX)
        state = writer.load_checkpoint("training")
        np.testing.assert_array_equal(state["codes"], STATE["codes"])
        writer.put_text("done.txt", "done")

    store.get_or_create(RECIPE, create)


def test_objects_are_refused(store):
    def create(writer: Writer) -> None:
        with pytest.raises(ValueError, match="pickle"):
            writer.save_checkpoint("training", {"labels": np.array([None], dtype=object)})
        writer.put_text("done.txt", "done")

    store.get_or_create(RECIPE, create)
