"""A small artifact with every kind of content, and child processes that can be killed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from storage import Artifact, Recipe, Remote, Store, Writer, open_remote, write_block
from tests.storage.remote.remotes import Server, serving

ROOT = Path(__file__).parents[2]


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture
def recipe() -> Recipe:
    return Recipe("features", "1", {"size": 64, "scale": 0.1})


@pytest.fixture
def contents() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "features": rng.standard_normal((10, 3)).astype(np.float32),
        "labels": np.arange(7, dtype=np.int64),
        "ok": np.array([True, False, True]),
        "nothing": np.empty((0, 5), np.float64),
        "zeros": np.zeros((6, 2), np.float32),
    }


@pytest.fixture
def create(contents) -> Callable[[Writer], None]:
    def create(writer: Writer) -> None:
        values = contents["features"]
        writer.array("features", shape=values.shape, dtype=values.dtype, rows_per_block=4)
        for block in writer.pending_blocks("features"):
            write_block(writer.path, "features", block, values[4 * block : 4 * block + 4])
        for name in ("labels", "ok", "nothing", "zeros"):
            writer.put_array(name, contents[name], rows_per_block=3)
        writer.put_json("history.json", {"loss": [np.float32(0.5), 0.25], "title": "Übung"})
        writer.put_text("pages/report.html", "<p>ä</p>")
        writer.put_bytes("picture.png", bytes(range(256)))
        writer.note(device="cpu")

    return create


@pytest.fixture
def artifact(store, recipe, create) -> Artifact:
    return store.get_or_create(recipe, create).artifact


@pytest.fixture
def child() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start Python code as a process of its own, talked to by lines; ended with the test."""
    processes = []

    def start(code: str, *arguments: object) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", code, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        with process:  # closes the pipes and waits
            process.kill()


@pytest.fixture(scope="session")
def s3_server() -> Iterator[Server]:
    """An S3 server, started once; tests make buckets of their own."""
    with serving() as server:
        yield server


@pytest.fixture
def bucket(s3_server, monkeypatch) -> str:
    """URL of an empty bucket, for a process with the environment that finds it."""
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)
    return s3_server.make_bucket()


@pytest.fixture(params=["memory", "folder", "s3"])
def remote(request, tmp_path) -> Remote:
    """An empty remote of every kind."""
    if request.param == "memory":
        from obstore.store import MemoryStore

        objects = MemoryStore()
        return Remote("memory://", lambda: objects)
    if request.param == "folder":
        folder = tmp_path / "a remote"
        folder.mkdir()
        return open_remote(folder.as_uri())
    return open_remote(request.getfixturevalue("bucket"))
