"""Prefect flow that brings a data set here and extracts its features, and does no more."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from prefect import flow

from flows.chain import Chain
from flows.configuration.experiment import Experiment
from flows.experiment import (
    DEFAULT_WORKSPACE,
    configuration_of,
    from_any_folder,
    publish_record,
    run_name,
)
from flows.selection import Selection
from flows.watching import tell_failure, watched
from tasks.workspace import Workspace


@flow(
    name="cppcl-extraction",
    flow_run_name=run_name,
    validate_parameters=True,
    persist_result=False,
    on_failure=[tell_failure],
    on_crashed=[tell_failure],
)
def extract_pictures(
    experiment: str = "tuberlin",
    overrides: list[str] | None = None,
    configuration: Experiment | None = None,
    workspace: Path = DEFAULT_WORKSPACE,
) -> dict[str, Any]:
    """Run the stages up to `extract`; what is stored is reused, block by block.

    Parameters
    ----------
    experiment : str
        Packaged name or YAML file; left aside where `configuration` is given.
    overrides : list of str
        `key=value` changes to it.
    configuration : Experiment
        A whole configuration.
    workspace : path
        Where results are stored.
    """
    source = None if configuration else from_any_folder(experiment)
    chosen = configuration_of(experiment, overrides, configuration)
    place, started = Workspace(Path(workspace)), datetime.now(UTC)
    with place.store.in_use(), watched(chosen.name):
        record = Chain(chosen, place, Selection(until="extract")).run()
        return publish_record(record, chosen, place, started, source)
