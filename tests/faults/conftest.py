"""An extraction that is slow enough to be interrupted, and runs that can be killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
import yaml

from flows.configuration.load import load_experiment
from storage import Artifact
from tasks.stages.extract import extract_features
from tasks.stages.fetch import fetch_data
from tasks.workspace import Workspace

ROOT = Path(__file__).parents[2]

# A tenth of a second a picture; a module may ask for another number by its N_WINDOWS.
SLOW = {"name": "colour_contrast", "n_windows": 100_000}


@dataclass
class SlowExtraction:
    """An experiment that extracts pictures slowly, and what comes of it."""

    file: Path
    slow: dict[str, Any]
    extracting_here: Callable[[], AbstractContextManager[list[str]]]
    n_blocks: int = 24

    @cached_property
    def expected(self) -> Artifact:
        """What it makes, here and without Dask."""
        with self.extracting_here() as decoded:
            artifact = self.extract(Workspace(self.file.parent / "expected"))
        assert len(decoded) == self.n_blocks
        return artifact

    def extract(self, workspace: Workspace) -> Artifact:
        """Extract the sketches as the experiment does."""
        data = load_experiment(str(self.file)).dataset
        table = fetch_data(
            workspace=workspace,
            name=data.registered_name,
            options=data.arguments(),
            key_parameters=data.key_parameters(),
        )
        result = extract_features(
            workspace=workspace,
            table=table.reference,
            modality="sketch",
            extractor=self.slow["name"],
            options={"n_windows": self.slow["n_windows"], "seed": 0},
            longest_side=40,
            block_rows=1,
        )
        return workspace.store.open(result.reference)


@pytest.fixture(scope="module")
def slow_extraction(
    request, tmp_path_factory, draw_pictures, make_experiment, extracting_here
) -> SlowExtraction:
    """24 sketches, a block each."""
    folder = tmp_path_factory.mktemp("slow")
    slow = SLOW | {"n_windows": getattr(request.module, "N_WINDOWS", SLOW["n_windows"])}
    shapes = draw_pictures(folder / "shapes", per_class=8)
    configuration = make_experiment(
        shapes,
        block_rows=1,
        curriculum=None,
        features={"sketch": slow, "image": {"name": "pixels", "size": [8, 8]}},
        compute={"workers": 1},
    )
    file = folder / "slow.yaml"
    file.write_text(yaml.safe_dump(configuration))
    return SlowExtraction(file, slow, extracting_here)


@pytest.fixture
def kill_run(prefect_server) -> Callable[..., None]:
    """Start ``cppcl run``, and kill it with all its children once conditions have held in turn."""

    def kill(*arguments: object, once: Sequence[Callable[[], bool]]) -> None:
        process = subprocess.Popen(
            [sys.executable, "-m", "deployments.cli", "run", *map(str, arguments)],
            cwd=ROOT,
            env={**os.environ, "PREFECT_API_URL": prefect_server},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        give_up = time.monotonic() + 120
        try:
            for condition in once:
                while not condition():
                    assert time.monotonic() < give_up
                    with suppress(subprocess.TimeoutExpired):
                        pytest.fail(f"the run ended with exit code {process.wait(timeout=0.02)}")
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            code = process.wait()
        assert code == -signal.SIGKILL

    return kill
