"""Block grids: whatever the grid and the order of writing, the rows come back exactly."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

from storage import (
    BlockError,
    DamagedArtifactError,
    Recipe,
    RecipeError,
    Store,
    Writer,
    write_block,
    write_block_note,
)
from storage.blocks import DEFAULT_BLOCK_BYTES, Layout, StoredArray, raw_bytes
from tests.storage.artifacts import interrupted

DTYPES = ["bool", "float16", "float32", "float64"]
DTYPES += [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]


@st.composite
def arrays(draw: st.DrawFn) -> np.ndarray:
    dtype = draw(st.sampled_from(DTYPES))
    tail = draw(st.lists(st.integers(0, 3), max_size=2))
    shape = (draw(st.integers(0, 30)), *tail)
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    # Mostly zeros, so that whole blocks of zeros occur.
    return (rng.integers(0, 2, shape) * rng.normal(0, 9, shape)).astype(dtype)


@settings(max_examples=60, deadline=None)
@given(values=arrays(), rows_per_block=st.integers(1, 40), data=st.data())
def test_blocks_reassemble_exactly(tmp_path_factory, values, rows_per_block, data):
    store = Store(tmp_path_factory.mktemp("grid"))

    def create(writer: Writer) -> None:
        writer.array("x", shape=values.shape, dtype=values.dtype, rows_per_block=rows_per_block)
        blocks = writer.pending_blocks("x")
        assert len(blocks) == writer.n_blocks("x")
        if values.size:
            assert len(blocks) == -(-len(values) // rows_per_block)
        for block in data.draw(st.permutations(blocks)):
            rows = values[block * rows_per_block : (block + 1) * rows_per_block]
            write_block(str(writer.path), "x", block, rows)
        assert writer.pending_blocks("x") == []

    artifact = store.get_or_create(Recipe("grid", "1"), create).artifact
    read = artifact.array("x")
    assert read.dtype == values.dtype
    np.testing.assert_array_equal(read, values)
    zarrs = np.asarray(zarr.open_array(artifact.path / "arrays/x", mode="r")[...])
    assert zarrs.dtype == values.dtype
    np.testing.assert_array_equal(zarrs, values)
    assert artifact.shape("x") == values.shape
    n_rows = len(values)
    if n_rows:
        numbers = data.draw(st.lists(st.integers(-n_rows, n_rows - 1), max_size=12))
        np.testing.assert_array_equal(
            artifact.rows("x", numbers), values[np.array(numbers, np.int64)]
        )
    part = slice(*data.draw(st.tuples(*[st.none() | st.integers(-35, 35)] * 2)))
    np.testing.assert_array_equal(artifact.rows("x", part), values[part])
    assert store.verify() == []


def test_rows_read_only_their_blocks(store, recipe, monkeypatch):
    values = np.arange(100, dtype=np.float32)
    artifact = store.get_or_create(
        recipe, lambda writer: writer.put_array("x", values, rows_per_block=10)
    ).artifact
    read: list[int] = []
    read_block = StoredArray.read_block

    def counted(self: StoredArray, block: int) -> np.ndarray:
        read.append(block)
        return read_block(self, block)

    monkeypatch.setattr(StoredArray, "read_block", counted)
    np.testing.assert_array_equal(artifact.rows("x", [95, 3, 99, 3]), [95, 3, 99, 3])
    assert sorted(read) == [0, 9]


@pytest.mark.parametrize("rows", [[10], [-11], np.array([[1]]), [1.0], np.array([True] * 10)])
def test_rows_that_are_no_rows(store, recipe, rows):
    artifact = store.get_or_create(recipe, lambda w: w.put_array("x", np.zeros(10))).artifact
    with pytest.raises(IndexError, match="'x'"):
        artifact.rows("x", rows)


@pytest.mark.parametrize(
    ("block", "values"),
    [
        (0, np.zeros((3, 2), np.float32)),
        (2, np.zeros((4, 2), np.float32)),
        (0, np.zeros((4, 3), np.float32)),
        (0, np.zeros((4, 2), np.float64)),
        (3, np.zeros((4, 2), np.float32)),
        (-1, np.zeros((4, 2), np.float32)),
    ],
)
def test_wrong_block_is_refused_and_nothing_written(store, recipe, block, values):
    def create(writer: Writer) -> None:
        writer.array("x", shape=(10, 2), dtype=np.float32, rows_per_block=4)
        with pytest.raises(BlockError, match=f"block {block} "):
            write_block(writer.path, "x", block, values)
        assert writer.pending_blocks("x") == [0, 1, 2]

    interrupted(store, recipe, create)


def test_undeclared_array(store, recipe):
    def create(writer: Writer) -> None:
        with pytest.raises(BlockError, match="'x'"):
            writer.pending_blocks("x")
        with pytest.raises(BlockError, match="Writer"):
            write_block(writer.path, "x", 0, np.zeros(1))
        writer.put_array("x", np.zeros(1))
        with pytest.raises(BlockError, match="already declared"):
            writer.put_array("x", np.zeros(1))

    store.get_or_create(recipe, create)


@pytest.mark.parametrize(
    ("values", "rows_per_block", "named"),
    [
        (np.array(["a"]), None, "<U1"),
        (np.zeros(2, complex), None, "complex128"),
        (np.array(1.0), None, "shape"),
        (np.zeros(2), 0, "rows_per_block is 0"),
    ],
)
def test_arrays_that_cannot_be_stored(store, recipe, values, rows_per_block, named):
    with pytest.raises(BlockError, match=named):
        store.get_or_create(
            recipe, lambda writer: writer.put_array("x", values, rows_per_block=rows_per_block)
        )


def test_size_of_blocks():
    with pytest.raises(BlockError, match="268435456 bytes"):  # too large for the codecs
        Layout.declare("x", (2**20, 2**10), np.float64, 2**18)
    layout = Layout.declare("x", (100_000, 1280), np.float32, None)
    assert DEFAULT_BLOCK_BYTES / 2 < layout.rows_per_block * 1280 * 4 <= DEFAULT_BLOCK_BYTES
    assert Layout.declare("x", (3, 2), np.float32, None).rows_per_block == 3


@pytest.mark.parametrize("name", ["", ".hidden", "a/b", "..", "-x", "naïve", "a b"])
def test_bad_names(store, recipe, name):
    with pytest.raises(RecipeError, match="cannot be a name"):
        store.get_or_create(recipe, lambda writer: writer.put_array(name, np.zeros(1)))
    for bad in {name, f"{name}/x", "/x", "a/../b"} - {"a/b", "a/b/x"}:
        with pytest.raises(RecipeError, match="cannot be a name"):
            store.get_or_create(recipe, lambda writer, bad=bad: writer.put_text(bad, ""))


def test_big_endian_and_strided_values(store, recipe):
    values = np.arange(24, dtype=">f4").reshape(4, 6)[::-1, ::2]
    artifact = store.get_or_create(recipe, lambda w: w.put_array("x", values)).artifact
    assert artifact.dtype("x") == np.dtype("<f4")
    np.testing.assert_array_equal(artifact.array("x"), values)
    assert bytes(raw_bytes(values)) == values.astype("<f4").tobytes()


def test_block_notes_survive_and_are_not_published(store, recipe):
    def create(writer: Writer) -> None:
        writer.array("x", shape=(4,), dtype=bool, rows_per_block=2)
        for block in (1, 0):
            write_block_note(writer.path, "x", block, {"skipped": np.int64(block)})
            write_block(writer.path, "x", block, np.ones(2, bool))
        assert list(writer.block_notes("x").items()) == [(0, {"skipped": 0}), (1, {"skipped": 1})]
        writer.put_json("skipped.json", writer.block_notes("x")[1])

    artifact = store.get_or_create(recipe, create).artifact
    assert artifact.json("skipped.json") == {"skipped": 1}
    assert not (artifact.path / "notes").exists()
    assert artifact.rows_per_block("x") == 2


class TestNotesThatEveryBlockHas:
    """A block is done when its chunk and its note are there, of one and the same making."""

    def begin(self, writer: Writer) -> list[int]:
        writer.array("x", shape=(6,), dtype="int64", rows_per_block=2)
        return writer.pending_blocks("x", notes=["of"])

    def make(self, writer: Writer, block: int, value: int) -> None:
        write_block_note(writer.path, "of", block, value)
        write_block(writer.path, "x", block, np.full(2, value))

    def test_a_note_that_is_lost_before_all_are_read_is_missed(self, store, recipe):
        def create(writer: Writer) -> None:
            for block in self.begin(writer):
                self.make(writer, block, 0)
            (writer.path / "notes/of/1.note").unlink()
            writer.block_notes("of")

        with pytest.raises(DamagedArtifactError, match=r"1\.note is missing\. Run again"):
            store.get_or_create(recipe, create)
        seen: list[int] = []
        interrupted(store, recipe, lambda writer: seen.extend(self.begin(writer)))
        assert seen == [1]

    def test_a_new_note_never_stands_for_an_old_chunk(self, store, recipe):
        def all_but_a_note(writer: Writer) -> None:
            for block in self.begin(writer):
                self.make(writer, block, 1)
            (writer.path / "notes/of/2.note").unlink()

        def killed_after_the_note(writer: Writer) -> None:
            assert self.begin(writer) == [2]
            write_block_note(writer.path, "of", 2, 5)

        interrupted(store, recipe, all_but_a_note)
        interrupted(store, recipe, killed_after_the_note)

        def create(writer: Writer) -> None:
            assert self.begin(writer) == [2]
            self.make(writer, 2, 5)
            assert writer.block_notes("of") == {0: 1, 1: 1, 2: 5}

        artifact = store.get_or_create(recipe, create).artifact
        assert artifact.array("x").tolist() == [1, 1, 1, 1, 5, 5]
        assert artifact.run["block_notes"] == {"of": {"0": 1, "1": 1, "2": 5}}

    def test_notes_that_nobody_asks_for_are_left_out(self, store, recipe):
        def create(writer: Writer) -> None:
            write_block_note(writer.path, "old", 0, 1)
            next((writer.path / "notes/old").iterdir()).write_text("damaged")
            for block in self.begin(writer):
                self.make(writer, block, 1)

        run = store.get_or_create(recipe, create).artifact.run
        assert list(run["block_notes"]) == ["of"]
        assert list(run["block_notes"]["of"]) == ["0", "1", "2"]

    def test_a_worker_that_was_given_up_makes_nothing_anew(self, store, recipe):
        partial: list[Path] = []

        def create(writer: Writer) -> None:
            partial.append(writer.path)
            for block in self.begin(writer):
                self.make(writer, block, 1)

        store.get_or_create(recipe, create)
        with pytest.raises(BlockError, match="is not an artifact being written"):
            write_block_note(partial[0], "of", 1, 2)
        with pytest.raises(BlockError, match="is not an array being written"):
            write_block(partial[0], "x", 1, np.full(2, 2))
        assert not partial[0].exists()


def test_digest_is_computed_in_bounded_memory(store, recipe, create, tmp_path):
    block_bytes, n_blocks = 2**20, 48
    block = np.random.default_rng(0).standard_normal((1, block_bytes // 8))

    def create_large(writer: Writer) -> None:
        writer.array("x", shape=(n_blocks, *block.shape[1:]), dtype=float, rows_per_block=1)
        for number in range(n_blocks):
            write_block(writer.path, "x", number, block)
        tracemalloc.reset_peak()

    Store(tmp_path / "warm").get_or_create(recipe, create)  # imports do not count
    tracemalloc.start()
    try:
        store.get_or_create(recipe, create_large)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * block_bytes
