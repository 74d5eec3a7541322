"""A training that is killed goes on from one of its last rounds."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from storage import Artifact, Reference
from tasks.workspace import Workspace

pytestmark = pytest.mark.flow

N_ROUNDS = 400
UNTIL = ("--until", "train")


@pytest.fixture
def slow_training(tmp_path, draw_pictures, make_experiment) -> Callable[..., Path]:
    """Write an experiment with one training of many rounds."""
    shapes = draw_pictures(tmp_path / "shapes")
    configuration = make_experiment(shapes)
    instance = configuration["protocols"]["instance"]
    instance["split"]["seeds"] = [0]
    instance["methods"] = {
        "cprl": instance["methods"]["cprl"]
        | {"n_rounds": N_ROUNDS, "pacing": {"stop_when_selected": False}, "n_atoms": 40}
    }
    configuration["protocols"] = {"instance": instance}

    def write(cluster: str, **methods: Any) -> Path:
        file = tmp_path / "slow.yaml"
        configuration["compute"] = {"cluster": cluster}
        instance["methods"] |= methods
        file.write_text(yaml.safe_dump(configuration))
        return file

    return write


def test_a_killed_training_goes_on_from_one_of_its_rounds(
    slow_training, start_run, wait_for, cppcl, dask_address, tmp_path, workspace
):
    file = slow_training(dask_address)

    def run(place: Workspace) -> Any:
        result = cppcl("run", file, *UNTIL, "--workspace", place.root, "--json")
        assert result.code == 0, result.stderr
        return result

    def trained(result: Any, place: Workspace) -> Artifact:
        return place.store.open(Reference("train", result.json()["artifacts"]["train"]))

    whole = Workspace(tmp_path / "whole")
    expected = trained(run(whole), whole)
    assert expected.run["notes"]["rounds_of_this_call"] == N_ROUNDS

    published = workspace.store.path(expected.reference)
    checkpoint = published.with_name(published.name + ".partial") / "checkpoints/training.npz"
    process = start_run(file, *UNTIL, "--workspace", workspace.root)
    wait_for(checkpoint.exists, process)
    first = checkpoint.stat().st_ino
    wait_for(lambda: checkpoint.stat().st_ino != first, process)  # replaced by a later one
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert not published.exists()

    result = run(workspace)
    artifact = trained(result, workspace)
    done = N_ROUNDS - artifact.run["notes"]["rounds_of_this_call"]
    assert 1 < done < N_ROUNDS
    assert f"cprl, instance, split 0: {done} of {N_ROUNDS} rounds were done" in result.stderr
    assert artifact.run["resumed"] is True
    assert artifact.manifest == expected.manifest
    for name in artifact.names:
        assert artifact.array(name).tobytes() == expected.array(name).tobytes()
    assert not list(artifact.path.rglob("*.npz"))
    assert workspace.store.verify() == []


def test_killed_trainings_on_workers_end_with_the_same_bytes(
    slow_training, start_run, wait_for, cppcl, dask_address, tmp_path, workspace
):
    """Two trainings at once, killed together with the cluster of the run."""
    n_rounds = 4 * N_ROUNDS
    options = {"n_atoms": 40, "n_rounds": n_rounds, "pacing": {"stop_when_selected": False}}
    first, second = ({"method": "cprl", "alpha": alpha, **options} for alpha in (0.01, 0.02))
    file = slow_training("local", cprl=first, again=second)

    def run(place: Workspace) -> tuple[Any, list[Artifact]]:
        there = ("--set", f"compute.cluster={dask_address}")
        result = cppcl("run", file, *there, *UNTIL, "--workspace", place.root, "--json")
        assert result.code == 0, result.stderr
        return result, sorted(place.store.artifacts("train"), key=lambda a: a.reference.key)

    whole = Workspace(tmp_path / "whole")
    _, expected = run(whole)
    assert [a.run["notes"]["rounds_of_this_call"] for a in expected] == [n_rounds, n_rounds]

    def started() -> bool:
        return len(list(workspace.store.root.glob("train/*.partial/checkpoints/*.npz"))) == 2

    process = start_run(file, *UNTIL, "--workspace", workspace.root)
    wait_for(started, process)
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert not list(workspace.store.artifacts("train"))

    result, artifacts = run(workspace)
    assert result.json()["cached"]["train"] is False
    assert [a.manifest for a in artifacts] == [a.manifest for a in expected]
    for artifact in artifacts:
        done = n_rounds - artifact.run["notes"]["rounds_of_this_call"]
        assert 0 < done < n_rounds
        assert f"split 0: {done} of {n_rounds} rounds were done" in result.stderr
    assert workspace.store.verify() == []
