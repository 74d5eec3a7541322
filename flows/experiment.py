"""Prefect flows: the whole chain, and one flow for every stage alone."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from prefect import Flow, flow
from prefect.artifacts import create_link_artifact, create_table_artifact
from prefect.runtime import flow_run

from cppcl.errors import InputError
from flows.chain import Chain
from flows.configuration.experiment import Experiment
from flows.configuration.load import YAML_SUFFIXES, load_experiment
from flows.record import RunRecord
from flows.selection import Selection
from flows.watching import artifact_key, tell_failure, watched
from tasks.stages.names import STAGES
from tasks.workspace import STAMP, Workspace

DEFAULT_WORKSPACE = Path(".cppcl")

Stage = Literal[*STAGES]  # type: ignore[valid-type]
"""A list to choose from, in Prefect's forms."""


def run_name() -> str:
    """Name of a run in Prefect's pages: that of its experiment."""
    parameters = flow_run.parameters
    configuration = parameters.get("configuration")
    return configuration.name if configuration else Path(parameters["experiment"]).stem


@flow(
    name="cppcl",
    flow_run_name=run_name,
    validate_parameters=True,
    persist_result=False,
    on_failure=[tell_failure],
    on_crashed=[tell_failure],
)
def run_experiment(
    experiment: str = "emoji",
    overrides: list[str] | None = None,
    configuration: Experiment | None = None,
    workspace: Path = DEFAULT_WORKSPACE,
    only: Stage | None = None,
    start: Stage | None = None,
    force: list[Stage] | None = None,
    until: Stage | None = None,
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
    until : str
        Stop after this stage.
    """
    source = None if configuration else from_any_folder(experiment)
    configuration = configuration_of(experiment, overrides, configuration)
    selection = Selection(only, start, tuple(force or ()), until)
    place = Workspace(Path(workspace))
    started = datetime.now(UTC)
    with place.store.in_use(), watched(configuration.name):
        record = Chain(configuration, place, selection).run()
        return publish_record(record, configuration, place, started, source)


def from_any_folder(experiment: str) -> str:
    """What another run can be given for the same experiment, from any folder."""
    path = Path(experiment)
    return str(path.absolute()) if path.suffix in YAML_SUFFIXES else experiment


def configuration_of(
    experiment: str, overrides: list[str] | None, configuration: Experiment | None
) -> Experiment:
    """Configuration that the parameters of a flow stand for.

    Raises
    ------
    InputError
        If they contradict each other, or are wrong.
    """
    if configuration is None:
        return load_experiment(experiment, overrides or ())
    if overrides:
        raise InputError("overrides apply to a named experiment, not to a whole configuration")
    return configuration


def publish_record(
    record: RunRecord,
    experiment: Experiment,
    workspace: Workspace,
    started: datetime,
    source: str | None = None,
) -> dict[str, Any]:
    """Write the record of a run, and show its scores where Prefect's users look.

    ``source`` is what the experiment was read from, where it was.
    """
    summary = record.summary(workspace.store)
    rows = [
        {"protocol": protocol, "method": method, **{k: round(v, 4) for k, v in scores.items()}}
        for protocol, methods in summary["metrics"].items()
        for method, scores in methods.items()
    ]
    name = record.experiment
    if rows:
        create_table_artifact(key=artifact_key(name, "scores"), table=rows)
    if chosen := summary.get("tuned"):
        create_table_artifact(key=artifact_key(name, "tuning"), table=tuning_rows(chosen))
    if report := record.results.get("report"):
        page = workspace.store.open(report[0].reference).file_path("report.html")
        create_link_artifact(key=artifact_key(name, "report"), link=page.absolute().as_uri())
    workspace.record_run(
        record.experiment,
        started.strftime(STAMP),
        {
            **summary,
            **({"source": source} if source else {}),
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
    hooks = {"on_failure": [tell_failure], "on_crashed": [tell_failure]}
    return flow(run_stage, name=f"cppcl-{stage}", persist_result=False, **hooks)


fetch_flow, split_flow, learn_flow, extract_flow, curricula_flow = map(stage_flow, STAGES[:5])
tune_flow, train_flow, encode_flow, evaluate_flow, report_flow = map(stage_flow, STAGES[5:])
