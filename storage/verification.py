"""Checking every stored byte of an artifact."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from storage.artifact import MANIFEST, RUN, Artifact
from storage.blocks import METADATA, Layout, StoredArray, array_folder
from storage.errors import DamagedArtifactError
from storage.files import check_name, is_damage, sha256_of_file
from storage.recipe import Reference


class Problem(NamedTuple):
    """Something wrong with a stored artifact.

    Attributes
    ----------
    reference : Reference
        The artifact.
    name : str
        The array or file in it.
    message : str
        The problem, with the path of the chunk or file.
    block : int or None
        The block of the array, where one is missing or cannot be decoded.
    stray : bool
        True if the file does not belong to the artifact; `name` is then its path in the folder.
    """

    reference: Reference
    name: str
    message: str
    block: int | None = None
    stray: bool = False


MOST_MISSING = 10_000
"""Blocks that are named one by one where they are missing."""


def problems(artifact: Artifact) -> list[Problem]:
    """Read all of an artifact, a block at a time, and return its problems."""
    try:
        return _problems(artifact)
    except Exception as error:
        if not is_damage(error):
            raise
        reason = f"{artifact.path} cannot be verified ({type(error).__name__}: {error})"
        return [Problem(artifact.reference, MANIFEST, f"{reason}. {artifact.hint}")]


def _problems(artifact: Artifact) -> list[Problem]:
    found: list[Problem] = []

    def report(name: str, message: str, block: int | None = None) -> None:
        found.append(Problem(artifact.reference, name, message, block))

    try:
        manifest = artifact.manifest
    except DamagedArtifactError as error:
        report(MANIFEST, str(error))
        return found
    try:
        metadata = artifact.run["metadata_sha256"]
    except DamagedArtifactError as error:
        report(RUN, str(error))
        metadata = None
    for name, entry in manifest["arrays"].items():
        folder, layout = array_folder(artifact.path, name), Layout.from_entry(entry)
        if not (folder / METADATA).is_file():
            report(name, f"{folder / METADATA} is missing")
            continue
        if metadata is not None and metadata.get(name) != _digest(folder / METADATA)[0]:
            report(name, f"{folder / METADATA} was altered, or cannot be read")
            continue
        if (missing := layout.n_blocks - len(_chunks(folder, layout))) > MOST_MISSING:
            report(
                MANIFEST,
                f"array {name!r} of shape {layout.shape} has {layout.n_blocks} blocks, of which "
                f"{missing} are missing in {folder}. {artifact.hint}",
            )
            continue
        digest, damage = StoredArray(folder, layout, "").digest()
        for block, message in damage.items():
            report(name, message.strip(), block)
        if not damage and digest != entry["sha256"]:
            report(name, f"{folder}: the values are not those that were published (sha256)")
    for name, entry in manifest["files"].items():
        path = artifact.path / "files" / name
        if not path.is_file():
            report(name, f"{path} is missing")
        elif _digest(path) != (entry["sha256"], entry["bytes"]):
            report(name, f"{path} was altered, or cannot be read")
    for path in strays(artifact.path, manifest):
        name, message = str(path.relative_to(artifact.path)), "does not belong to the artifact"
        found.append(Problem(artifact.reference, name, f"{path} {message}", stray=True))
    return found


def file_names(manifest: Mapping[str, Any], *, chunks: bool = True) -> set[str]:
    """Return the files of an artifact, named from its folder, with ``/`` between folders."""
    names = {MANIFEST, RUN}
    for name, entry in manifest["arrays"].items():
        folder, layout = array_folder("", name), Layout.from_entry(entry)
        names.add((folder / METADATA).as_posix())
        blocks = range(layout.n_blocks if chunks else 0)
        names.update((folder / layout.chunk_name(b)).as_posix() for b in blocks)
    names.update(f"files/{check_name(name, nested=True)}" for name in manifest["files"])
    return names


def strays(path: Path, manifest: Mapping[str, Any]) -> list[Path]:
    """Return the files in an artifact's folder that its manifest does not name."""
    expected = {path / name for name in file_names(manifest, chunks=False)}
    for name, entry in manifest["arrays"].items():
        folder = array_folder(path, name)
        expected.update(folder / name for name in _chunks(folder, Layout.from_entry(entry)))
    return [p for p in sorted(path.rglob("*")) if p not in expected and not _is_folder(p)]


def _chunks(folder: Path, layout: Layout) -> set[str]:
    """Names of the chunk files of an array that are there."""
    found = set()
    for file in folder.glob("c.*"):
        number = file.name.split(".")[1]
        if number.isdecimal() and len(number) < 20 and int(number) < layout.n_blocks:
            found.add(file.name)
    return {name for name in found if name == layout.chunk_name(int(name.split(".")[1]))}


def remove_strays(path: Path, manifest: Mapping[str, Any]) -> None:
    """Remove what the manifest does not name, and folders without files."""
    for stray in strays(path, manifest):
        stray.unlink(missing_ok=True)
    for folder in sorted(filter(_is_folder, path.rglob("*")), reverse=True):
        if not any(folder.iterdir()):
            folder.rmdir()


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _digest(path: Path) -> tuple[str, int]:
    """Return the sha256 and size of a file; if the disk cannot read it, those of no file."""
    try:
        return sha256_of_file(path)
    except OSError as error:
        if not is_damage(error):
            raise
        return "", -1
