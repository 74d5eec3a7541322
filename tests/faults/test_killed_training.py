"""A training or a search that is killed goes on from its last rounds or combinations."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from storage import Artifact, Reference
from tasks.workspace import Workspace

pytestmark = pytest.mark.flow

N_ROUNDS = 400
SLOW = {"n_rounds": N_ROUNDS, "pacing": {"stop_when_selected": False}, "n_atoms": 40}
ALPHAS = [0.01, 0.014, 0.02, 0.03, 0.05, 0.07, 0.1, 0.14]


@pytest.fixture
def slow(tmp_path, draw_pictures, make_experiment) -> Callable[..., Path]:
    """Write an experiment with one split, and CPRL with other options beside other methods."""
    configuration = make_experiment(draw_pictures(tmp_path / "shapes"))
    instance = configuration["protocols"]["instance"]
    instance["split"]["seeds"] = [0]
    configuration["protocols"] = {"instance": instance}
    cprl = instance["methods"]["cprl"] | SLOW

    def write(cluster: str = "local", again: Any = None, **options: Any) -> Path:
        file = tmp_path / "slow.yaml"
        instance["methods"] = {"cprl": cprl | options}
        if again is not None:
            instance["methods"]["again"] = {"method": "cprl", **cprl, **options, **again}
        configuration["compute"] = {"cluster": cluster}
        file.write_text(yaml.safe_dump(configuration))
        return file

    return write


@pytest.fixture
def run(cppcl, dask_address) -> Callable[..., Any]:
    """Run an experiment as far as a stage on workers that stay, which must go well."""

    def run(file: Path, until: str, place: Workspace) -> Any:
        options = ("--set", f"compute.cluster={dask_address}", "--until", until, "--json")
        result = cppcl("run", file, *options, "--workspace", place.root, code=0)
        return result

    return run


def test_a_killed_training_goes_on_from_one_of_its_rounds(
    slow, kill_run, run, dask_address, tmp_path, workspace
):
    file = slow(dask_address)

    def trained(result: Any, place: Workspace) -> Artifact:
        return place.store.open(Reference("train", result.json()["artifacts"]["train"]))

    whole = Workspace(tmp_path / "whole")
    expected = trained(run(file, "train", whole), whole)
    assert expected.run["notes"]["rounds_of_this_call"] == N_ROUNDS

    published = workspace.store.path(expected.reference)
    checkpoint = published.with_name(published.name + ".partial") / "checkpoints/training.npz"
    seen: set[int] = set()

    def replaced() -> bool:
        seen.add(checkpoint.stat().st_ino)
        return len(seen) > 1

    once = [checkpoint.exists, replaced]
    kill_run(file, "--until", "train", "--workspace", workspace.root, once=once)
    assert not published.exists()

    result = run(file, "train", workspace)
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
    slow, kill_run, run, tmp_path, workspace
):
    """Two trainings at once, killed together with the cluster of the run."""
    n_rounds = 4 * N_ROUNDS
    file = slow(n_rounds=n_rounds, alpha=0.01, again={"alpha": 0.02})

    def trained(place: Workspace) -> tuple[Any, list[Artifact]]:
        result = run(file, "train", place)
        return result, sorted(place.store.artifacts("train"), key=lambda a: a.reference.key)

    _, expected = trained(Workspace(tmp_path / "whole"))
    assert [a.run["notes"]["rounds_of_this_call"] for a in expected] == [n_rounds, n_rounds]

    def started() -> bool:
        return len(list(workspace.store.root.glob("train/*.partial/checkpoints/*.npz"))) == 2

    kill_run(file, "--until", "train", "--workspace", workspace.root, once=[started])
    assert not list(workspace.store.artifacts("train"))

    result, artifacts = trained(workspace)
    assert result.json()["cached"]["train"] is False
    assert [a.manifest for a in artifacts] == [a.manifest for a in expected]
    for artifact in artifacts:
        done = n_rounds - artifact.run["notes"]["rounds_of_this_call"]
        assert 0 < done < n_rounds
        assert f"split 0: {done} of {n_rounds} rounds were done" in result.stderr
    assert workspace.store.verify() == []


def test_a_killed_search_goes_on(slow, kill_run, run, tmp_path, workspace):
    """With the combinations that are missing, each of which takes a second or two."""
    file = slow(n_rounds=60, tune={"alpha": ALPHAS})

    def scored() -> dict[Reference, int]:
        artifacts = workspace.store.artifacts("fold-scores")
        return {a.reference: a.path.stat().st_mtime_ns for a in artifacts}

    once = [lambda: len(scored()) >= 2]
    kill_run(file, "--until", "tune", "--workspace", workspace.root, once=once)
    before = scored()
    assert 2 <= len(before) < len(ALPHAS)
    assert not list(workspace.store.references("tune"))

    result = run(file, "tune", workspace)
    expected = f"cprl, instance, split 0: {len(before)} of {len(ALPHAS)} combinations were done"
    assert expected in result.stderr
    after = scored()
    assert len(after) == len(ALPHAS)
    assert before.items() <= after.items()

    whole = Workspace(tmp_path / "whole")
    anew = run(file, "tune", whole)
    assert anew.json()["artifacts"] == result.json()["artifacts"]
    assert anew.json()["tuned"] == result.json()["tuned"]
    reference = Reference("tune", anew.json()["artifacts"]["tune"])
    assert workspace.store.open(reference).manifest == whole.store.open(reference).manifest
    assert workspace.store.verify() == []
