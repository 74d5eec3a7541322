"""Prefect flow of a sweep: an experiment once for each combination of values."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from prefect import State, flow, get_run_logger
from prefect.artifacts import create_link_artifact
from prefect.context import FlowRunContext
from prefect.runtime import flow_run
from prefect.states import Failed
from pydantic_core import SchemaError

from cppcl.errors import CppclError
from flows.configuration.combinations import Combination, Sweep, read_sweep
from flows.experiment import DEFAULT_WORKSPACE, run_experiment
from flows.watching import tell_failure
from storage import Reference, StoreError
from tasks.progress import listening, log
from tasks.reporting.report import Scores
from tasks.reporting.sweep import evaluations_behind, render_sweep
from tasks.workspace import STAMP, Workspace


def run_name() -> str:
    """Name of a run in Prefect's pages: that of its experiment, and the options."""
    parameters = flow_run.parameters
    return f"{Path(parameters['experiment']).stem} {' '.join(parameters['options'])}"


@flow(
    name="cppcl-sweep",
    flow_run_name=run_name,
    validate_parameters=True,
    persist_result=False,
    on_failure=[tell_failure],
    on_crashed=[tell_failure],
)
def run_sweep(
    experiment: str,
    options: list[str],
    overrides: list[str] | None = None,
    score: str = "rank_1",
    workspace: Path = DEFAULT_WORKSPACE,
) -> dict[str, Any] | State[dict[str, Any]]:
    """Run an experiment for every combination of values, and show a score of every method.

    A combination whose run fails is told and left out. The record of the sweep is returned; if
    some combination failed, as data of a failed state.

    Parameters
    ----------
    experiment : str
        Packaged name or YAML file.
    options : list of str
        One or two ``OPTION=VALUES``, VALUES a YAML list.
    overrides : list of str
        ``key=value`` changes to every combination.
    score : str
        ``map``, or ``rank_k`` with k among ``evaluation.ranks``.
    workspace : path
        Where results are stored.
    """
    sweep = read_sweep(experiment, options, overrides or (), score)
    place = Workspace(Path(workspace))
    started = datetime.now(UTC)
    logger = get_run_logger().info if FlowRunContext.get() else None
    with place.store.in_use():
        outcomes = []
        for number, combination in enumerate(sweep.combinations, start=1):
            tell(f"combination {number} of {len(sweep.combinations)}: {combination}", logger)
            outcomes.append(run_combination(experiment, combination, place))
            if error := outcomes[-1].get("error"):
                tell(f"failed, {combination}: {error}", logger)
        summary = publish_sweep(sweep, outcomes, place, started)
    if failed := summary["failed"]:
        return Failed(data=summary, message=f"{failed} of {len(outcomes)} combinations failed")
    return summary


def tell(text: str, logger: Callable[[str], None] | None) -> None:
    """Say something to whoever listens, and to the log of the run."""
    with listening(on_message=logger):
        log(text)


def run_combination(experiment: str, combination: Combination, place: Workspace) -> dict[str, Any]:
    """Run one combination; the record of its run, or the error that ended it."""
    state = run_experiment(
        experiment, list(combination.overrides), workspace=place.root, return_state=True
    )
    if state.is_completed():
        return {"values": combination.values, **state.result()}
    error = state.result(raise_on_failure=False)
    if isinstance(error, SchemaError):
        # An interruption, where it comes while pydantic builds a model: no reason to go on.
        raise KeyboardInterrupt from error
    known = isinstance(error, CppclError | StoreError)
    text = str(error) if known else f"{type(error).__name__}: {error}"
    return {"values": combination.values, "error": text}


def publish_sweep(
    sweep: Sweep, outcomes: list[dict[str, Any]], place: Workspace, started: datetime
) -> dict[str, Any]:
    """Render what was measured, write the record of the sweep, and return it."""
    scores: dict[int, Scores] = {}
    reports = []
    for number, (combination, outcome) in enumerate(
        zip(sweep.combinations, outcomes, strict=True)
    ):
        if "error" not in outcome:
            reports.append(Reference("report", outcome["artifacts"]["report"]))
            methods = {
                name: list(protocol.methods)
                for name, protocol in combination.experiment.protocols.items()
            }
            scores[number] = evaluations_behind(place.store, reports[-1], methods)
    summary: dict[str, Any] = {
        "experiment": sweep.name,
        "score": sweep.score,
        "axes": {axis.option: list(axis.values) for axis in sweep.axes},
        "combinations": outcomes,
        "failed": len(outcomes) - len(scores),
        "artifacts": {},
        "cached": False,
    }
    if not scores:
        return summary
    state: Any = render_sweep(
        workspace=place,
        experiment=sweep.experiment,
        axes=sweep.axes,
        score=sweep.score,
        scores=scores,
        return_state=True,
    )
    result = state.result()
    summary["artifacts"] = {"sweep": result.reference.key}
    summary["cached"] = result.cached and all(
        all(outcome.get("cached", {"it failed": False}).values()) for outcome in outcomes
    )
    page = place.store.open(result.reference).file_path("sweep.html")
    key = sweep.name.lower().replace("_", "-")
    create_link_artifact(key=f"{key}-page", link=page.absolute().as_uri())
    place.record_run(
        sweep.name,
        started.strftime(STAMP),
        {
            **summary,
            "started": started.isoformat(timespec="seconds"),
            # What these were made from is kept with them.
            "all_artifacts": sorted(map(str, {result.reference, *reports})),
        },
    )
    return summary
