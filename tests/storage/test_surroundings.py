"""What the file system may do to a store: fill up, refuse, be copied; and a clock that jumps."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from storage import Artifact, Recipe, Store, Writer, files, write_block
from tests.storage.artifacts import interrupted

ROOT = Path(__file__).parents[2]
BLOCKS = Recipe("blocks", "1")
GARBAGE = Recipe("garbage", "1")

# On a file system of 400 KiB: an artifact that does not fit beside another one; then the other is
# collected, on a disk without a free byte, and what was written before is gone on with.
FULL = """
import os, sys
import numpy as np
from pathlib import Path
from storage import Recipe, Store, StoreAccessError, write_block

root = Path(sys.argv[1])
store, made = Store(root / "store"), []
values = np.random.default_rng(0).integers(0, 256, (6, 32768), np.uint8)

def create(writer):
    writer.array("x", shape=values.shape, dtype="uint8", rows_per_block=1)
    for block in writer.pending_blocks("x"):
        write_block(writer.path, "x", block, values[block : block + 1])
        made.append(block)

old = Recipe("garbage", "1")
store.get_or_create(old, lambda writer: writer.put_bytes("old", bytes(200_000)))
try:
    store.get_or_create(Recipe("blocks", "1"), create)
except StoreAccessError as error:
    print("full" if "disk is full" in str(error) else error)
print(len(made) in range(1, 6), store.find(Recipe("blocks", "1").reference), store.verify())
try:  # every byte that is left
    with open(root / "rest", "wb") as rest:
        while rest.write(b"0" * 512):
            rest.flush()
except OSError:
    pass
partial = store.root / "blocks" / (Recipe("blocks", "1").key + ".partial")
kept = [path.name for path in partial.glob("arrays/x/c.*")]
partial.rename(store.root / "kept")  # a collection takes what is unfinished
print(store.gc([]) == [store.path(old.reference)], len(kept) == len(made))
(store.root / "kept").rename(partial)
(root / "rest").unlink()
artifact, cached = store.get_or_create(Recipe("blocks", "1"), create)
print(made, cached, (artifact.array("x") == values).all(), store.verify())
"""


def ran(*command: object) -> subprocess.CompletedProcess[str]:
    """Run a command with the project's packages, which writes no compiled files."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    words = [*map(str, command)]
    return subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True)


def test_a_full_disk(tmp_path):
    """A real one, in a mount of its own."""
    mount = f"mount -t tmpfs -o size=400k tmpfs {tmp_path} && exec '{sys.executable}' -c \"$0\""
    mount += f" '{tmp_path}'"
    if ran("unshare", "-m", "true").returncode:
        pytest.skip("NOT TESTED: a full file system of its own needs root (unshare -m)")
    done = ran("unshare", "-m", "sh", "-c", mount, FULL)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "full",
        "True None []",
        "True True",
        "[0, 1, 2, 3, 4, 5] False True []",
    ], done.stdout


def make(store: Store, recipe: Recipe) -> Artifact:
    return store.get_or_create(recipe, lambda w: w.put_array("x", np.arange(9.0))).artifact


def test_collecting_makes_room_where_there_is_none(store, monkeypatch):
    garbage, kept = make(store, GARBAGE), make(store, BLOCKS)
    mkdir = Path.mkdir

    def full(path: Path, *arguments: Any, **options: Any) -> None:
        if path.name == ".trash":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        mkdir(path, *arguments, **options)

    monkeypatch.setattr(Path, "mkdir", full)
    assert store.gc([kept.reference]) == [garbage.path]
    assert list(garbage.path.parent.iterdir()) == []
    assert store.verify() == []


def test_a_file_that_vanishes_while_the_folder_is_flushed(tmp_path):
    """A worker that was given up may write its block once more."""
    (tmp_path / "gone").symlink_to("nowhere")
    (tmp_path / "here").write_text("x")
    files.sync_tree(tmp_path)


# As an ordinary user: root may write everywhere.
REFUSED = """
import os, sys
from pathlib import Path
from storage import Recipe, Reference, Store, StoreAccessError

Store(sys.argv[1]).verify()  # imports what that user may not
if os.getuid() == 0:
    os.setgroups([])
    os.setuid(65534)
store = Store(sys.argv[1])
artifact = store.open(Reference.parse(sys.argv[2]))
print(artifact.array("x").sum(), len(store.verify()))
for what in ("make", "repair", "collect"):
    try:
        if what == "make":
            store.get_or_create(Recipe("new", "1"), lambda writer: None)
        elif what == "repair":
            store.repair()
        else:
            store.gc([])
    except StoreAccessError as error:
        print(what, str(error).split(": ", 1)[1])
"""


@pytest.mark.parametrize("locks", [True, False], ids=["locks", "no locks"])
def test_a_store_that_may_only_be_read(tmp_path, locks):
    # Not below tmp_path, which other users may not enter.
    folder = Path(f"/var/tmp/cppcl-{os.getpid()}-{tmp_path.name}")
    store = Store(folder / "store")
    try:
        artifact = make(store, BLOCKS)
        if not locks:
            shutil.rmtree(store.root / "locks")
        for path in [folder, *folder.rglob("*")]:
            path.chmod(0o555 if path.is_dir() else 0o444)
        done = ran(sys.executable, "-c", REFUSED, store.root, artifact.reference)
    finally:
        for path in [folder, *folder.rglob("*")]:
            path.chmod(0o755)
        shutil.rmtree(folder)
    hint = "Permission denied. Change the owner or mode of the folder, or use another workspace."
    expected = ["36.0 0", f"make {hint}", f"repair {hint}", f"collect {hint}"]
    assert done.stdout.splitlines() == expected, done.stderr


def test_a_store_goes_on_where_it_is_copied_to(store, tmp_path, recipe, create):
    artifact = store.get_or_create(recipe, create).artifact

    def begin(writer: Writer) -> None:
        writer.array("x", shape=(4,), dtype="int64", rows_per_block=2)
        write_block(writer.path, "x", 0, np.array([0, 1]))

    interrupted(store, BLOCKS, begin)
    copy = Store(shutil.copytree(store.root, tmp_path / "another" / "place"))
    shutil.rmtree(store.root)
    assert copy.verify() == []
    assert copy.get_or_create(recipe, create).cached
    assert copy.open(artifact.reference).text("pages/report.html") == "<p>ä</p>"

    def go_on(writer: Writer) -> None:
        writer.array("x", shape=(4,), dtype="int64", rows_per_block=2)
        assert writer.pending_blocks("x") == [1]
        write_block(writer.path, "x", 1, np.array([2, 3]))

    made = copy.get_or_create(BLOCKS, go_on).artifact
    assert made.array("x").tolist() == [0, 1, 2, 3]
    assert copy.gc([recipe.reference]) == [made.path]


def test_a_copy_that_was_cut_short_is_not_read_and_can_be_mended(store, tmp_path, recipe, create):
    """The manifest may be among the first files to arrive."""
    artifact = store.get_or_create(recipe, create).artifact
    whole = sorted(path for path in artifact.path.rglob("*") if path.is_file())
    for arrived in range(0, len(whole), 3):
        copy = Store(tmp_path / f"copy {arrived}")
        for path in reversed(whole[-arrived:] if arrived else []):
            target = copy.root / path.relative_to(store.root)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
        copy.path(recipe.reference).mkdir(parents=True, exist_ok=True)
        assert copy.verify() != []
        assert not copy.repair()[0].whole
        assert copy.verify() == []
        mended = copy.get_or_create(recipe, create).artifact
        assert mended.manifest == artifact.manifest
        assert copy.verify() == []


def test_a_clock_that_jumps_changes_nothing(store, tmp_path, recipe, create):
    artifact = store.get_or_create(recipe, create).artifact
    for second in (0, 2**31 + 5):
        for path in [artifact.path, *artifact.path.rglob("*")]:
            os.utime(path, (second, second))
        assert store.get_or_create(recipe, create).cached
        assert store.verify() == []
        assert store.gc([recipe.reference]) == []
