"""The flow of a sweep: every combination, what failed, what is stored, what goes on."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import yaml
from pydantic_core import SchemaError

import flows.sweep
from cppcl.errors import InputError
from flows.sweep import run_sweep
from storage import Artifact, Reference
from tasks.progress import Progress, listening
from tasks.workspace import Workspace
from tests.cppcl.report.pages import rows_of

pytestmark = [
    pytest.mark.flow,
    pytest.mark.usefixtures("prefect_server", "inline_blocks_of_module", "blank_reports"),
]


class Killed(BaseException):
    """As when the process is killed."""


@pytest.fixture(scope="module")
def source(tmp_path_factory, draw_pictures, make_experiment) -> str:
    """An experiment of two methods on two splits."""
    folder = tmp_path_factory.mktemp("sweep")
    configuration = make_experiment(draw_pictures(folder / "shapes"))
    del configuration["curriculum"], configuration["protocols"]["category"]
    configuration["protocols"]["instance"]["methods"]["cprl"]["pacing"] = {"mu": 0.0}
    path = folder / "tiny.yaml"
    path.write_text(yaml.safe_dump(configuration, sort_keys=False))
    return str(path)


def run(source: str, workspace: Workspace, *options: str, **changes: Any) -> Any:
    """State in which a sweep ended."""
    return run_sweep(source, list(options), workspace=workspace.root, return_state=True, **changes)


def sweep_of(workspace: Workspace, summary: dict[str, Any]) -> Artifact:
    return workspace.store.open(Reference("sweep", summary["artifacts"]["sweep"]))


def table(workspace: Workspace, summary: dict[str, Any]) -> list[dict[str, str]]:
    return rows_of(sweep_of(workspace, summary).text("sweep.csv"))


@contextmanager
def noting_trainings() -> Iterator[list[str]]:
    """Hold the trainings that were not stored, in order."""
    names: list[str] = []

    def note(progress: Progress) -> None:
        if progress.stage == "train" and progress.seconds and not progress.cached:
            names.append(progress.label)

    with listening(note):
        yield names


@dataclass(frozen=True)
class Swept:
    """A sweep over two options; to be read, not changed."""

    workspace: Workspace
    summary: dict[str, Any]
    trained: list[str]


OPTIONS = ("crop=[null, [0, 0, 20, 30]]", "alpha=[0.01, 0.3]")
OVERRIDES = ["n_atoms=3"]


@pytest.fixture(scope="module")
def swept(
    tmp_path_factory, prefect_server, inline_blocks_of_module, blank_reports, source
) -> Swept:
    place = Workspace(tmp_path_factory.mktemp("swept") / "workspace")
    with noting_trainings() as trained:
        state = run(source, place, *OPTIONS, overrides=OVERRIDES, score="map")
    assert state.is_completed()
    return Swept(place, state.result(), trained)


def test_scores_are_those_of_each_combination_run_alone(swept, source, workspace, run_plain):
    summary = swept.summary
    assert summary["axes"] == {"crop": [None, [0, 0, 20, 30]], "alpha": [0.01, 0.3]}
    assert (summary["score"], summary["failed"], summary["cached"]) == ("map", 0, False)
    lines = table(swept.workspace, summary)
    assert len(lines) == 4 * 2
    found = {(line["crop"], line["alpha"], line["method"]): line for line in lines}
    for number, (crop, alpha) in enumerate(
        (crop, alpha) for crop in ("null", "[0, 0, 20, 30]") for alpha in ("0.01", "0.3")
    ):
        overrides = (*OVERRIDES, f"crop={crop}", f"alpha={alpha}")
        metrics = run_plain(source, workspace, *overrides).record.metrics(workspace.store)
        assert summary["combinations"][number]["metrics"] == metrics
        for method in ("cprl", "centred_cosine"):
            line = found[crop, alpha, method]
            assert float(line["mean"]) == metrics["instance"][method]["map"]
            assert float(line["std"]) == metrics["instance"][method]["map_std"]
            assert float(line["chance"]) == metrics["instance"]["chance"]["map"]
            assert line["splits"] == "2"
    assert len({line["mean"] for line in lines if line["method"] == "cprl"}) > 1


def test_it_is_made_from_the_evaluations_that_the_runs_recorded(swept):
    artifact = sweep_of(swept.workspace, swept.summary)
    assert artifact.parameters["experiment"] == "tiny"
    records = [r for r in swept.workspace.run_records().values() if "evaluations" in r]
    records = records[:4]  # another test may have run it again
    assert {r["configuration"]["name"] for r in records} == {"tiny-sweep-crop-alpha"}
    recorded = {
        f"{number}.{protocol}.{method}.{split}": text
        for number, record in enumerate(records)
        for protocol, methods in record["evaluations"].items()
        for method, texts in methods.items()
        for split, text in enumerate(texts)
    }
    assert {name: str(reference) for name, reference in artifact.inputs.items()} == recorded
    assert len(recorded) == 4 * 2 * 2


def test_a_second_sweep_takes_everything_from_the_store(swept, source):
    # centred_cosine takes no alpha.
    assert len(swept.trained) == 2 * (2 + 2 + 2)
    with noting_trainings() as trained:
        again = run(source, swept.workspace, *OPTIONS, overrides=OVERRIDES, score="map").result()
    assert again["cached"]
    assert again["artifacts"] == swept.summary["artifacts"]
    assert trained == []
    # A part of it is another table of the same runs.
    part = ("crop=[null]", "alpha=[0.01]")
    other = run(source, swept.workspace, *part, overrides=OVERRIDES, score="map").result()
    assert all(other["combinations"][0]["cached"].values())
    assert not other["cached"]


def test_a_sweep_that_is_killed_goes_on(source, workspace):
    def kill(progress: Progress) -> None:
        if len(trained) == 3:
            raise Killed

    with noting_trainings() as trained, pytest.raises(Killed), listening(kill):
        run(source, workspace, "n_atoms=[3, 4]", overrides=["seeds=[0]"])
    assert len(trained) == 3
    with noting_trainings() as trained:
        state = run(source, workspace, "n_atoms=[3, 4]", overrides=["seeds=[0]"])
    summary = state.result()
    assert trained == []
    assert summary["combinations"][1]["cached"]["train"]
    assert not summary["combinations"][1]["cached"]["encode"]
    assert not summary["cached"]
    assert [o["cached"]["report"] for o in summary["combinations"]] == [True, False]


def test_a_combination_that_fails_is_told_and_the_others_go_on(source, workspace):
    said: list[str] = []
    with listening(on_message=said.append):
        state = run(source, workspace, "crop=[[0, 0, 90, 90], null]", overrides=["seeds=[0]"])
    assert state.is_failed()
    assert state.message == "1 of 2 combinations failed"
    summary = state.result(raise_on_failure=False)
    assert summary["failed"] == 1
    failed, done = summary["combinations"]
    assert failed["values"] == {"crop": [0, 0, 90, 90]}
    assert "crop=(0, 0, 90, 90) reaches outside a picture" in failed["error"]
    assert set(failed) == {"values", "error"}
    assert done["metrics"]["instance"]["cprl"]["rank_1"] >= 0
    assert said[0] == "combination 1 of 2: crop=[0, 0, 90, 90]"
    assert said[1] == f"failed, crop=[0, 0, 90, 90]: {failed['error']}"
    assert said[2] == "combination 2 of 2: crop=null"
    assert [line["crop"] for line in table(workspace, summary)] == ["null", "null"]
    document = sweep_of(workspace, summary).json("sweep.json")
    assert document["missing"] == [{"crop": [0, 0, 90, 90]}]


def test_where_every_combination_fails_nothing_is_made(source, workspace):
    summary = run(source, workspace, "crop=[[0, 0, 90, 90]]").result(raise_on_failure=False)
    assert (summary["failed"], summary["artifacts"], summary["cached"]) == (1, {}, False)
    assert list(workspace.store.references("sweep")) == []
    assert workspace.run_records() == {}


def test_trouble_that_nobody_foresaw_names_its_kind(source, workspace, monkeypatch):
    from flows.chain import Chain

    def fail(self: Chain) -> None:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(Chain, "run", fail)
    summary = run(source, workspace, "n_atoms=[3]").result(raise_on_failure=False)
    assert summary["combinations"][0]["error"] == "ZeroDivisionError: by zero"


def test_an_interruption_in_disguise_ends_the_sweep(source, workspace, monkeypatch):
    """Pydantic turns it into an error of its own."""
    from flows.chain import Chain

    ran: list[str] = []

    def interrupt(self: Chain) -> None:
        ran.append(self.experiment.name)
        raise SchemaError("Error building validator: KeyboardInterrupt")

    monkeypatch.setattr(Chain, "run", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run(source, workspace, "n_atoms=[3, 4]")
    assert len(ran) == 1


def test_what_is_refused_is_refused_before_anything_runs(source, workspace, monkeypatch):
    ran: list[Any] = []
    monkeypatch.setattr(flows.sweep, "run_combination", lambda *arguments: ran.append(arguments))
    with pytest.raises(InputError, match="sweep n_atoms=-4"):
        run(source, workspace, "n_atoms=[3, -4]").result()
    with pytest.raises(InputError, match="--score rank_7"):
        run(source, workspace, "n_atoms=[3]", score="rank_7").result()
    assert ran == []
    assert not workspace.root.exists()


def test_its_record_keeps_all_that_it_was_made_from(swept):
    records = swept.workspace.run_records()
    (name, record) = next(item for item in records.items() if "sweep" in item[1]["artifacts"])
    assert name.startswith("tiny-sweep-crop-alpha-2")
    assert record["artifacts"] == swept.summary["artifacts"]
    behind = set(map(Reference.parse, record["all_artifacts"]))
    waiting = list(behind)
    while waiting:
        inputs = set(swept.workspace.store.open(waiting.pop()).inputs.values()) - behind
        behind |= inputs
        waiting += inputs
    others = set(swept.workspace.store.references()) - behind
    assert {reference.stage for reference in others} <= {"sweep"}  # of another test
    # The experiment itself was not run: its model and report are not those of a combination.
    with pytest.raises(InputError, match="no run 'tiny'"):
        swept.workspace.find_run("tiny")
