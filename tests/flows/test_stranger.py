"""An extractor, a method and a data set by someone else: one file and one registry entry each.

They have no option of ours, and a stage that went by names of ours would treat them wrongly.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from storage import Reference
from tasks.lineage import Lineage
from tasks.workspace import Workspace

pytestmark = pytest.mark.flow

ROOT = Path(__file__).parents[2]
CLASSES = Path(__file__).with_name("stranger")
ADDED = {
    "cppcl/features": ("strips", "Strips", "    for extractor in (\n", "        Strips,\n"),
    "cppcl/baselines": (
        "ordered",
        "Ordered",
        "BASELINES: dict[str, type[Baseline]] = {\n",
        '    "ordered": Ordered,\n',
    ),
    "cppcl/datasets": (
        "bars",
        "Bars",
        "DATASETS: dict[str, type[DataSet]] = {\n",
        "    Bars.name: Bars,\n",
    ),
}
"""By folder: file, class, and the entry after a line of the registry."""

EXPERIMENT: dict[str, Any] = {
    "name": "stranger",
    "dataset": {"name": "bars", "per_class": 6},
    "longest_side": 32,
    "features": {"sketch": {"name": "strips"}, "image": {"name": "strips"}},
    "curriculum": {
        "sketch": {"name": "strips", "count": 1},
        "image": {"name": "strips", "count": 1},
        "delta": 0.0,
        "rho": 1.0,
    },
    "protocols": {
        "category": {
            "split": {"rule": "category", "minimum_groups": 2, "seeds": [0]},
            "methods": {
                "ordered": {"order_weight": 2.0},
                "plain": {"method": "ordered", "order_weight": 0.0},
                "tuned": {"method": "ordered", "tune": {"order_weight": [0.0, 1.0]}},
            },
        }
    },
    "tuning": {"n_folds": 2},
    "evaluation": {"ranks": [1]},
    "report": {"queries": 2, "nearest": 2},
    "compute": {"workers": 1, "memory_per_worker": "2GiB"},
}


@dataclass(frozen=True)
class Finished:
    """What the command line of the project with these classes gives."""

    workspace: Workspace
    run: Callable[..., subprocess.CompletedProcess[str]]
    summary: dict[str, Any]


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory, prefect_server: str) -> Finished:
    project = tmp_path_factory.mktemp("project")
    for package in ("deployments", "flows", "storage", "tasks"):
        (project / package).symlink_to(ROOT / package)
    shutil.copytree(ROOT / "cppcl", project / "cppcl")
    for folder, (module, name, line, entry) in ADDED.items():
        shutil.copy(CLASSES / f"{module}.py", project / folder)
        registry = project / folder / "__init__.py"
        before, found, after = registry.read_text().partition(line)
        assert found, f"{registry} has no line {line!r}"
        imported = f"from {folder.replace('/', '.')}.{module} import {name}\n"
        text = f"{before}{found}{entry}{after}"
        registry.write_text(text.replace("\nfrom cppcl", f"\n{imported}from cppcl", 1))
    file = project / "stranger.yaml"
    file.write_text(yaml.safe_dump(EXPERIMENT))
    workspace = Workspace(project / "workspace")

    def run(*options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [
                *(sys.executable, "-m", "deployments.cli", "run", file, "--json"),
                *("--workspace", workspace.root, *options),
            ],
            cwd=project,
            env={**os.environ, "PYTHONPATH": str(project), "PREFECT_API_URL": prefect_server},
            capture_output=True,
            text=True,
            timeout=300,
        )

    done = run()
    assert done.returncode == 0, done.stderr
    return Finished(workspace, run, json.loads(done.stdout.splitlines()[-1]))


def test_the_chain_runs_from_the_data_set_to_the_report(stranger):
    assert {"fetch", "learn", "extract", "curricula", "tune", "train", "report"} <= set(
        stranger.summary["artifacts"]
    )
    scores = stranger.summary["metrics"]["category"]
    assert scores["ordered"]["map"] == scores["plain"]["map"] == 1.0
    report = stranger.workspace.store.open(
        Reference("report", stranger.summary["artifacts"]["report"])
    )
    assert "training pictures are" in report.text("report.html")


def test_curricula_go_where_the_method_says_that_it_uses_them(stranger):
    store, (_, record) = stranger.workspace.store, stranger.workspace.find_run("stranger")
    trained = {
        method: Lineage.of_evaluation(store, Reference.parse(evaluation)).training
        for method, (evaluation,) in record["evaluations"]["category"].items()
    }
    assert "curricula" in trained["ordered"].inputs
    assert "curricula" not in trained["plain"].inputs
    assert (trained["ordered"].array("model.n_pairs") > 0).all()
    assert (trained["plain"].array("model.n_pairs") == 0).all()
    searched = {
        job.parameters["options"][0]["order_weight"]: "curricula" in job.inputs
        for job in store.artifacts("fold-scores")
    }
    assert searched == {0.0: False, 1.0: True}


@pytest.mark.parametrize(
    ("options", "declared"),
    [
        (("--set", "block_rows=7", "--until", "extract"), ("'strips'", "777MiB")),
        (("--set", "tuning.seed=1", "--until", "tune"), ("'ordered'", "1.08GiB")),
    ],
)
def test_too_little_memory_is_refused_by_what_the_class_declares(stranger, options, declared):
    refused = stranger.run("--set", "memory_per_worker=900MiB", *options)
    assert refused.returncode != 0
    words = " ".join(refused.stderr.split())
    assert "compute.memory_per_worker=900MiB" in words
    assert all(word in words for word in declared), words
