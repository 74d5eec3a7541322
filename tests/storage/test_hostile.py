"""Artifacts made to do harm, with digests made anew: named, bounded, and no others suffer."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numcodecs import CRC32C, Zstd

from storage import Artifact, DamagedArtifactError, Recipe, Store
from storage.blocks import _content_size
from storage.files import sealed, sha256_of_file

MISSING = object()


def reseal(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change a sealed document and make its digest anew."""
    document = json.loads(path.read_bytes())
    document.pop("sha256")
    change(document)
    path.write_bytes(sealed(document))


def entry(*place: str, value: Any) -> Callable[[dict[str, Any]], object]:
    """Function that sets, or removes, what lies at a place in a document."""

    def change(document: dict[str, Any]) -> None:
        for name in place[:-1]:
            document = document[name]
        if value is MISSING:
            del document[place[-1]]
        else:
            document[place[-1]] = value

    return change


@pytest.fixture
def bystander(store, create) -> Artifact:
    """An artifact that is whole, and after all others."""
    return store.get_or_create(Recipe("zz", "1"), create).artifact


def found(store: Store, artifact: Artifact, bystander: Artifact) -> str:
    """Verify all of a store in bounded time and memory; returns what is wrong with an artifact."""
    flipped = bystander.path / "files/picture.png"
    flipped.write_bytes(b"altered")
    start = time.process_time()
    tracemalloc.start()
    problems = store.verify()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert time.process_time() - start < 5
    assert peak < 100e6
    assert [p.name for p in problems if p.reference == bystander.reference] == ["picture.png"]
    messages = [p.message for p in problems if p.reference == artifact.reference]
    assert messages
    assert all(str(artifact.path) in message for message in messages)
    return messages[0]


VALUES = [None, 3, -1, 1e300, "x", "../../x", [], [3, 4], {}, {"a": {"b": 1}}, 10**40, MISSING]
PLACES = [
    ("manifest.json", (name,)) for name in ("stage", "version", "parameters", "arrays", "files")
]
PLACES += [("manifest.json", ("inputs",))]
PLACES += [("manifest.json", ("arrays", "features", k)) for k in ("shape", "dtype", "chunks")]
PLACES += [
    ("manifest.json", ("arrays", "features", "sha256")),
    ("manifest.json", ("arrays", "features")),
]
PLACES += [("manifest.json", ("files", "picture.png", k)) for k in ("sha256", "bytes")]
PLACES += [("run.json", (k,)) for k in ("metadata_sha256", "in_blocks", "block_notes", "started")]


@pytest.mark.parametrize(("file", "place"), PLACES)
def test_any_entry_of_another_form_is_damage_of_its_artifact(
    file, place, store, artifact, bystander
):
    path = artifact.path / file
    before = path.read_bytes()
    for value in VALUES:
        path.write_bytes(before)
        reseal(path, entry(*place, value=value))
        if path.read_bytes() == before:
            continue
        problems = store.verify()
        named = {p.reference for p in problems}
        # Other lists of blocks, notes and times are those that another artifact may have.
        if place[0] in ("in_blocks", "block_notes", "started"):
            assert named <= {artifact.reference}, value
        else:
            assert named == {artifact.reference}, value


@pytest.mark.parametrize("depth", [100, 200_000])
def test_a_manifest_of_brackets_is_damaged(depth, store, artifact, bystander):
    (artifact.path / "manifest.json").write_text("[" * depth)
    assert "not as it was published (digest)" in found(store, artifact, bystander)
    with pytest.raises(DamagedArtifactError, match=r"manifest\.json"):
        store.open(artifact.reference)


def test_a_manifest_of_many_parts_is_not_built(store, artifact, bystander):
    (artifact.path / "manifest.json").write_bytes(b"[" + b"[]," * 2**22 + b"[]]")
    assert "not as it was published (digest)" in found(store, artifact, bystander)


@pytest.mark.parametrize("rows", [10**6, 10**12, 2**62])
@pytest.mark.parametrize("chunk", [1, 4, 10**6])
def test_rows_that_are_declared_and_not_there_are_told_at_once(
    rows, chunk, store, artifact, bystander
):
    def declare(document):
        document["arrays"]["features"] |= {"shape": [rows, 3], "chunks": [chunk, 3]}

    reseal(artifact.path / "manifest.json", declare)
    metadata = artifact.path / "arrays/features/zarr.json"
    described = json.loads(metadata.read_bytes())
    described["shape"], described["chunk_grid"]["configuration"]["chunk_shape"] = (
        [rows, 3],
        [chunk, 3],
    )
    metadata.write_text(json.dumps(described))
    digests = {"features": sha256_of_file(metadata)[0]}
    reseal(artifact.path / "run.json", lambda run: run["metadata_sha256"].update(digests))
    assert "features" in found(store, artifact, bystander)
    assert not store.repair([artifact.reference])[0].whole
    with (
        pytest.raises(DamagedArtifactError)
        if artifact.path.exists()
        else pytest.raises(LookupError)
    ):
        store.open(artifact.reference).array("features")


@pytest.mark.parametrize("n_bytes", [2**20, 2_000_000_000])
def test_a_chunk_that_decodes_to_more_than_its_block_is_not_decoded(
    n_bytes, store, artifact, bystander
):
    chunk = artifact.path / "arrays/features/c.1.0"
    bomb = np.asarray(Zstd(level=1).encode(np.zeros(2**20, np.uint8))).tobytes()
    if n_bytes > 2**20:  # a frame that says so: magic, descriptor (8 bytes of size, single), size
        bomb = b"\x28\xb5\x2f\xfd\xe0" + n_bytes.to_bytes(8, "little") + bomb[9:]
    assert _content_size(bomb) == n_bytes
    chunk.write_bytes(CRC32C().encode(bomb).tobytes())
    message = found(store, artifact, bystander)
    assert f"its values take {n_bytes} bytes, not 48" in message
    with pytest.raises(DamagedArtifactError, match=r"c\.1\.0"):
        artifact.rows("features", [5])


@pytest.mark.parametrize("n", [0, 1, 255, 256, 257, 65_791, 65_792, 70_000, 2**20])
def test_the_size_that_a_frame_declares_is_read_rightly(n):
    assert _content_size(Zstd(level=1).encode(np.zeros(n, np.uint8))) == (n or 0)


@pytest.mark.parametrize("name", ["manifest.json", "run.json", "arrays/features/c.0.0"])
@pytest.mark.parametrize("kind", ["fifo", "socket", "folder"])
def test_what_is_no_file_is_never_waited_for(name, kind, store, artifact, bystander, monkeypatch):
    path = artifact.path / name
    path.unlink()
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        monkeypatch.chdir(path.parent)
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(path.name)
    assert str(path) in found(store, artifact, bystander)


def test_a_link_in_place_of_an_artifact_goes_alone(store, artifact, bystander, create, tmp_path):
    other = store.get_or_create(Recipe("features", "2"), create).artifact
    elsewhere = tmp_path / "elsewhere"
    shutil.move(artifact.path, elsewhere)
    artifact.path.symlink_to(elsewhere)
    (store.root / "features/left.partial").write_text("a file")
    before = hashlib.sha256((elsewhere / "manifest.json").read_bytes()).hexdigest()
    removed = store.gc([bystander.reference])
    assert set(removed) == {artifact.path, other.path, store.root / "features/left.partial"}
    assert not any(os.path.lexists(path) for path in removed)
    assert sha256_of_file(elsewhere / "manifest.json")[0] == before
    assert not store.trash.exists()
    assert store.verify() == []
