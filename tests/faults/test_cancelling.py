"""A run that is cancelled in Prefect: its work stops, nothing is left, the next run goes on."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.exceptions import ObjectAlreadyExists
from prefect.states import Cancelling

from tests.faults.kill_starts import MARK, marked, wait_until

pytestmark = pytest.mark.flow

ROOT = Path(__file__).parents[2]
N_WINDOWS = 400_000
"""Of pictures that take so long that Prefect can tell the run in the meantime."""
PATIENCE_S = 120.0
STOPS_WITHIN_S = 90.0
"""From the moment when Prefect shows the run as cancelled."""


@pytest.fixture
def worker(prefect_server, tmp_path) -> Iterator[subprocess.Popen[bytes]]:
    """A worker of Prefect that starts runs as processes, as ``deployments/README.md`` has it."""
    words = ("--pool", tmp_path.name, "--type", "process", "--install-policy", "never")
    with (tmp_path / "worker.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "prefect", "worker", "start", *words],
            cwd=ROOT,
            env={
                **os.environ,
                "PREFECT_API_URL": prefect_server,
                "PREFECT_WORKER_QUERY_SECONDS": "1",
                "OMP_NUM_THREADS": "1",
                MARK: str(tmp_path),
            },
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    yield process
    children = psutil.Process(process.pid).children(recursive=True)
    for one in (*children, process):
        one.kill()
    process.wait()


@pytest.mark.parametrize("shared", [False, True], ids=["its own workers", "workers that stay"])
def test_a_cancelled_run_stops_its_work_and_keeps_what_is_finished(
    shared, worker, slow_extraction, dask_cluster, dask_address, cppcl, workspace, tmp_path
):
    expected = slow_extraction.expected
    published = workspace.store.path(expected.reference)
    partial = published.with_name(published.name + ".partial")
    elsewhere = f"compute={{cluster: '{dask_address}'}}"
    dask = dask_cluster.client()

    def n_jobs(dask_worker: Any) -> int:  # within this function, so that it is sent whole
        return len(dask_worker.state.tasks)

    def done() -> set[str]:
        return {path.name for path in partial.glob("arrays/features/c.*")}

    with get_client(sync_client=True) as client:
        pool = tmp_path.name
        with suppress(ObjectAlreadyExists):  # if the worker was the first to make it
            client.create_work_pool(WorkPoolCreate(name=pool, type="process"))
        deployment = client.create_deployment(
            client.create_flow_from_name("cppcl"),
            pool,
            entrypoint="flows/experiment.py:run_experiment",
            work_pool_name=pool,
            pull_steps=[
                {"prefect.deployments.steps.set_working_directory": {"directory": str(ROOT)}}
            ],
        )
        parameters = {
            "experiment": str(slow_extraction.file),
            "workspace": str(workspace.root),
            "overrides": [elsewhere] * shared,
        }
        run = client.create_flow_run_from_deployment(deployment, parameters=parameters)

        def state() -> Any:
            found = client.read_flow_run(run.id).state
            assert found.name not in ("Failed", "Crashed"), found
            return found

        assert wait_until(lambda: state() and len(done()) >= 3, PATIENCE_S), state()
        client.set_flow_run_state(run.id, Cancelling())
        assert wait_until(lambda: state().name == "Cancelled", PATIENCE_S), state()
        assert wait_until(lambda: len(marked(str(tmp_path))) == 1, STOPS_WITHIN_S)  # the worker
        # Those that stay end the block that they are at, and take no further one.
        assert wait_until(lambda: not any(dask.run(n_jobs).values()), STOPS_WITHIN_S)
    kept = done()
    assert 3 <= len(kept) < slow_extraction.n_blocks
    assert worker.poll() is None

    result = cppcl(
        *("run", slow_extraction.file, "--workspace", workspace.root),
        *("--set", elsewhere, "--only", "extract"),
        code=0,
    )
    n_blocks = slow_extraction.n_blocks
    # No block was made between the two: nothing went on behind the back of who cancelled.
    assert f"sketch colour_contrast: {len(kept)} of {n_blocks} blocks were done" in result.stderr
    artifact = workspace.store.open(expected.reference)
    assert artifact.manifest == expected.manifest
    assert artifact.run["resumed"] is True
    assert workspace.store.verify() == []
