"""Bring a data set here and store its sample table."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cppcl.datasets import DATASETS, PublishedSet, transfer
from cppcl.datasets.acquisition.mirrors import Listener
from cppcl.datasets.table import SampleTable
from cppcl.datasets.transfer import ROLES, Role, joined_findings, joined_folder, joined_table
from cppcl.errors import CppclError
from storage import Recipe, Store, Writer, read_zarr
from tasks.progress import Progress, log, tell
from tasks.samples import pictures_root
from tasks.stages.contract import Mode, StageResult, produce, stage_task
from tasks.workspace import Workspace

VERSION = "1"


def fetch_data(
    *,
    workspace: Workspace,
    name: str,
    options: dict[str, Any],
    key_parameters: dict[str, Any],
    mode: Mode = "reuse",
) -> StageResult:
    """Fetch a data set's pictures and publish its sample table.

    Parameters
    ----------
    workspace : Workspace
        Where pictures and the table go.
    name : str
        Data set in the registry; any other name is that of two data sets of different roles.
    options : dict
        Arguments of its constructor; of two, ``name`` and ``options`` of each by role.
    key_parameters : dict
        Those that take part in the key; the content of the table does so by its digest.
    mode : {'reuse', 'force', 'require'}
        What to do with a stored table.
    """
    bring = data_set_of if name in DATASETS else both_sets_of
    found = bring(name, options, workspace)
    for finding in found.findings:
        log(f"{name}: {finding}")
    return publish_table(
        workspace.store,
        found.table,
        root=found.root,
        version=f"{VERSION}.{found.version}",
        parameters={"dataset": name, **key_parameters},
        licence=found.licence,
        findings=found.findings,
        mode=mode,
    )


fetch = stage_task(fetch_data)


@dataclass(frozen=True)
class Fetched:
    """Pictures that are here, and the table of them."""

    root: Path
    table: SampleTable
    licence: str
    findings: list[str]
    version: str


def data_set_of(name: str, options: Mapping[str, Any], workspace: Workspace) -> Fetched:
    """Fetch one data set."""
    data_set = DATASETS[name](**{k: without_zarr(v, workspace) for k, v in options.items()})
    if isinstance(data_set, PublishedSet):
        root = data_set.fetch(workspace.published_data, listener())
    else:
        root = data_set.fetch(workspace.data)
    table = data_set.table(root)
    findings = [*data_set.findings(root), *table.repetitions()]
    return Fetched(root, table, data_set.licence, findings, str(data_set.version))


def both_sets_of(name: str, options: Mapping[Role, Any], workspace: Workspace) -> Fetched:
    """Fetch the data set that trains and the one that is asked, and join their tables.

    Raises
    ------
    CppclError
        One of them is not here or no good: the message begins with its role.
    """
    parts: dict[Role, Fetched] = {}
    for role in ROLES:
        try:
            parts[role] = data_set_of(**options[role], workspace=workspace)
        except CppclError as error:
            raise type(error)(f"{role}: {error}") from error
    tables = {role: part.table for role, part in parts.items()}
    return Fetched(
        root=joined_folder({role: part.root for role, part in parts.items()}, workspace.data),
        table=joined_table(tables),
        # Two folders of the user's have the same line.
        licence="\n".join(dict.fromkeys(part.licence for part in parts.values())),
        findings=[
            *(f"{role}: {finding}" for role, part in parts.items() for finding in part.findings),
            *joined_findings(tables),
        ],
        version=".".join([str(transfer.VERSION), *(part.version for part in parts.values())]),
    )


def listener() -> Listener:
    """Pass on the progress of downloads and unpacking, in megabytes."""

    def show(label: str, done: int, total: int) -> None:
        megabytes = done // 1_000_000, max(done, total) // 1_000_000
        tell(Progress("fetch", f"{label}, MB", *megabytes))

    return Listener(log=log, progress=show)


def without_zarr(value: Any, workspace: Workspace) -> Any:
    """Path of a ``.npy`` copy where an option names a Zarr array; any other value unchanged."""
    if not isinstance(value, Path) or value.suffix != ".zarr":
        return value
    values = np.ascontiguousarray(read_zarr(value))
    digest = hashlib.sha256(values.tobytes()).hexdigest()[:16]
    copy = workspace.data / "from-zarr" / f"{value.stem}-{digest}.npy"
    if not copy.is_file():
        copy.parent.mkdir(parents=True, exist_ok=True)
        partial = copy.with_suffix(f".{os.getpid()}.npy")
        np.save(partial, values)
        partial.replace(copy)
    return copy


def publish_table(
    store: Store,
    table: SampleTable,
    *,
    root: Path,
    version: str,
    parameters: dict[str, Any],
    licence: str,
    findings: list[str],
    mode: Mode,
) -> StageResult:
    """Store a sample table, keyed on its content and not on where its files lie."""
    recipe = Recipe("fetch", version, {**parameters, "table": table.digest()}, {})

    def create(writer: Writer) -> None:
        writer.put_text("samples.csv", table.to_csv())
        writer.put_json("about.json", {"licence": licence, "findings": findings})
        writer.note(root=str(root.absolute()))

    stored = store.find(recipe.reference)
    if stored is not None and (
        pictures_root(stored) != root.absolute()
        or SampleTable.from_csv(stored.text("samples.csv")).titles != table.titles
    ):
        # The same pictures, elsewhere or under other titles: nothing else is written anew.
        mode = "force"
    return produce(store, recipe, create, mode=mode, label=str(parameters.get("dataset", root)))
