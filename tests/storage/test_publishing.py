"""An artifact is whole or not there: kill, resume, races, replacement."""

from __future__ import annotations

import errno
import logging
import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from storage import (
    BlockError,
    DamagedArtifactError,
    Recipe,
    Store,
    StoreAccessError,
    Writer,
    files,
    write_block,
)
from tests.storage.artifacts import interrupted, tree

N_BLOCKS = 6
RECIPE = Recipe("blocks", "1", {"n": N_BLOCKS})

# Writes blocks, says so after each, and once `stop` of them are there waits to be killed.
WRITE_AND_STOP = """
import sys
import numpy as np
from storage import Recipe, Store, write_block

root, stop = sys.argv[1], int(sys.argv[2])

def create(writer):
    writer.array("x", shape=(12, 2), dtype="float32", rows_per_block=2)
    for block in writer.pending_blocks("x"):
        if block == stop:
            (writer.path / "arrays" / "x" / "c.9.0.half-written.partial").write_bytes(b"half")
            print("stopped", flush=True)
            sys.stdin.readline()
        write_block(writer.path, "x", block, np.full((2, 2), block, np.float32))

Store(root).get_or_create(Recipe("blocks", "1", {"n": 6}), create)
print("published", flush=True)
"""

# Holds the lock inside `create` until told to go on; says so if it has to wait for the lock.
CREATE_WHEN_TOLD = """
import logging, sys
from storage import Recipe, Store

logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(message)s")

def create(writer):
    print("creating", flush=True)
    sys.stdin.readline()
    writer.put_text("who.txt", sys.argv[2])

outcome = Store(sys.argv[1]).get_or_create(Recipe("race", "1"), create)
print(outcome.cached, outcome.artifact.text("who.txt"), flush=True)
"""


def expected() -> np.ndarray:
    return np.repeat(np.arange(N_BLOCKS, dtype=np.float32), 2)[:, None] * np.ones((1, 2), "f4")


@pytest.mark.parametrize("stop", [0, 3, 5])
def test_killed_run_is_resumed(store, child, stop):
    process = child(WRITE_AND_STOP, store.root, stop)
    assert process.stdout.readline() == "stopped\n"
    process.kill()
    process.wait()
    assert store.find(RECIPE.reference) is None
    assert list(store.artifacts()) == []
    made = []

    def create(writer: Writer) -> None:
        writer.array("x", shape=(12, 2), dtype="float32", rows_per_block=2)
        for block in writer.pending_blocks("x"):
            made.append(block)
            write_block(writer.path, "x", block, np.full((2, 2), block, np.float32))

    outcome = store.get_or_create(RECIPE, create)
    assert made == list(range(stop, N_BLOCKS))
    assert not outcome.cached
    assert outcome.artifact.run["resumed"]
    np.testing.assert_array_equal(outcome.artifact.array("x"), expected())
    assert not list(store.root.rglob("*.partial"))  # also not the half-written chunk
    assert store.verify() == []


def test_of_two_processes_one_makes_it_and_the_other_waits(store, child):
    first = child(CREATE_WHEN_TOLD, store.root, "first")
    assert first.stdout.readline() == "creating\n"
    second = child(CREATE_WHEN_TOLD, store.root, "second")
    assert second.stdout.readline().startswith("waiting for ")
    first.communicate("go on\n")
    assert second.communicate()[0] == "True first\n"
    assert (first.returncode, second.returncode) == (0, 0)


def test_lock_of_a_killed_process_is_free(store, child):
    holder = child(CREATE_WHEN_TOLD, store.root, "killed")
    assert holder.stdout.readline() == "creating\n"
    holder.kill()
    holder.wait()
    outcome = store.get_or_create(Recipe("race", "1"), lambda w: w.put_text("who.txt", "next"))
    assert (outcome.cached, outcome.artifact.text("who.txt")) == (False, "next")


def test_threads_exclude_each_other_too(store, caplog):
    waiting, outcomes, made = threading.Event(), [], []

    class Announce(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            waiting.set()

    def create(writer: Writer) -> None:
        made.append(writer)
        if len(made) == 1:
            other.start()
            assert waiting.wait(30)
        writer.put_text("x", "y")

    other = threading.Thread(target=lambda: outcomes.append(store.get_or_create(RECIPE, create)))
    handler = Announce()
    files.logger.addHandler(handler)
    caplog.set_level(logging.INFO, files.logger.name)
    try:
        outcomes.append(store.get_or_create(RECIPE, create))
        other.join(30)
    finally:
        files.logger.removeHandler(handler)
    assert sorted(outcome.cached for outcome in outcomes) == [False, True]
    assert len(made) == 1


def test_exception_leaves_the_blocks_and_nothing_published(store, recipe):
    def begin(writer: Writer) -> None:
        writer.array("x", shape=(4,), dtype="int64", rows_per_block=2)
        write_block(writer.path, "x", 1, np.array([2, 3]))
        writer.put_text("leftover", "x")

    interrupted(store, recipe, begin)
    assert store.find(recipe.reference) is None

    def go_on(writer: Writer) -> None:
        writer.array("x", shape=(4,), dtype="int64", rows_per_block=2)
        assert writer.pending_blocks("x") == [0]
        write_block(writer.path, "x", 0, np.array([0, 1]))

    artifact = store.get_or_create(recipe, go_on).artifact
    np.testing.assert_array_equal(artifact.array("x"), [0, 1, 2, 3])
    assert artifact.names == ["x"]
    assert not (artifact.path / "files").exists()


@pytest.mark.parametrize(
    "other",
    [
        {"shape": (6,), "dtype": "int64", "rows_per_block": 2},
        {"shape": (4,), "dtype": "int32", "rows_per_block": 2},
        {"shape": (4,), "dtype": "int64", "rows_per_block": 1},
    ],
)
def test_another_grid_starts_afresh(store, recipe, other):
    def begin(writer: Writer) -> None:
        writer.array("x", **other)
        values = np.zeros(other["rows_per_block"], other["dtype"])
        write_block(writer.path, "x", 0, values)

    interrupted(store, recipe, begin)

    def create(writer: Writer) -> None:
        writer.array("x", shape=(4,), dtype="int64", rows_per_block=2)
        assert writer.pending_blocks("x") == [0, 1]
        for block in (0, 1):
            write_block(writer.path, "x", block, np.array([5, 6]))

    artifact = store.get_or_create(recipe, create).artifact
    np.testing.assert_array_equal(artifact.array("x"), [5, 6, 5, 6])


def test_unwritten_block_is_not_published(store, recipe):
    def create(writer: Writer) -> None:
        writer.array("x", shape=(6,), dtype="int64", rows_per_block=2)
        write_block(writer.path, "x", 0, np.zeros(2, np.int64))

    with pytest.raises(BlockError, match="first is block 1"):
        store.get_or_create(recipe, create)
    assert store.find(recipe.reference) is None


@pytest.mark.parametrize("damage", ["flip", "truncate", "empty"])
def test_block_damaged_before_publishing_is_caught_and_made_again(store, recipe, damage):
    made = []

    def create(writer: Writer) -> None:
        writer.array("x", shape=(6,), dtype="int64", rows_per_block=2)
        pending = writer.pending_blocks("x")
        made.append(pending)
        for block in pending:
            write_block(writer.path, "x", block, np.array([block, 7]))
        chunk = writer.path / "arrays" / "x" / "c.1"
        if len(made) == 1:
            data = bytearray(chunk.read_bytes())
            data[5] ^= 4
            chunk.write_bytes({"flip": data, "truncate": data[:-3], "empty": b""}[damage])

    error = BlockError if damage == "empty" else DamagedArtifactError
    with pytest.raises(error, match="block 1"):
        store.get_or_create(recipe, create)
    artifact = store.get_or_create(recipe, create).artifact
    assert made == [[0, 1, 2], [1]]
    np.testing.assert_array_equal(artifact.array("x"), [0, 7, 1, 7, 2, 7])


def test_force_replaces_while_the_old_one_stays_readable(store, artifact, recipe, create):
    before = artifact.array("features")
    assert artifact.run["notes"] == {"device": "cpu"}

    def create_again(writer: Writer) -> None:
        np.testing.assert_array_equal(store.open(recipe.reference).array("features"), before)
        create(writer)
        writer.note(device="gpu")

    outcome = store.get_or_create(recipe, create_again, force=True)
    assert not outcome.cached
    assert outcome.artifact.run["notes"] == {"device": "gpu"}
    assert store.verify() == []
    assert not list((store.root / ".trash").iterdir())
    assert [path.name for path in (store.root / "features").iterdir()] == [recipe.key]


def test_failed_force_leaves_the_old_one(store, artifact, recipe):
    made = []

    def create(writer: Writer) -> None:
        writer.array("x", shape=(2,), dtype="int64", rows_per_block=1)
        made.append(writer.pending_blocks("x"))
        write_block(writer.path, "x", 0, np.zeros(1, np.int64))

    for _ in range(2):
        interrupted(store, recipe, create, force=True)
    assert made == [[0, 1], [0, 1]]  # no block is reused
    assert store.verify() == []
    assert store.get_or_create(recipe, create).cached


def test_reader_never_sees_a_gap_while_it_is_replaced(store, artifact, recipe, create):
    stop, errors, reads = threading.Event(), [], []

    def read() -> None:
        while not stop.is_set():
            try:
                reads.append(store.open(recipe.reference).bytes("picture.png") is not None)
            except Exception as error:
                errors.append(error)
                return

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(6):
        store.get_or_create(recipe, create, force=True)
    stop.set()
    reader.join()
    assert errors == []
    assert reads


def test_replacement_without_an_atomic_exchange(store, artifact, recipe, create, monkeypatch):
    monkeypatch.setattr(files, "_exchange", lambda first, second: False)
    assert not store.get_or_create(recipe, create, force=True).cached
    assert store.verify() == []
    monkeypatch.undo()
    monkeypatch.setattr(files.sys, "platform", "darwin")
    assert not files._exchange(store.root, artifact.path)


def test_a_file_is_replaced_by_one_rename(tmp_path, monkeypatch):
    path, seen = tmp_path / "x", []
    path.write_bytes(b"old")
    write_bytes = Path.write_bytes

    def written(other: Path, data: bytes) -> int:
        size = write_bytes(other, data)
        seen.append(path.read_bytes())
        return size

    monkeypatch.setattr(Path, "write_bytes", written)
    files.write_atomically(path, b"new")
    assert (seen, path.read_bytes(), list(tmp_path.iterdir())) == ([b"old"], b"new", [path])


@pytest.mark.parametrize("way", ["new", "exchange", "two renames"])
def test_all_is_flushed_before_it_is_published_and_its_new_name_after(
    store, recipe, create, monkeypatch, way
):
    destination = store.path(recipe.reference)
    if way != "new":
        store.get_or_create(recipe, create)
    events: list[int | str] = []
    fsync, rename, exchange = os.fsync, Path.rename, files._exchange

    def flush(descriptor: int) -> None:
        fsync(descriptor)
        events.append(os.fstat(descriptor).st_ino)

    def renamed(path: Path, target: Path) -> Path:
        if target == destination:
            events.append("published")
        return rename(path, target)

    def exchanged(first: Path, second: Path) -> bool:
        if way == "two renames":
            return False
        events.append("published")
        return exchange(first, second)

    monkeypatch.setattr(os, "fsync", flush)
    monkeypatch.setattr(Path, "rename", renamed)
    monkeypatch.setattr(files, "_exchange", exchanged)
    store.get_or_create(recipe, create, force=True)
    at = {event: number for number, event in enumerate(events)}
    for path in [destination, *destination.rglob("*")]:
        assert at[path.stat().st_ino] < at["published"], path
        if path != destination:  # a folder is flushed after the files that it names
            assert path.is_dir() or at[path.stat().st_ino] < at[path.parent.stat().st_ino], path
    assert events[-2:] == ["published", destination.parent.stat().st_ino]


def test_same_recipe_gives_the_same_bytes(tmp_path, artifact, recipe, create):
    other = Store(tmp_path / "other").get_or_create(recipe, create).artifact
    files_here = tree(artifact.path, without="run.json")
    assert len(files_here) == 18
    assert tree(other.path, without="run.json") == files_here


@pytest.mark.parametrize(
    "number", [errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS, errno.EIO, errno.ESTALE]
)
@pytest.mark.parametrize("target", [".c.", ".m.json.", "fsync"])
def test_refusal_by_the_file_system_names_place_and_hint(
    store, recipe, monkeypatch, number, target
):
    open_path = Path.open

    def refuse(path: Path, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        if "w" in mode and path.name.startswith(target):
            raise OSError(number, os.strerror(number), str(path))
        return open_path(path, mode, *arguments, **options)

    def fail(descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    def create(writer: Writer) -> None:
        writer.put_array("x", np.zeros(3))
        writer.put_json("m.json", {})

    with monkeypatch.context() as patch:
        if target == "fsync":
            patch.setattr(os, "fsync", fail)
        else:
            patch.setattr(Path, "open", refuse)
        with pytest.raises(StoreAccessError, match=rf"{os.strerror(number)}\. \w+ .*") as caught:
            store.get_or_create(recipe, create)
    assert str(store.root) in str(caught.value)
    assert store.find(recipe.reference) is None
    assert store.get_or_create(recipe, create).artifact.array("x").tolist() == [0, 0, 0]


def test_file_system_without_locks(store, recipe, monkeypatch):
    def flock(descriptor: int, operation: int) -> None:
        if operation != files.fcntl.LOCK_UN:
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(files.fcntl, "flock", flock)
    with pytest.raises(StoreAccessError, match=r"runs\.lock: No locks available\. The file"):
        store.get_or_create(recipe, lambda writer: None)


def test_other_errors_of_the_file_system_pass(store, recipe):
    def create(writer: Writer) -> None:
        Path("no such picture.png").read_bytes()

    with pytest.raises(FileNotFoundError):
        store.get_or_create(recipe, create)
    (store.root.parent / "file").write_text("")
    with pytest.raises(OSError, match=r"Not a directory|File exists"):
        Store(store.root.parent / "file").get_or_create(recipe, create)
