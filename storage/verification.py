"""Checking every stored byte of an artifact."""

from __future__ import annotations

from typing import NamedTuple

from storage.artifact import MANIFEST, RUN, Artifact
from storage.blocks import METADATA, Layout, StoredArray, array_folder
from storage.errors import DamagedArtifactError
from storage.files import sha256_of_file
from storage.recipe import Reference


class Problem(NamedTuple):
    """Something wrong with a stored artifact.

    Attributes
    ----------
    reference : Reference
        The artifact.
    name : str
        The array or file in it.
    what : str
        What is wrong, with the path of the chunk or file.
    """

    reference: Reference
    name: str
    what: str


def problems(artifact: Artifact) -> list[Problem]:
    """Return everything that is wrong with an artifact; reads it whole, a block at a time."""
    found: list[Problem] = []

    def report(name: str, what: str) -> None:
        found.append(Problem(artifact.reference, name, what))

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
    expected = {artifact.path / MANIFEST, artifact.path / RUN}
    for name, entry in manifest["arrays"].items():
        folder, layout = array_folder(artifact.path, name), Layout.from_entry(entry)
        expected.add(folder / METADATA)
        expected.update(folder / layout.chunk_name(b) for b in range(layout.n_blocks))
        if not (folder / METADATA).is_file():
            report(name, f"{folder / METADATA} is missing")
            continue
        if metadata is not None and metadata.get(name) != sha256_of_file(folder / METADATA)[0]:
            report(name, f"{folder / METADATA} was altered")
            continue
        digest, damage = StoredArray(folder, layout, "").digest()
        for what in damage.values():
            report(name, what.strip())
        if not damage and digest != entry["sha256"]:
            report(name, f"{folder}: the values are not those that were published (sha256)")
    for name, entry in manifest["files"].items():
        path = artifact.path / "files" / name
        expected.add(path)
        if not path.is_file():
            report(name, f"{path} is missing")
        elif sha256_of_file(path) != (entry["sha256"], entry["bytes"]):
            report(name, f"{path} was altered")
    for path in sorted(artifact.path.rglob("*")):
        if path.is_file() and path not in expected:
            report(str(path.relative_to(artifact.path)), f"{path} does not belong to the artifact")
    return found
