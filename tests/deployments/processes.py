"""Pages served by a process, started as a user does."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SECONDS = 120.0


def wait_for(condition: Callable[[], Any], process: subprocess.Popen[Any], seconds: float) -> Any:
    """What a condition gives once it holds; nothing if the process ends or the time is over."""
    limit = time.monotonic() + seconds
    while not (found := condition()) and time.monotonic() < limit:
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.25)
            return None
    return found


@contextmanager
def started(*words: object) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run a command of cppcl that serves a page; gives its process and the address it prints."""
    process = subprocess.Popen(
        [sys.executable, "-m", "deployments.cli", *map(str, words)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    timer = threading.Timer(SECONDS, process.kill)
    timer.start()
    try:
        address = process.stdout.readline().strip()
        assert address.startswith("http"), process.stderr.read()
        yield process, address
    finally:
        process.kill()
        process.communicate()
        timer.cancel()
