"""Pages served by a process, started as a user does."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
SECONDS = 120.0


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
        assert process.stdout
        assert process.stderr
        address = process.stdout.readline().strip()
        assert address.startswith("http"), process.stderr.read()
        yield process, address
    finally:
        process.kill()
        process.communicate()
        timer.cancel()
