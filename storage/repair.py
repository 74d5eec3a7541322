"""Repair of a damaged artifact: whole blocks stay, and the next run makes the others again."""

from __future__ import annotations

import json
import logging
import shutil
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from storage.artifact import MANIFEST, Artifact, contents
from storage.blocks import METADATA, Layout, StoredArray, array_folder
from storage.errors import DamagedArtifactError
from storage.files import (
    discard,
    explained,
    sealed,
    sha256_of_file,
    unseal,
    write_atomically,
)
from storage.folder import StoreFolder
from storage.recipe import Reference
from storage.unfinished import restore_notes
from storage.verification import Problem, problems, remove_strays

ORIGINAL = "original.json"
logger = logging.getLogger(__name__)


class Repair(NamedTuple):
    """How a damaged artifact was repaired.

    Attributes
    ----------
    reference : Reference
        The artifact.
    blocks : dict of str to list of int, or None
        Blocks, by array, that the next run of the stage makes again; None if it makes the whole
        artifact again.
    whole : bool
        True if the artifact is whole as it is, and no run has to follow.
    """

    reference: Reference
    blocks: dict[str, list[int]] | None
    whole: bool


def repair(folder: StoreFolder, reference: Reference) -> Repair | None:
    """Repair one artifact, as `Store.repair` documents; the caller holds its lock."""
    artifact = Artifact(reference, folder.path(reference))
    if not artifact.path.is_dir() or not problems(artifact):
        return None
    with explained(artifact.path):
        try:
            manifest, run = artifact.manifest, artifact.run
        except DamagedArtifactError:
            manifest, run = None, None
        if manifest and run:
            _restore_metadata(artifact)
            remove_strays(artifact.path, manifest)
            if not (found := problems(artifact)):
                return Repair(reference, {}, whole=True)
            foreign = any(problem.name == MANIFEST for problem in found)
            if not foreign and (blocks := _missing_blocks(artifact, found)):
                _reopen(artifact, blocks, folder)
                return Repair(reference, blocks, whole=False)
        discard(artifact.path, folder.trash)
    return Repair(reference, None, whole=False)


def _restore_metadata(artifact: Artifact) -> None:
    """Rewrite altered Zarr metadata, if that gives the published bytes."""
    for name, entry in artifact.manifest["arrays"].items():
        metadata = array_folder(artifact.path, name) / METADATA
        published = artifact.run["metadata_sha256"].get(name)
        if metadata.is_file() and sha256_of_file(metadata)[0] == published:
            continue
        fresh = artifact.path / f".{name}.{uuid.uuid4().hex}"
        StoredArray.create(fresh, Layout.from_entry(entry))
        if sha256_of_file(fresh / METADATA)[0] == published:
            metadata.parent.mkdir(parents=True, exist_ok=True)
            (fresh / METADATA).replace(metadata)
        shutil.rmtree(fresh)


def _missing_blocks(artifact: Artifact, found: Iterable[Problem]) -> dict[str, list[int]]:
    """Return the blocks to make again, by array; empty if it was not made in blocks."""
    arrays: dict[str, list[int]] = {name: [] for name in artifact.run["in_blocks"]}
    for problem in found:
        if problem.name not in arrays:
            continue
        layout = Layout.from_entry(artifact.manifest["arrays"][problem.name])
        # Of an array with a wrong sha256, nobody knows which block is wrong.
        broken = range(layout.n_blocks) if problem.block is None else [problem.block]
        arrays[problem.name].extend(broken)
    return arrays


def _reopen(artifact: Artifact, blocks: Mapping[str, list[int]], folder: StoreFolder) -> None:
    """Turn a damaged artifact into an unfinished one.

    Wherever this is killed, it leaves a damaged artifact, which the next call repairs, or an
    unfinished one whose blocks are all whole.
    """
    path, manifest, run = artifact.path, artifact.manifest, artifact.run
    for name, numbers in blocks.items():
        array = array_folder(path, name)
        layout = Layout.from_entry(manifest["arrays"][name])
        for block in numbers:
            (array / layout.chunk_name(block)).unlink(missing_ok=True)
        metadata = array / METADATA
        if not metadata.is_file() or sha256_of_file(metadata)[0] != run["metadata_sha256"][name]:
            shutil.rmtree(array, ignore_errors=True)
    restore_notes(path, run["block_notes"])
    original = {"arrays": manifest["arrays"], "files": manifest["files"], "blocks": dict(blocks)}
    write_atomically(path / ORIGINAL, sealed(original))
    partial = folder.partial(artifact.reference)
    if partial.exists():
        discard(partial, folder.trash)
    path.rename(partial)
    (partial / MANIFEST).unlink()


def finish_sealed(reference: Reference, partial: Path) -> bool:
    """True if an unfinished artifact is whole: its run was killed just before publishing it.

    If so, files that do not belong to it are removed; if not, its manifest is.
    """
    artifact = Artifact(reference, partial)
    if not (partial / MANIFEST).exists():
        return False
    with explained(partial):
        if all(problem.stray for problem in problems(artifact)):
            remove_strays(partial, artifact.manifest)
            return True
        (partial / MANIFEST).unlink()
    return False


def compared(
    path: Path, arrays: Mapping[str, Any], files: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return what ``run.json`` says about a repair: the blocks, and what came out differently.

    Parameters
    ----------
    path : Path
        Folder of the unfinished artifact.
    arrays, files : dict
        Entries of its new manifest.

    Returns
    -------
    dict or None
        None if it was not repaired.
    """
    try:
        original = unseal(path / ORIGINAL, "")
    except DamagedArtifactError:
        return None
    made = contents(json.loads(sealed({"arrays": dict(arrays), "files": dict(files)})))
    first = contents(original)
    differs = sorted(
        name
        for kind in ("arrays", "files")
        for name in {*first[kind], *made[kind]}
        if first[kind].get(name) != made[kind].get(name)
    )
    if differs:
        logger.warning(
            "%s was repaired, but %s came out differently from the first time, as on another "
            "device or with another library; to make all of it in one place, run with --force %s",
            path.with_suffix(""),
            ", ".join(differs),
            path.parent.name,
        )
    return {"blocks": original["blocks"], "differs": differs}
