"""What comes back, and that damage anywhere is found and named."""

from __future__ import annotations

import errno
import json
import os
import pickle
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from storage import (
    Artifact,
    DamagedArtifactError,
    MissingArtifactError,
    Recipe,
    Reference,
    Store,
    StoreError,
)
from storage.files import sealed, sha256_of_file
from tests.storage.artifacts import flip

# Reads everything while any attempt to write to the file system ends the process.
READ_ONLY = """
import os, sys
from storage import Reference, Store

def refuse(event, arguments):
    if event == "open" and (arguments[2] or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        raise SystemExit(f"opened {arguments[0]} for writing")
    if event in ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.chmod", "fcntl.flock"):
        raise SystemExit(f"{event} {arguments}")

store, reference = Store(sys.argv[1]), Reference.parse(sys.argv[2])
import zarr  # compiled modules may be written by the import itself
sys.addaudithook(refuse)
artifact = store.open(store.resolve(reference.key[:8]))
outcome = store.get_or_create(artifact.recipe, lambda writer: sys.exit("made again"))
print(outcome.cached, artifact.array("features").shape, artifact.rows("labels", [1]),
      artifact.json("history.json")["title"], len(store.verify()), len(store.gc([], dry_run=True)))
"""


def test_everything_comes_back(artifact, contents):
    for name, values in contents.items():
        read = artifact.array(name)
        assert read.dtype == values.dtype
        np.testing.assert_array_equal(read, values)
    assert artifact.json("history.json") == {"loss": [0.5, 0.25], "title": "Übung"}
    assert artifact.text("pages/report.html") == "<p>ä</p>"
    assert artifact.bytes("picture.png") == bytes(range(256))
    assert artifact.file_path("picture.png").read_bytes() == bytes(range(256))
    assert set(contents) < set(artifact.names)
    assert len(artifact.names) == 8
    assert artifact.n_bytes == sum(p.stat().st_size for p in artifact.path.rglob("*.*"))


def test_recipe_comes_back(artifact, recipe, store):
    assert artifact.recipe == recipe
    assert (artifact.version, artifact.parameters, artifact.inputs) == (
        "1",
        {"size": 64, "scale": 0.1},
        {},
    )
    codes = Recipe("codes", "3", {}, {"features": artifact.reference})
    made = store.get_or_create(codes, lambda writer: None).artifact
    assert made.inputs == {"features": artifact.reference}
    assert repr(made) == f"Artifact('codes/{codes.key}')"


def test_run_says_what_may_differ(artifact):
    run = artifact.run
    assert run["notes"] == {"device": "cpu"}
    assert 0 <= run["seconds"] < 60
    assert run["peak_memory_bytes"] > 2**24
    assert run["libraries"]["numpy"] == np.__version__
    assert not run["resumed"]
    assert "seconds" not in artifact.manifest


def test_reading_writes_nothing(store, artifact, child):
    process = child(READ_ONLY, store.root, artifact.reference)
    assert process.communicate()[0] == "True (10, 3) [1] Übung 0 1\n"
    assert process.returncode == 0


def test_a_store_without_artifacts_is_not_made(tmp_path, recipe):
    store = Store(tmp_path / "none")
    assert store.find(recipe.reference) is None
    assert list(store.artifacts()) == store.verify() == store.gc([]) == []
    with pytest.raises(MissingArtifactError) as caught:
        store.open(recipe.reference)
    assert str(store.path(recipe.reference)) in str(caught.value)
    assert "cppcl run EXPERIMENT --from features" in str(caught.value)
    assert not store.root.exists()
    assert repr(store) == f"Store({str(store.root)!r})"


def test_unknown_name(artifact):
    with pytest.raises(KeyError, match=r"has no array 'codes', only .*'features'"):
        artifact.array("codes")
    with pytest.raises(KeyError, match=r"has no file 'features', only .*'history.json'"):
        artifact.bytes("features")


def test_every_flipped_byte_of_a_chunk_is_caught(artifact):
    rng = np.random.default_rng(0)
    intact = artifact.array("features")
    for block in range(3):
        chunk = artifact.path / "arrays" / "features" / f"c.{block}.0"
        for position in range(chunk.stat().st_size):
            original = flip(chunk, position, int(rng.integers(8)))
            with pytest.raises(DamagedArtifactError) as caught:
                artifact.rows("features", [4 * block])
            chunk.write_bytes(original)
            message = str(caught.value)
            assert message.startswith(f"array 'features', block {block} (rows {4 * block} to ")
            assert str(chunk) in message
            assert "cppcl store verify" in message
            assert "--force features" in message
    np.testing.assert_array_equal(artifact.array("features"), intact)


def read_all(artifact: Artifact) -> None:
    for name in artifact.names:
        (artifact.array if name in artifact.manifest["arrays"] else artifact.bytes)(name)


def test_flipped_bits_anywhere_are_found_and_named(store, artifact):
    rng = np.random.default_rng(1)
    paths = sorted(path for path in artifact.path.rglob("*") if path.is_file())
    assert {"zarr.json", "manifest.json", "run.json"} < {path.name for path in paths}
    assert store.verify() == []
    for path in paths:
        size = path.stat().st_size
        for position in {0, size - 1, *rng.integers(0, size, 6).tolist()}:
            original = flip(path, position, int(rng.integers(8)))
            problems = store.verify()
            with pytest.raises(DamagedArtifactError, match=path.name):
                read_all(store.open(artifact.reference))
            path.write_bytes(original)
            assert problems, (path, position)
            assert all(problem.reference == artifact.reference for problem in problems)
            assert any(str(path) in problem.message for problem in problems)
            inside = path.relative_to(artifact.path).parts
            name = inside[1] if inside[0] == "arrays" else "/".join(inside).removeprefix("files/")
            assert name in {problem.name for problem in problems}
    assert store.verify() == []


@pytest.mark.parametrize(
    "inside",
    [
        "manifest.json",
        "run.json",
        "arrays/labels/zarr.json",
        "files/history.json",
        "arrays/features/c.1.0",
    ],
)
def test_missing_file_is_named(store, artifact, inside):
    path = artifact.path / inside
    path.unlink()
    problems = store.verify([artifact.reference])
    assert any(f"{path} is missing" in problem.message for problem in problems)
    again = Artifact(artifact.reference, artifact.path)
    with pytest.raises(DamagedArtifactError, match=path.name):
        read_all(again)
    if "c.1" in inside:
        with pytest.raises(DamagedArtifactError, match=r"block 1 \(rows 4 to 7\)"):
            again.rows("features", slice(5, 6))
        assert again.rows("features", slice(0, 4)).shape == (4, 3)


@pytest.mark.parametrize(
    ("number", "error"),
    [
        (errno.EIO, DamagedArtifactError),
        (errno.EACCES, PermissionError),
        (errno.EMFILE, OSError),
        (errno.ENOMEM, OSError),
    ],
)
@pytest.mark.parametrize("name", ["c.1.0", "history.json", "manifest.json"])
def test_disk_that_cannot_be_read(store, artifact, monkeypatch, number, error, name):
    read_bytes = Path.read_bytes

    def fail(path: Path) -> bytes:
        if path.name == name:
            raise OSError(number, os.strerror(number), str(path))
        return read_bytes(path)

    reread = Artifact(artifact.reference, artifact.path)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", fail)
        with pytest.raises(error, match=name.replace(".", r"\.")):
            (reread.json("history.json"), reread.array("features"))
        if error is not DamagedArtifactError and name != "history.json":  # hashed as a stream
            with pytest.raises(error):
                store.repair()  # nothing that is whole is removed for it
    assert store.verify() == []


def test_what_cannot_be_imported_is_no_damage(store, artifact, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "numcodecs", None)
        with pytest.raises(ImportError):
            store.repair()
    assert store.verify() == []


def test_chunk_in_the_wrong_place_is_caught(store, artifact):
    folder = artifact.path / "arrays" / "features"
    shutil.copy(folder / "c.0.0", folder / "c.1.0")  # intact by its own crc32c
    with pytest.raises(DamagedArtifactError, match=r"'features'.*not those that were published"):
        artifact.array("features")
    (problem,) = store.verify()
    assert problem.name == "features"


def test_renamed_folder_is_caught(store, artifact):
    other = Reference("features", "0" * 32)
    artifact.path.rename(store.path(other))
    with pytest.raises(DamagedArtifactError, match=f"belongs to {artifact.reference}"):
        store.open(other)
    (problem,) = store.verify()
    assert problem.reference == other


def test_manifest_that_is_valid_json_of_another_kind(store, artifact):
    for text in ("[]", "null", '{"sha256": 1}', json.dumps({**artifact.manifest})):
        (artifact.path / "manifest.json").write_text(text)
        with pytest.raises(DamagedArtifactError, match=r"manifest.json is not as it was"):
            store.find(artifact.reference)


def _other_codec(metadata: dict[str, Any]) -> None:
    metadata["codecs"][1] = {"name": "gzip", "configuration": {"level": 1}}


def _big_endian(metadata: dict[str, Any]) -> None:
    metadata["codecs"][0]["configuration"] = {"endian": "big"}


@pytest.mark.parametrize(
    "change",
    [
        lambda metadata: metadata.update(shape=[9, 9]),
        lambda metadata: metadata.update(data_type="int16"),
        lambda metadata: metadata["chunk_grid"]["configuration"].update(chunk_shape=[1]),
        lambda metadata: metadata.pop("codecs"),
        _other_codec,
        _big_endian,
    ],
    ids=["shape", "type", "chunks", "no codecs", "other codec", "order of bytes"],
)
def test_metadata_of_another_array_is_caught(store, artifact, change):
    # As if a run.json had been sealed over it: the manifest still says what the array is.
    file = artifact.path / "arrays/labels/zarr.json"
    metadata = json.loads(file.read_text())
    change(metadata)
    file.write_text(json.dumps(metadata))
    run = artifact.run
    run["metadata_sha256"]["labels"] = sha256_of_file(file)[0]
    (artifact.path / "run.json").write_bytes(sealed(run))
    with pytest.raises(DamagedArtifactError, match=r"'labels'.*does not describe"):
        store.open(artifact.reference).array("labels")
    assert {problem.name for problem in store.verify()} == {"labels"}


def test_get_or_create_refuses_a_damaged_artifact_and_force_mends_it(
    store, artifact, recipe, create
):
    (artifact.path / "manifest.json").write_text("{}")
    with pytest.raises(DamagedArtifactError, match="--force features"):
        store.get_or_create(recipe, create)
    store.get_or_create(recipe, create, force=True)
    assert store.verify() == []


def test_errors_travel_between_processes():
    for kind in StoreError.__subclasses__():
        error = pickle.loads(pickle.dumps(kind("what and where")))
        assert type(error) is kind
        assert str(error) == "what and where"
