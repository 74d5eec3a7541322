"""Flows that are deployed: an index, a retraining, and what is said of failures."""

import shlex
from typing import Any

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterKey

from cppcl.errors import CppclError, InputError
from flows.experiment import run_experiment
from flows.index import update_index
from flows.promotion import retrain
from flows.selection import Selection
from flows.watching import going_on
from tasks.progress import log

pytestmark = pytest.mark.flow


def latest_artifact(key: str) -> Any:
    """The newest artifact of a key, or None."""
    with get_client(sync_client=True) as client:
        wanted = ArtifactFilter(key=ArtifactFilterKey(any_=[key]))
        found = client.read_artifacts(artifact_filter=wanted, sort="UPDATED_DESC", limit=1)
    return found[0] if found else None


def test_extraction_stops_after_its_stage():
    selection = Selection(until="extract")
    stages = ("fetch", "split", "learn", "extract", "curricula", "train", "report")
    assert [selection.runs(stage) for stage in stages] == [True] * 4 + [False] * 3
    assert {selection.mode(stage) for stage in stages} == {"reuse"}
    with pytest.raises(InputError, match="stage 'exract' is not one of"):
        Selection(until="exract")


def test_features_are_extracted_and_the_dashboard_is_linked(finished_run, workspace):
    summary = run_experiment(str(finished_run.file), workspace=workspace.root, until="extract")
    assert set(summary["artifacts"]) == {"fetch", "split", "extract"}
    assert not summary["cached"]["extract"]
    link = latest_artifact("tiny-dashboard")
    assert link.type == "markdown"
    assert "/status" in link.data
    assert "Dask dashboard" in link.data


def test_an_index_of_a_flow_says_what_changed(copied_run, tmp_path, draw_pictures, dask_address):
    folder = draw_pictures(tmp_path / "new", per_class=3, first=20) / "images"
    given = {
        "model": "tiny",
        "folder": folder,
        "name": "shelf",
        "workspace": copied_run.root,
        "cluster_address": dask_address,
    }
    update_index(**given)
    (folder / "circle" / "broken.png").write_bytes(b"no picture")
    (folder / "circle" / "20.png").unlink()
    found = update_index(**given)
    assert (found["added"], found["removed"]) == (("circle/broken.png",), ("circle/20.png",))
    text = latest_artifact("shelf-index").data
    assert "9 pictures; 1 added, 0 changed, 1 removed, 1 skipped" in text
    assert "## Removed\n\n- `circle/20.png`" in text
    assert "## Skipped\n\n- `circle/broken.png`: " in text
    assert copied_run.find_model("shelf").key == found["key"]


def test_a_retraining_is_promoted_only_if_it_holds(copied_run, finished_run):
    file = str(finished_run.file)
    first = retrain(file, workspace=copied_run.root)
    assert first["promoted"]
    served = copied_run.find_model("tiny")
    # One atom cannot tell three shapes apart; any score is below 2.
    worse = ["protocols.instance.methods.cprl.n_atoms=1"]
    entry = copied_run.promotions / "tiny.json"
    entry.write_text(entry.read_text().replace('"bar": ', '"bar": 1'))
    second = retrain(file, worse, workspace=copied_run.root)
    assert not second["promoted"]
    assert copied_run.find_model("tiny") == served
    assert "stays; --force promotes it" in latest_artifact("tiny-promotion").data


@pytest.fixture
def stopped(finished_run: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A stage that fails."""
    import tasks.stages.evaluate

    def fail(*arguments: Any, **options: Any) -> None:
        raise CppclError("the disk is full; free some space")

    monkeypatch.setattr(tasks.stages.evaluate, "evaluate_codes", fail)
    return finished_run


def test_a_failure_says_what_failed_and_how_to_go_on(stopped, tmp_path):
    copied_run = stopped.copy(tmp_path / "copy")
    with pytest.raises(CppclError, match="disk is full"):
        run_experiment(
            str(stopped.file), ["cprl.alpha=0.02"], workspace=copied_run.root, force=["evaluate"]
        )
    text = latest_artifact("cppcl-failure").data
    assert "# tiny: failed in `evaluate_method" in text
    assert "the disk is full; free some space" in text
    command = f"cppcl run {stopped.file} --set cprl.alpha=0.02 --workspace {copied_run.root}"
    assert f"```\n{command}\n```" in text


def test_how_to_go_on_with_a_deployed_run():
    command = going_on(
        "cppcl-index",
        {"folder": "my pictures", "workers": 2, "overrides": [], "force": ["train"]},
        "nightly",
    )
    assert shlex.split(command) == [
        *("prefect", "deployment", "run", "cppcl-index/nightly", "--watch"),
        *("-p", "folder=my pictures", "-p", "workers=2"),
    ]


@pytest.mark.parametrize(
    ("flow", "parameters", "command"),
    [
        (
            "cppcl-reproduce",
            {"dataset": "pacs", "quick": True, "items": ["costs", "top5"], "anew": False},
            "cppcl reproduce pacs --quick --only costs --only top5",
        ),
        (
            "cppcl",
            {"experiment": "emoji", "overrides": ["alpha=1"], "only": "train", "force": ["train"]},
            "cppcl run emoji --set alpha=1 --only train",
        ),
        (
            "cppcl-sweep",
            {"experiment": "emoji", "options": ["n_atoms=[5, 6]"], "workspace": "w"},
            "cppcl sweep emoji 'n_atoms=[5, 6]' --workspace w",
        ),
        (
            "cppcl-index",
            {"model": "emoji", "folder": "new", "name": "shelf", "overrides": None},
            "cppcl index emoji new --name shelf",
        ),
    ],
)
def test_how_to_go_on_by_hand(flow, parameters, command):
    assert going_on(flow, parameters, None) == command


def test_remarks_outside_a_flow_go_to_nobody():
    from flows.watching import watched

    with watched("tiny"):
        log("Dask dashboard: http://127.0.0.1:1/status")
