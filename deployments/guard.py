"""Child processes that end with this one: not before it, and not after it."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

# The pipe closes without a word when the process that holds its other end is killed.
WATCH = "import os, sys; sys.stdin.read() or os.kill(int(sys.argv[1]), 15)"


@contextmanager
def guarded(process_id: int | None) -> Iterator[None]:
    """Within the ``with`` block, stop a process (SIGTERM) if this one is killed (SIGKILL).

    Parameters
    ----------
    process_id : int or None
        Which; None guards nothing.
    """
    if process_id is None:
        yield
        return
    watcher = subprocess.Popen(
        [sys.executable, "-IS", "-c", WATCH, str(process_id)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield
    finally:
        watcher.communicate(b"done")


@contextmanager
def sessions_of_their_own() -> Iterator[None]:
    """Start children in sessions of their own, wherever the code within starts them.

    Ctrl-C, and a SIGTERM to the whole process group, must not take from this process what it
    needs to end in order. Prefect has no option for its server.
    """
    popen = subprocess.Popen
    subprocess.Popen = functools.partial(popen, start_new_session=True)  # type: ignore[misc,assignment]
    try:
        yield
    finally:
        subprocess.Popen = popen  # type: ignore[misc]
