"""Runs that are interrupted, stopped or killed: exit code, message, nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from deployments.guard import guarded

pytestmark = pytest.mark.flow

ROOT = Path(__file__).parents[2]


def marked(mark: str) -> list[str]:
    """Commands of the processes that inherited a variable with this value."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("CPPCL_TEST_MARK") == mark:
                found.append(" ".join(process.cmdline()))
        except psutil.Error:  # ended meanwhile, or another user's
            continue
    return found


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    pause = threading.Event()
    while not condition() and time.monotonic() < end:
        pause.wait(0.05)
    return condition()


@pytest.mark.parametrize(
    ("number", "to_all", "code"),
    [
        (signal.SIGINT, True, 130),  # Ctrl-C in a terminal
        (signal.SIGTERM, True, 143),  # timeout(1), systemd
        (signal.SIGTERM, False, 143),
        (signal.SIGKILL, False, -9),
    ],
    ids=["Ctrl-C", "stop all", "stop", "kill"],
)
def test_a_run_that_is_stopped_leaves_no_process(
    number: int, to_all: bool, code: int, slow_extraction: Any, tmp_path: Path
) -> None:
    """With a server and workers of its own, as most users run it."""
    mark, workspace = str(tmp_path), tmp_path / "workspace"
    environment = {k: v for k, v in os.environ.items() if k != "PREFECT_API_URL"}
    run = subprocess.Popen(
        [
            *(sys.executable, "-m", "deployments.cli", "run", slow_extraction.file),
            *("--workspace", workspace),
        ],
        cwd=ROOT,
        env={**environment, "CPPCL_TEST_MARK": mark},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        # As in a terminal, also where these tests run in the background, which ignores Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        text=True,
    )
    try:
        blocks = "store/extract/*.partial/arrays/features/c.*"
        assert wait_until(lambda: len(list(workspace.glob(blocks))) >= 3, 120)
        (os.killpg if to_all else os.kill)(run.pid, number)
        _, told = run.communicate(timeout=30)
        assert run.returncode == code, told
        assert wait_until(lambda: not marked(mark), 20), marked(mark)
    finally:
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGKILL)
            run.wait()
    if number != signal.SIGKILL:
        assert told.rstrip().endswith("cppcl: interrupted; what was finished is kept")
        assert "Traceback" not in told
    assert len(list(workspace.glob(blocks))) >= 3


def test_a_guarded_process_outlives_an_ordinary_end() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with guarded(child.pid), guarded(None):
        pass
    assert child.poll() is None
    child.communicate(b"\n")
    assert child.returncode == 0
