"""The flow of a reproduction: what runs, what fails, what is absent, what is taken from before."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from flows.chain import Chain
from flows.reproduction.reproduce import run_reproduction
from storage import Artifact, Reference
from tasks.progress import Progress, listening
from tasks.workspace import Workspace

pytestmark = [
    pytest.mark.flow,
    pytest.mark.usefixtures("prefect_server", "inline_blocks_of_module", "training_here"),
]


@pytest.fixture(scope="module")
def training_here() -> Iterator[None]:
    """Train in this process, one after another."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Chain, "train_ahead", lambda self, recipes: {})
        yield


@pytest.fixture(scope="module")
def description(tmp_path_factory, draw_pictures, make_experiment) -> Path:
    """A table, a sweep and a figure of one experiment; one run fails and one lacks its data."""
    folder = tmp_path_factory.mktemp("reproduced")
    experiment = make_experiment(draw_pictures(folder / "shapes"))
    del experiment["protocols"]["category"]
    (folder / "tiny.yaml").write_text(yaml.safe_dump(experiment, sort_keys=False))
    absent = {"name": "gone", "dataset": {"name": "cufs"}, "features": experiment["features"]}
    split = {"rule": "instance", "n_train": 88, "seeds": [0]}
    absent["protocols"] = {"instance": {"split": split, "methods": {"raw_cosine": None}}}
    (folder / "gone.yaml").write_text(yaml.safe_dump(absent, sort_keys=False))
    run = {"experiment": "tiny.yaml", "protocol": "instance", "quick": ["seeds=[0]"]}
    head = {"title": "t", "source": "s"}
    lines = {
        "b": {"title": "CPRL", "printed": 0.5, "run": "cv", "method": "cprl", "errata": [1]},
        "cosine": {"title": "Cosine", "run": "cv", "method": "centred_cosine"},
        "gone": {"title": "Gone", "printed": 0.7, "run": "gone", "method": "raw_cosine"},
        "deep": {"title": "Deep", "printed": 0.9, "note": "Quoted."},
    }
    alpha = {
        "option": "alpha",
        "title": "alpha",
        "values": [0.01, 0.05, 0.1],
        "quick": [0.01, 0.1],
        "expected": "flat",
        "statement": "It is flat",
    }
    rho = {"values": [0, 0.5], "title": "rho"}
    data = {
        "name": "small",
        "title": "Shapes",
        "dataset": "folder",
        "runs": {
            "cv": {**run, "note": "as it is"},
            "bad": {**run, "overrides": ["crop=[0, 0, 90, 90]"]},
            "gone": {"experiment": "gone.yaml", "protocol": "instance"},
        },
        "items": {
            "table1": {"kind": "scores", **head, "score": "map", "lines": lines},
            "bad_curve": {
                "kind": "precision_recall",
                **head,
                "run": "bad",
                "methods": {"cprl": "CPRL"},
            },
            "alpha": {
                "kind": "sensitivity",
                **head,
                "run": "cv",
                "methods": {"cprl": "CPRL"},
                "axes": [alpha],
            },
            "rho": {
                "kind": "surface",
                **head,
                "run": "cv",
                "method": "cprl",
                "x": {"option": "image.rho", "without": ["curricula=sketch"], **rho},
                "y": {"option": "sketch.rho", "without": ["curricula=image"], **rho},
                "without_both": ["mu=0.0"],
            },
            "binary": {
                "kind": "binary_codes",
                **head,
                "run": "cv",
                "methods": {"cprl": "CPRL"},
                "bits": [3, 8],
            },
            "time": {"kind": "retrieval_time", **head, "run": "cv", "methods": {"cprl": "CPRL"}},
            "pictures": {"kind": "grid", **head, "run": "cv", "method": "cprl", "label": "CPRL"},
        },
    }
    path = folder / "small.yaml"
    path.write_text(yaml.safe_dump(data, sort_keys=False))
    return path


@dataclass(frozen=True)
class Done:
    """A reproduction, with the trainings that it took; to be read, not changed."""

    workspace: Workspace
    summary: dict[str, Any]
    state: Any
    trained: list[str]
    said: list[str]

    @property
    def artifact(self) -> Artifact:
        key = self.summary["artifacts"]["reproduction"]
        return self.workspace.store.open(Reference("reproduction", key))


def reproduce(description: Path, place: Workspace, **changes: Any) -> Done:
    trained: list[str] = []
    said: list[str] = []

    def note(progress: Progress) -> None:
        if progress.stage == "train" and progress.seconds and not progress.cached:
            trained.append(progress.label)

    with listening(note, said.append):
        state = run_reproduction(
            str(description), workspace=place.root, return_state=True, **changes
        )
    return Done(place, state.result(raise_on_failure=False), state, trained, said)


@pytest.fixture(scope="module")
def done(
    tmp_path_factory, prefect_server, inline_blocks_of_module, training_here, description
) -> Done:
    place = Workspace(tmp_path_factory.mktemp("done") / "workspace")
    return reproduce(description, place, quick=True)


def test_what_fails_is_named_and_the_others_are_there(done):
    assert done.state.is_failed()
    assert done.state.message == "failed: bad_curve"
    states = {name: item["state"] for name, item in done.summary["items"].items()}
    assert states == {
        "table1": "absent",
        "bad_curve": "failed",
        "alpha": "done",
        "rho": "done",
        "binary": "done",
        "time": "done",
        "pictures": "done",
    }
    assert done.summary["failed"] == ["bad_curve"]
    message = done.summary["items"]["bad_curve"]["message"]
    assert "crop=(0, 0, 90, 90) reaches outside a picture" in message
    assert f"failed, bad_curve: {message}" in done.said


def test_absent_data_are_told_on_their_line(done):
    text = done.artifact.text("table1.csv")
    assert "data not present: `cppcl data status cufs`" in text
    assert not (done.workspace.data / "cufs").exists()
    rows = text.splitlines()
    assert [row.split(",")[0] for row in rows[1:]] == ["CPRL", "Cosine", "Gone", "Deep"]


def test_quick_runs_the_quick_values_on_one_split(done):
    assert "Quick: " in done.summary["notes"][0]
    rows = done.artifact.text("alpha_alpha.csv").splitlines()
    assert [row.split(",")[1] for row in rows[1:]] == ["0.01", "0.1"]
    # alpha = 0.01 is the table's own; the surface has no curriculum, one of either modality, both.
    store = done.workspace.store
    options: list[Any] = [a.parameters["options"] for a in store.artifacts("train")]
    paced = [(o["alpha"], o["pacing"]) for o in options if "alpha" in o]
    learned = [(alpha, pacing["mu"], pacing["curricula"]) for alpha, pacing in paced]
    assert sorted(learned) == [
        (0.01, 0.0, "both"),
        *[(0.01, 0.5, "both")] * 2,
        (0.01, 0.5, "image"),
        (0.01, 0.5, "sketch"),
        (0.1, 0.5, "both"),
    ]
    # Each once, beside the cosine.
    assert len(done.trained) == len(learned) + 1
    binary = done.artifact.text("binary.csv")
    assert "codes are shorter than 8 entries" in binary


def test_numbers_are_those_of_the_experiment_run_alone(done, description, run_plain, workspace):
    chain = run_plain(str(description.parent / "tiny.yaml"), workspace, "seeds=[0]")
    metrics = chain.record.metrics(workspace.store)["instance"]
    first, second = done.artifact.text("table1.csv").splitlines()[1:3]
    assert float(first.split(",")[3]) == pytest.approx(metrics["cprl"]["map"])
    assert float(second.split(",")[3]) == pytest.approx(metrics["centred_cosine"]["map"])


def test_a_second_one_takes_everything_from_the_store(done, description):
    again = reproduce(description, done.workspace, quick=True)
    assert again.trained == []
    assert again.summary["cached"]
    assert again.summary["artifacts"] == done.summary["artifacts"]


def test_its_record_keeps_all_that_it_was_made_from(done):
    records = done.workspace.run_records()
    (name, record) = next(item for item in records.items() if "items" in item[1])
    assert name.startswith("reproduce-small-quick-2")
    kept = set(record["all_artifacts"])
    assert str(done.artifact.reference) in kept
    assert set(map(str, done.artifact.inputs.values())) <= kept


def test_some_items_alone(done, description):
    alone = reproduce(description, done.workspace, quick=True, items=["alpha"])
    assert alone.state.is_completed()
    assert list(alone.summary["items"]) == ["alpha"]
