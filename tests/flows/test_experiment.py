"""Flows under a Prefect server: states, artifacts, stages alone, retries."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from prefect import flow
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import (
    ArtifactFilter,
    ArtifactFilterFlowRunId,
    FlowRunFilter,
    FlowRunFilterId,
)

from cppcl.errors import InputError, TooManyBadPicturesError
from flows import experiment as flows_experiment
from flows.configuration.load import load_experiment
from flows.experiment import run_experiment, stage_flow
from storage import Recipe, Reference
from tasks.stages.contract import StageNotStoredError, StageResult, stage_task
from tasks.stages.names import STAGES
from tasks.workspace import Workspace

pytestmark = pytest.mark.flow

RUN = tuple(stage for stage in STAGES if stage != "learn")
"""Stages of an experiment whose extractors learn nothing."""


@pytest.fixture
def client(prefect_server: str) -> Iterator[SyncPrefectClient]:
    with get_client(sync_client=True) as client:
        yield client


def task_runs(client: SyncPrefectClient, state: Any, number: int) -> list[Any]:
    """Task runs of the flow run that ended in a state, once the server knows of so many."""
    of_flow = FlowRunFilter(id=FlowRunFilterId(any_=[state.state_details.flow_run_id]))
    give_up = time.monotonic() + 30
    while True:
        runs = client.read_task_runs(flow_run_filter=of_flow)
        if len(runs) >= number and all(run.state and run.state.is_final() for run in runs):
            return runs
        assert time.monotonic() < give_up, f"{len(runs)} of {number} task runs"


def artifacts(client: SyncPrefectClient, state: Any) -> dict[str, Any]:
    """Data of the named artifacts of a flow run."""
    identifier = state.state_details.flow_run_id
    of_flow = ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=[identifier]))
    found = client.read_artifacts(artifact_filter=of_flow)
    return {artifact.key: artifact.data for artifact in found if artifact.key}


@pytest.fixture(scope="module")
def second_run(finished_run: Any) -> Any:
    """State of a flow that found everything in the store."""
    return run_experiment(
        str(finished_run.file), workspace=finished_run.workspace.root, return_state=True
    )


def test_second_run_takes_every_stage_from_the_store(finished_run, second_run, client):
    summary = second_run.result()
    assert summary["cached"] == dict.fromkeys(RUN, True)
    assert summary["artifacts"] == finished_run.summary["artifacts"]
    assert summary["metrics"] == finished_run.summary["metrics"]
    runs = task_runs(client, second_run, 34)
    # 1 table, 4 splits, 4 extractions, 4 curricula, 2 searches, 3 x 6 of methods, 1 report.
    assert len(runs) == 34
    assert {run.state_name for run in runs} == {"Cached"}
    assert {run.run_count for run in runs} == {1}


def test_first_run_is_recorded(finished_run):
    summary = finished_run.summary
    assert summary["cached"] == dict.fromkeys(RUN, False)
    name, record = finished_run.workspace.find_run("tiny")
    assert name.startswith("tiny-2")
    assert record["artifacts"] == summary["artifacts"]
    first = next(iter(finished_run.workspace.run_records().values()))
    assert first["source"] == str(finished_run.file)
    assert len(record["all_artifacts"]) == 34
    for text in record["all_artifacts"]:
        assert finished_run.workspace.store.find(Reference.parse(text)) is not None
    assert record["configuration"]["protocols"]["instance"]["methods"]["cprl"]["n_atoms"] == 4


def test_scores_and_report_are_shown_in_prefect(finished_run, second_run, client):
    shown_artifacts = artifacts(client, second_run)
    table = json.loads(shown_artifacts["tiny-scores"])
    shown = {(row["protocol"], row["method"]): row for row in table}
    metrics = finished_run.summary["metrics"]
    assert set(shown) == {(p, m) for p, methods in metrics.items() for m in methods}
    for (protocol, method), row in shown.items():
        for name, value in metrics[protocol][method].items():
            assert row[name] == pytest.approx(value, abs=5e-5)
    report = shown_artifacts["tiny-report"]
    path = finished_run.workspace.store.path(
        Reference("report", finished_run.summary["artifacts"]["report"])
    )
    assert path.as_uri() in report
    assert "report.html" in report


def test_work_shows_its_progress_in_prefect(finished_run, client):
    # The server is shared with other tests: the first run in this workspace is the one.
    here = str(finished_run.workspace.root)
    runs = [r for r in client.read_flow_runs() if r.parameters.get("workspace") == here]
    first = min(runs, key=lambda run: run.created)
    of_first = ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=[first.id]))
    found = client.read_artifacts(artifact_filter=of_first)
    # A stage that takes a while has its rate beside its name.
    shown = {a.description.partition(":")[0]: a.data for a in found if a.type == "progress"}
    assert shown == {
        "sketch pixels": 100.0,
        "image pixels": 100.0,
        "sketch edgeness": 100.0,
        "image colour_contrast": 100.0,
        "train": 100.0,
        "tune": 100.0,
    }


def test_a_whole_configuration_can_be_given(finished_run):
    configuration = load_experiment(str(finished_run.file))
    summary = run_experiment(
        configuration=configuration, workspace=finished_run.workspace.root, only="split"
    )
    assert summary["cached"] == {"fetch": True, "split": True}
    with pytest.raises(InputError, match="not to a whole configuration"):
        run_experiment.fn(overrides=["alpha=1"], configuration=configuration)


def test_every_stage_has_a_flow_of_its_own():
    flows = [getattr(flows_experiment, f"{stage}_flow") for stage in STAGES]
    assert [f.name for f in flows] == [f"cppcl-{stage}" for stage in STAGES]
    for f, stage in zip(flows, STAGES, strict=True):
        assert stage in f.description
        assert set(f.parameters.properties) == {"experiment", "overrides", "workspace", "again"}


def test_a_stage_alone_uses_what_is_stored(finished_run, client, copied_run):
    state = stage_flow("encode")(
        str(finished_run.file), workspace=copied_run.root, again=True, return_state=True
    )
    cached = state.result()["cached"]
    assert [s for s in STAGES if not cached.get(s, True)] == ["encode"]
    assert "evaluate" not in cached
    names = {run.name.split("-")[0]: run.state_name for run in task_runs(client, state, 27)}
    assert names["encode_features"] == "Completed"
    assert names["train_method"] == "Cached"


def test_a_stage_alone_needs_those_before_it(finished_run, tmp_path):
    with pytest.raises(StageNotStoredError, match="'fetch'"):
        stage_flow("train")(str(finished_run.file), workspace=tmp_path / "empty")
    with pytest.raises(StageNotStoredError, match=r"'train' .*--from train"):
        stage_flow("encode")(
            str(finished_run.file), ["alpha=0.7"], workspace=finished_run.workspace.root
        )


def test_bad_input_is_not_tried_again(finished_run, client, tmp_path, draw_pictures):
    shapes = draw_pictures(tmp_path / "shapes")
    for number in range(4):
        (shapes / f"sketches/square/{number}.png").write_bytes(b"")
    state = run_experiment(
        str(finished_run.file),
        [f"dataset.root={shapes}"],
        workspace=tmp_path / "workspace",
        return_state=True,
    )
    assert state.is_failed()
    with pytest.raises(TooManyBadPicturesError, match=r"4 of 12 sketch pictures"):
        state.result()
    failed = [run for run in task_runs(client, state, 6) if run.state_name == "Failed"]
    assert [run.run_count for run in failed] == [1]
    assert failed[0].name.startswith("extract_features")


def test_trouble_of_the_machine_is_tried_again(prefect_server):
    calls: dict[str, int] = {"machine": 0, "input": 0}

    def stage(kind: str) -> StageResult:
        calls[kind] += 1
        if kind == "input":
            raise InputError("alpha=-1")
        if calls[kind] < 3:
            raise OSError(5, "Input/output error")
        return StageResult(Recipe("split", "1").reference, False, 0.0)

    task = stage_task(stage).with_options(retry_delay_seconds=0)

    @flow
    def both() -> StageResult:
        result: StageResult = task("machine")
        with pytest.raises(InputError):
            task("input")
        return result

    assert both().reference.stage == "split"
    assert calls == {"machine": 3, "input": 1}


def test_a_run_keeps_the_store_from_being_collected(finished_run, monkeypatch):
    from flows.chain import Chain
    from storage import StoreInUseError

    place: Workspace = finished_run.workspace
    tried: list[str] = []

    def run(self: Chain) -> Any:
        with pytest.raises(StoreInUseError, match="in use"):
            place.store.gc([])
        tried.append(self.experiment.name)
        raise InputError("stop here")

    monkeypatch.setattr(Chain, "run", run)
    with pytest.raises(InputError, match="stop here"):
        run_experiment.fn(str(finished_run.file), workspace=place.root)
    assert tried == ["tiny"]
