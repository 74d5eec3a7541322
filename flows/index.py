"""Prefect flow that keeps the index of a folder of pictures up to date."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from prefect import flow
from prefect.artifacts import create_markdown_artifact
from prefect.runtime import flow_run
from pydantic import Field

from flows.experiment import DEFAULT_WORKSPACE
from flows.watching import artifact_key, tell_failure, watched
from tasks.cluster.session import cluster_session
from tasks.stages.index import IndexUpdate
from tasks.stages.index import update_index as update
from tasks.workspace import Workspace

N_NAMED = 20
"""Pictures that are named in Prefect's pages, of each kind."""


def run_name() -> str:
    """Name of a run in Prefect's pages: that of the index."""
    return f"index {flow_run.parameters['name']}"


@flow(
    name="cppcl-index",
    flow_run_name=run_name,
    validate_parameters=True,
    persist_result=False,
    on_failure=[tell_failure],
    on_crashed=[tell_failure],
)
def update_index(
    model: str,
    folder: Path,
    name: str,
    workspace: Path = DEFAULT_WORKSPACE,
    max_bad_share: Annotated[float, Field(ge=0, le=1)] = 0.5,
    cluster_address: str = "local",
    workers: Annotated[int, Field(ge=1)] | None = None,
) -> dict[str, Any]:
    """Extract and encode what is new or changed in a folder, and let searches find it.

    Parameters
    ----------
    model : str
        An experiment's name, which means its promoted or latest model, or the key of a model.
    folder : path
        Pictures, at any depth.
    name : str
        Name of the index: `cppcl search NAME SKETCH`.
    workspace : path
        Where results are stored.
    max_bad_share : float
        Share of pictures that may be broken before the run fails; fewer are named and left out.
    cluster_address : str
        'local', or the address of a Dask scheduler.
    workers : int
        Local workers; one a core by default.
    """
    with watched(name), cluster_session(cluster_address, workers):
        found = update(
            workspace=Workspace(Path(workspace)),
            model=model,
            folder=Path(folder),
            name=name,
            max_bad_share=max_bad_share,
        )
    create_markdown_artifact(
        key=artifact_key(name, "index"), markdown=index_text(found), description=found.words()
    )
    return asdict(found)


def index_text(update: IndexUpdate) -> str:
    """Markdown about an update: numbers, and the first pictures of each kind."""
    parts = [f"# {update.words()}\n"]
    skipped = [f"`{path}`: {reason}" for path, reason in update.skipped.items()]
    for title, lines in (
        ("Added", [f"`{path}`" for path in update.added]),
        ("Changed", [f"`{path}`" for path in update.changed]),
        ("Removed", [f"`{path}`" for path in update.removed]),
        ("Skipped", skipped),
    ):
        if lines:
            more = [f"and {len(lines) - N_NAMED} more"] if len(lines) > N_NAMED else []
            listed = "\n".join(f"- {line}" for line in lines[:N_NAMED] + more)
            parts.append(f"## {title}\n\n{listed}\n")
    parts.append(f"Search it with `cppcl search {update.name} SKETCH`; its key is `{update.key}`.")
    return "\n".join(parts)
