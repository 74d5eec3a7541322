"""A search that is killed goes on with the combinations that are missing."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
import yaml

from storage import Artifact, Reference
from tasks.workspace import Workspace

pytestmark = pytest.mark.flow

N_COMBINATIONS = 8
UNTIL = ("--until", "tune")


@pytest.fixture
def slow_search(tmp_path, draw_pictures, make_experiment) -> Path:
    """An experiment with one search of combinations that take a second or two each."""
    configuration = make_experiment(draw_pictures(tmp_path / "shapes"))
    instance = configuration["protocols"]["instance"]
    instance["split"]["seeds"] = [0]
    instance["methods"] = {
        "cprl": instance["methods"]["cprl"]
        | {"n_rounds": 60, "pacing": {"stop_when_selected": False}, "n_atoms": 40}
        | {"tune": {"alpha": [0.01, 0.014, 0.02, 0.03, 0.05, 0.07, 0.1, 0.14]}}
    }
    configuration["protocols"] = {"instance": instance}
    file = tmp_path / "slow.yaml"
    file.write_text(yaml.safe_dump(configuration))
    return file


def test_a_killed_search_goes_on(
    slow_search, start_run, wait_for, cppcl, dask_address, tmp_path, workspace
):
    def run(place: Workspace) -> Any:
        result = cppcl(
            "run",
            slow_search,
            "--set",
            f"compute.cluster={dask_address}",
            *UNTIL,
            "--workspace",
            place.root,
            "--json",
        )
        assert result.code == 0, result.stderr
        return result

    def scored(place: Workspace) -> dict[Reference, int]:
        artifacts = place.store.artifacts("fold-scores")
        return {a.reference: a.path.stat().st_mtime_ns for a in artifacts}

    process = start_run(slow_search, *UNTIL, "--workspace", workspace.root)
    wait_for(lambda: len(scored(workspace)) >= 2, process)
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    before = scored(workspace)
    assert 2 <= len(before) < N_COMBINATIONS
    assert not list(workspace.store.references("tune"))

    result = run(workspace)
    expected = f"cprl, instance, split 0: {len(before)} of {N_COMBINATIONS} combinations were done"
    assert expected in result.stderr
    after = scored(workspace)
    assert len(after) == N_COMBINATIONS
    assert before.items() <= after.items()

    whole = Workspace(tmp_path / "whole")
    anew = run(whole)
    assert anew.json()["artifacts"] == result.json()["artifacts"]
    assert anew.json()["tuned"] == result.json()["tuned"]
    reference = Reference("tune", anew.json()["artifacts"]["tune"])
    resumed: Artifact = workspace.store.open(reference)
    assert resumed.manifest == whole.store.open(reference).manifest
    assert workspace.store.verify() == []
