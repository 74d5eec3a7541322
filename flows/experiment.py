"""Prefect flows: the whole chain, and one flow for every stage alone."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from prefect import Flow, flow, get_run_logger
from prefect.artifacts import create_link_artifact, create_table_artifact
from prefect.context import FlowRunContext
from prefect.runtime import flow_run

from cppcl.errors import InputError
from flows.chain import Chain
from flows.config import Experiment
from flows.load import load_experiment
from flows.record import RunRecord
from flows.selection import Selection
from tasks.progress import listening
from tasks.stages import STAGES
from tasks.workspace import Workspace

DEFAULT_WORKSPACE = Path(".cppcl")


def run_name() -> str:
    """Name of a run in Prefect's pages: that of its experiment."""
    parameters = flow_run.parameters
    configuration = parameters.get("configuration")
    return configuration.name if configuration else Path(parameters["experiment"]).stem


@flow(name="cppcl", flow_run_name=run_name, validate_parameters=True, persist_result=False)
def run_experiment(
    experiment: str = "emoji",
    overrides: list[str] | None = None,
    configuration: Experiment | None = None,
    workspace: Path = DEFAULT_WORKSPACE,
    only: str | None = None,
    start: str | None = None,
    force: list[str] | None = None,
) -> dict[str, Any]:
    """Run an experiment and return its record: scores, artifacts, seconds, reuse.

    Parameters
    ----------
    experiment : str
        Packaged name or YAML file; left aside where ``configuration`` is given.
    overrides : list of str
        ``key=value`` changes to it.
    configuration : Experiment
        A whole configuration, as the form of the Prefect UI makes it.
    workspace : path
        Where results are stored.
    only, start : str
        Run one stage alone, or start at one; those before it must be stored.
    force : list of str
        Stages that are computed anew although they are stored.
    """
    if configuration is None:
        configuration = load_experiment(experiment, overrides or ())
    elif overrides:
        raise InputError("overrides apply to a named experiment, not to a whole configuration")
    selection = Selection(only, start, tuple(force or ()))
    place = Workspace(Path(workspace))
    started = datetime.now(UTC)
    # In a deployed run nobody listens but the log of the run.
    log = get_run_logger().info if FlowRunContext.get() else None
    with place.store.in_use(), listening(on_message=log):
        record = Chain(configuration, place, selection).run()
        return publish_record(record, configuration, place, started)


def publish_record(
    record: RunRecord, experiment: Experiment, workspace: Workspace, started: datetime
) -> dict[str, Any]:
    """Write the record of a run, and show its scores where Prefect's users look."""
    summary = record.summary(workspace.store)
    rows = [
        {"protocol": protocol, "method": method, **{k: round(v, 4) for k, v in scores.items()}}
        for protocol, methods in summary["metrics"].items()
        for method, scores in methods.items()
    ]
    key = record.experiment.lower().replace("_", "-")
    if rows:
        create_table_artifact(key=f"{key}-scores", table=rows)
    if chosen := summary.get("tuned"):
        create_table_artifact(key=f"{key}-tuning", table=tuning_rows(chosen))
    if report := record.results.get("report"):
        page = workspace.store.open(report[0].reference).file_path("report.html")
        create_link_artifact(key=f"{key}-report", link=page.absolute().as_uri())
    workspace.record_run(
        record.experiment,
        started.strftime("%Y%m%dT%H%M%S%fZ"),
        {
            **summary,
            "started": started.isoformat(timespec="seconds"),
            "configuration": experiment.model_dump(mode="json"),
            "evaluations": record.evaluations(),
            "all_artifacts": record.all_artifacts(),
        },
    )
    return summary


def tuning_rows(tuned: dict[str, dict[str, list[dict[str, Any]]]]) -> list[dict[str, Any]]:
    """One row a split and combination: its options, score and whether it was chosen."""
    return [
        {"protocol": protocol, "method": method, "split": number, **row}
        for protocol, methods in tuned.items()
        for method, searches in methods.items()
        for number, search in enumerate(searches)
        for row in search["table"]
    ]


def stage_flow(stage: str) -> Flow[..., dict[str, Any]]:
    """Flow that runs one stage alone, with what is stored of those before it."""

    def run_stage(
        experiment: str = "emoji",
        overrides: list[str] | None = None,
        workspace: Path = DEFAULT_WORKSPACE,
        again: bool = False,
    ) -> dict[str, Any]:
        return run_experiment.fn(
            experiment,
            overrides,
            workspace=workspace,
            only=stage,
            force=[stage] if again else None,
        )

    run_stage.__doc__ = f"Run the stage {stage!r} of an experiment alone."
    return flow(run_stage, name=f"cppcl-{stage}", persist_result=False)


fetch_flow, split_flow, learn_flow, extract_flow, curricula_flow = map(stage_flow, STAGES[:5])
tune_flow, train_flow, encode_flow, evaluate_flow, report_flow = map(stage_flow, STAGES[5:])
