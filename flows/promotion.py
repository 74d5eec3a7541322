"""Prefect flow that trains an experiment anew and serves the result if its score holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from prefect import flow
from prefect.artifacts import create_markdown_artifact
from pydantic import Field

from flows.configuration.experiment import Experiment
from flows.experiment import DEFAULT_WORKSPACE, run_experiment, run_name
from flows.watching import artifact_key, tell_failure
from tasks.promotion import TOLERANCE, promote
from tasks.workspace import Workspace


@flow(
    name="cppcl-retraining",
    flow_run_name=run_name,
    validate_parameters=True,
    persist_result=False,
    on_failure=[tell_failure],
    on_crashed=[tell_failure],
)
def retrain(
    experiment: str = "emoji",
    overrides: list[str] | None = None,
    configuration: Experiment | None = None,
    workspace: Path = DEFAULT_WORKSPACE,
    score: str = "auto",
    tolerance: Annotated[float, Field(ge=0, le=1)] = TOLERANCE,
) -> dict[str, Any]:
    """Run an experiment on the data as it is now; promote its model if the score holds.

    A score that does not hold is no failure: the run completes, and what was promoted stays.

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
    score : str
        `auto`, `validation`, `map` or `rank_k`: see `cppcl promote`.
    tolerance : float
        How far the score may be below the best that was promoted, as a share.
    """
    summary = run_experiment.fn(experiment, overrides, configuration, workspace)
    name = summary["experiment"]
    decision = promote(Workspace(Path(workspace)), name, score=score, tolerance=tolerance)
    create_markdown_artifact(
        key=artifact_key(name, "promotion"),
        description="Decision on serving the model of the last training",
        markdown=f"{decision.reason}.\n\n`cppcl promote {name} --list` lists what was promoted, "
        f"`cppcl promote {name} --back` serves the one before.",
    )
    return {**vars(decision), "experiment": name}
