"""Runs that are interrupted, stopped or killed: exit code, message, nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from cppcl.errors import CppclError
from deployments.server import END_WITH_PARENT, start_server
from tests.faults.kill_starts import marked, start_marked, wait_until

pytestmark = pytest.mark.flow


@pytest.mark.parametrize(
    ("number", "to_all", "code"),
    [
        (signal.SIGINT, True, 130),  # Ctrl-C in a terminal
        (signal.SIGTERM, False, 143),
        (signal.SIGKILL, False, -9),
    ],
    ids=["Ctrl-C", "stop", "kill"],
)
def test_a_run_that_is_stopped_leaves_no_process(number, to_all, code, slow_extraction, tmp_path):
    """With a server and workers of its own, as most users run it."""
    mark, workspace = str(tmp_path), tmp_path / "workspace"
    run = start_marked(mark, slow_extraction.file, "--workspace", workspace)
    try:
        blocks = "store/extract/*.partial/arrays/features/c.*"
        assert wait_until(lambda: len(list(workspace.glob(blocks))) >= 3, 120)
        (os.killpg if to_all else os.kill)(run.pid, number)
        _, message = run.communicate(timeout=30)
        assert run.returncode == code, message
        assert wait_until(lambda: not marked(mark), 20), marked(mark)
    finally:
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGKILL)
            run.wait()
    if number != signal.SIGKILL:
        assert message.rstrip().endswith("cppcl: interrupted; what was finished is kept")
        assert "Traceback" not in message
    assert len(list(workspace.glob(blocks))) >= 3


def test_a_run_that_is_killed_while_prefect_starts_leaves_no_process(tmp_path):
    for number in range(2):
        mark = str(tmp_path / f"{number}")
        run = start_marked(mark, "emoji", "--workspace", mark)
        assert wait_until(lambda mark=mark: len(marked(mark)) > 1, 120)
        if number:
            assert wait_until(lambda mark=mark: any("uvicorn" in c for c in marked(mark)), 60)
        run.kill()
        run.communicate()
        assert wait_until(lambda mark=mark: not marked(mark), 20), marked(mark)


def test_a_child_whose_parent_has_ended_already_ends_too():
    child = [sys.executable, "-IS", "-c", END_WITH_PARENT]
    stopped = subprocess.run([*child, "1", "/bin/echo"], capture_output=True, check=False)
    assert (stopped.returncode, stopped.stdout) == (1, b"")
    started = subprocess.run([*child, str(os.getpid()), "/bin/echo"], capture_output=True)
    assert (started.returncode, started.stdout) == (0, b"\n")


def test_a_server_that_cannot_start_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("PREFECT_API_DATABASE_CONNECTION_URL", f"sqlite+aiosqlite:///{tmp_path}")
    with pytest.raises(CppclError, match="exit code"):
        start_server()
