"""An index: the gallery of a folder under a name, brought up to date when the folder changes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cppcl.datasets.files import scan_pictures, undrawn_text
from cppcl.datasets.folder import images_only
from cppcl.errors import DataUnavailableError, InputError
from storage import Reference
from storage.files import locked
from tasks.lineage import Lineage
from tasks.model import picture_extractor
from tasks.progress import log
from tasks.samples import open_pictures
from tasks.stages.contract import StageResult
from tasks.stages.encode import encode_features
from tasks.stages.extract import extract_features
from tasks.stages.fetch import publish_table
from tasks.workers.extractors import extractor_of
from tasks.workspace import STAMP, Workspace

TRIES = 3
"""Times that a folder is read which changes while it is read."""


@dataclass(frozen=True)
class IndexUpdate:
    """What became of an index.

    Attributes
    ----------
    name : str
        What it is found by: ``cppcl search NAME``.
    key : str
        Its `encode` artifact.
    pictures : int
        Pictures in the folder.
    extracted : int
        Those whose features were computed; all others were stored before.
    added, changed, removed : tuple of str
        Paths below the folder that are new, have other content, or are gone since the last state.
    skipped : dict of str to str
        Pictures that cannot be used, with the reason.
    published : bool
        True if it differs from the last state.
    """

    name: str
    key: str
    pictures: int
    extracted: int
    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    skipped: dict[str, str]
    published: bool

    def words(self) -> str:
        """One sentence."""
        return (
            f"index {self.name}: {self.pictures} pictures; {len(self.added)} added, "
            f"{len(self.changed)} changed, {len(self.removed)} removed, {len(self.skipped)} "
            f"skipped; features of {self.extracted} were computed"
        )


def update_index(
    *,
    workspace: Workspace,
    model: str,
    folder: Path,
    name: str | None = None,
    max_bad_share: float = 0.1,
) -> IndexUpdate:
    """Encode a folder of pictures, only what is new or changed anew, and publish it in one step.

    Until the record of the new state is written, all who look for the name find the old one; the
    artifacts of the old one stay until ``cppcl store gc``. A folder that changes while it is read
    is read again.

    Parameters
    ----------
    workspace : Workspace
        Where artifacts and records are.
    model : str
        Key of an `encode` artifact, or an experiment's name: its promoted or latest model.
    folder : path
        Pictures, at any depth.
    name : str, optional
        What the index is found by; ``gallery-`` and the beginning of its key by default.
    max_bad_share : float
        Share of pictures that may be unusable.

    Raises
    ------
    InputError
        If the name cannot be one, or is that of an experiment.
    """
    if name is not None:
        check_name(workspace, name)
    workspace.find_model(model)  # or its error, before anything is written
    with _alone(workspace, name), workspace.store.in_use():
        results = _index(workspace, model, folder, max_bad_share)
        table, features, codes = (result.reference for result in results)
        name = name or f"gallery-{codes.key[:12]}"
        before = last_state(workspace, name)
        extracted = workspace.store.open(features)
        rows = extracted.shape("ok")[0]
        copied = extracted.run["notes"]["copied_rows"]
        update = IndexUpdate(
            name=name,
            key=codes.key,
            pictures=rows,
            extracted=0 if results[1].cached else rows - copied,
            skipped=extracted.json("failures.json"),
            published=before is None or before["artifacts"]["encode"] != codes.key,
            **_changes(
                _table(workspace, Reference("fetch", before["artifacts"]["fetch"]))
                if before
                else None,
                _table(workspace, table),
            ),
        )
        if update.published:
            workspace.record_run(
                name,
                datetime.now(UTC).strftime(STAMP),
                {
                    "experiment": name,
                    "artifacts": {r.reference.stage: r.reference.key for r in results},
                    "all_artifacts": [str(r.reference) for r in results],
                    "index": {
                        "model": model,
                        "folder": str(folder.absolute()),
                        "pictures": rows,
                        "added": len(update.added),
                        "changed": len(update.changed),
                        "removed": len(update.removed),
                        "skipped": update.skipped,
                    },
                },
            )
    return update


def index_folder(
    *, workspace: Workspace, model: Reference, folder: Path, max_bad_share: float = 0.1
) -> list[StageResult]:
    """Encode a folder of pictures with a trained model, as a gallery of their own.

    Parameters
    ----------
    workspace : Workspace
        Where artifacts are.
    model : Reference
        An `encode` artifact of that model.
    folder : path
        Pictures, at any depth.
    max_bad_share : float
        Share of pictures that may fail.

    Returns
    -------
    list of StageResult
        The new sample table, features and codes; the last is the new model.

    Raises
    ------
    InputError
        If the folder is none, or holds no pictures, or the model is of features without pictures.
    """
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; give the folder of the new pictures")
    store = workspace.store
    lineage = Lineage.of_codes(store, model)
    features = store.open(lineage.features["image"])
    picture_extractor(extractor_of(features), workspace)
    table = images_only(folder)
    scan = scan_pictures(folder, ".")
    findings = [*scan.findings(), *undrawn_text(folder, scan)]
    for finding in findings:
        log(f"{folder.name}: {finding}")
    fetched = publish_table(
        store,
        table,
        root=folder,
        version="1",
        parameters={"dataset": "gallery"},
        licence="",
        findings=findings,
        mode="reuse",
    )
    extracted = extract_features(
        workspace=workspace,
        table=fetched.reference,
        modality="image",
        extractor=features.parameters["extractor"],
        options=features.run["notes"]["options"],
        longest_side=features.parameters["longest_side"],
        block_rows=features.parameters["block_rows"],
        learned=features.inputs.get("learned"),
        max_bad_share=max_bad_share,
    )
    encoded = encode_features(
        workspace=workspace,
        model=lineage.training.reference,
        sketch_features=None,
        image_features=extracted.reference,
        label=f"gallery {folder.name}",
    )
    return [fetched, extracted, encoded]


def check_name(workspace: Workspace, name: str) -> None:
    """Refuse a malformed name, and one under which `cppcl search` finds an experiment.

    Raises
    ------
    InputError
        Saying why.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,79}", name):
        raise InputError(
            f"name {name!r} of an index must be of letters, digits, '_' and '-', at most 80"
        )
    if re.fullmatch(r"[0-9a-fA-F]{6,64}", name):
        raise InputError(f"name {name!r} of an index looks like a key; use another letter")
    before = last_state(workspace, name)
    if before and "configuration" in before:
        raise InputError(
            f"{name!r} is an experiment in {workspace.root}; name the index otherwise"
        )


def last_state(workspace: Workspace, name: str) -> dict[str, Any] | None:
    """Record of the latest state of an index, or None."""
    records = reversed(workspace.run_records().values())
    return next((record for record in records if record["experiment"] == name), None)


def _index(
    workspace: Workspace, model: str, folder: Path, max_bad_share: float
) -> list[StageResult]:
    for attempt in range(1, TRIES + 1):
        try:
            return index_folder(
                workspace=workspace,
                model=workspace.find_model(model),
                folder=folder,
                max_bad_share=max_bad_share,
            )
        except DataUnavailableError as error:
            if attempt == TRIES:
                raise
            log(f"{error}; reading the folder again")
    raise AssertionError("unreachable")


def _table(workspace: Workspace, reference: Reference) -> dict[str, str]:
    """Content by path. A state whose table is gone (collected, or damaged) counts as empty."""
    if workspace.store.find(reference) is None:
        return {}
    table = open_pictures(workspace.store, reference).table
    return dict(zip(table.paths, table.sha256, strict=True))


def _changes(before: dict[str, str] | None, now: dict[str, str]) -> dict[str, tuple[str, ...]]:
    before = before or {}
    return {
        "added": tuple(path for path in now if path not in before),
        "changed": tuple(path for path in now if before.get(path, now[path]) != now[path]),
        "removed": tuple(path for path in before if path not in now),
    }


@contextmanager
def _alone(workspace: Workspace, name: str | None) -> Iterator[None]:
    """Let updates of one index wait for one another: the later one must not be overtaken."""
    if name is None:
        yield
        return
    with locked(workspace.root / "store" / "locks" / f"index-{name}.lock"):
        yield
