"""Kill ``cppcl run`` at random moments of its first seconds, and look for processes that stay.

Run from the project's folder::

    python tests/faults/kill_starts.py --kills 40 [--seconds 15] [--seed 0]

Each run has a Prefect server and workers of its own, and begins with an empty workspace. It prints
a line a kill, and ends with exit code 1 if a process was left.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[2]
MARK = "CPPCL_TEST_MARK"
GRACE_SECONDS = 20.0


def start_marked(mark: str, *arguments: object) -> subprocess.Popen[str]:
    """Start ``cppcl run`` as most users do; all its processes inherit a mark."""
    environment = {k: v for k, v in os.environ.items() if k != "PREFECT_API_URL"}
    return subprocess.Popen(
        [sys.executable, "-m", "deployments.cli", "run", *map(str, arguments)],
        cwd=ROOT,
        env={**environment, MARK: mark},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        # As in a terminal, also where these tests run in the background, which ignores Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        text=True,
    )


def marked(mark: str) -> list[str]:
    """Commands of the processes that inherited a mark and run."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == mark:
                found.append(" ".join(process.cmdline()))
        except psutil.Error:  # ended meanwhile, or another user's
            continue
    return found


def wait_until(condition: Callable[[], object], seconds: float) -> bool:
    """Wait for a condition; false if it does not hold in time."""
    end = time.monotonic() + seconds
    while not (holds := condition()) and time.monotonic() < end:
        time.sleep(0.05)
    return bool(holds)


def kill_start(seconds: float, mark: str, *arguments: object) -> tuple[int, list[str]]:
    """Kill a run after some seconds; returns how many processes it had, and what is left."""
    run = start_marked(mark, *arguments)
    try:
        run.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        n_running = len(marked(mark))
        run.kill()
    else:
        n_running = 0
    run.wait()
    wait_until(lambda: not marked(mark), GRACE_SECONDS)
    return n_running, marked(mark)


def main() -> int:
    """Kill runs, and print what was left of each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=40, metavar="N")
    parser.add_argument("--seconds", type=float, default=15.0, metavar="S")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    moments = random.Random(options.seed)
    n_left = 0
    for number in range(options.kills):
        seconds = moments.uniform(0, options.seconds)
        with tempfile.TemporaryDirectory(prefix="cppcl-kill-") as folder:
            n_running, left = kill_start(seconds, folder, "emoji", "--workspace", folder)
        n_left += bool(left)
        print(
            f"kill {number + 1}: after {seconds:.1f} s, {n_running} processes; "
            f"left: {', '.join(left) or 'none'}",
            flush=True,
        )
    print(f"{options.kills} kills, {n_left} of which left a process")
    return 1 if n_left else 0


if __name__ == "__main__":
    sys.exit(main())
