"""A run that is killed goes on where it was; a worker that is killed does not stop a run."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from storage import Artifact
from tasks.cluster.session import cluster_session
from tasks.progress import Progress, listening

pytestmark = pytest.mark.flow


def chunks(folder: Path) -> dict[str, Path]:
    """Chunk files of an artifact's arrays, finished or not, by array and name."""
    return {f"{path.parent.name}/{path.name}": path for path in folder.glob("arrays/*/c.*")}


def contents(artifact: Artifact) -> dict[str, bytes]:
    return {name: path.read_bytes() for name, path in chunks(artifact.path).items()}


def test_a_killed_run_goes_on_where_it_was(
    slow_extraction, kill_run, cppcl, dask_address, workspace
):
    expected: Artifact = slow_extraction.expected
    published = workspace.store.path(expected.reference)
    partial = published.with_name(published.name + ".partial")

    def three() -> bool:
        return len(list(partial.glob("arrays/features/c.*"))) >= 3

    kill_run(slow_extraction.file, "--workspace", workspace.root, once=[three])
    assert not published.exists()
    before = {name: path.stat().st_mtime_ns for name, path in chunks(partial).items()}
    done = [name for name in before if name.startswith("features/c.")]
    assert 3 <= len(done) < slow_extraction.n_blocks

    options = ("--set", f"compute={{cluster: '{dask_address}'}}", "--only", "extract")
    result = cppcl("run", slow_extraction.file, *options, "--workspace", workspace.root, code=0)
    n_blocks = slow_extraction.n_blocks
    assert f"sketch colour_contrast: {len(done)} of {n_blocks} blocks were done" in result.stderr

    artifact = workspace.store.open(expected.reference)
    after = {name: path.stat().st_mtime_ns for name, path in chunks(artifact.path).items()}
    for name in done:
        assert after[name] == before[name]
    assert sorted(after) == sorted([*(f"features/c.{n}.0" for n in range(n_blocks)), "ok/c.0"])
    assert artifact.manifest == expected.manifest
    assert contents(artifact) == contents(expected)
    assert artifact.run["resumed"] is True
    assert artifact.run["notes"]["copied_rows"] == 0
    assert workspace.store.verify() == []


def test_a_killed_worker_does_not_stop_a_run(slow_extraction, dask_cluster, workspace):
    client = dask_cluster.client()
    workers = sorted(client.run(os.getpid).values())
    assert len(workers) == 2
    killed: list[int] = []

    def kill(progress: Progress) -> None:
        if progress.total == slow_extraction.n_blocks and progress.done == 3:
            killed.append(workers[0])
            os.kill(workers[0], signal.SIGKILL)

    said: list[str] = []
    with listening(kill, said.append):
        artifact = slow_extraction.extract(workspace)
    assert killed == workers[:1]
    assert any(text.startswith("Dask dashboard: ") for text in said)
    assert artifact.manifest == slow_extraction.expected.manifest
    assert contents(artifact) == contents(slow_extraction.expected)
    # The nanny brings another worker up.
    client.wait_for_workers(2, timeout=60)
    alive = sorted(client.run(os.getpid).values())
    assert len(alive) == 2
    assert workers[0] not in alive


def test_workers_that_have_all_died_are_awaited(dask_cluster, dask_address):
    """A stage that begins in that moment must not take them for workers without memory."""
    client = dask_cluster.client()
    with cluster_session(dask_address) as session:
        session.client()
        for worker in client.run(os.getpid).values():
            os.kill(worker, signal.SIGKILL)
        pause = threading.Event()
        while client.scheduler_info(n_workers=-1)["workers"]:
            pause.wait(0.01)
        assert session.memory_of_a_worker() == 2 * 2**30
        assert session.resource("cpu") == {"CPU": 1}
    client.wait_for_workers(2, timeout=60)
