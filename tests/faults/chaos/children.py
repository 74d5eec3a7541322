"""Functions run in processes of their own, which may be killed and may not hang."""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

TIMEOUT_S = 120.0


@dataclass
class Ended:
    """How a child ended.

    Attributes
    ----------
    how : str
        ``done``, ``failed``, ``killed`` or ``hung``.
    value : object
        What the function returned.
    error : str
        Type and text of the error it raised.
    seconds : float
        How long it took.
    """

    how: str
    value: Any = None
    error: str = ""
    seconds: float = 0.0


class Child:
    """A function that runs in a child of this process, which must have one thread only."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self.started = time.monotonic()
        self._pipe, write = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            os.close(self._pipe)
            _answer(function, write)
        os.close(write)

    def wait(self) -> Ended:
        """Wait until it ends, and end it if it takes too long."""
        data = bytearray()
        hung = False
        while True:
            left = self.started + TIMEOUT_S - time.monotonic()
            if not select.select([self._pipe], [], [], max(0, left))[0]:
                hung = True
                os.kill(self.pid, signal.SIGKILL)
                break
            part = os.read(self._pipe, 2**16)
            if not part:
                break
            data += part
        os.close(self._pipe)
        _, status = os.waitpid(self.pid, 0)
        seconds = time.monotonic() - self.started
        if hung:
            return Ended("hung", seconds=seconds)
        if os.WIFSIGNALED(status):
            return Ended("killed", seconds=seconds)
        value, error = pickle.loads(data)
        return Ended("failed" if error else "done", value, error, seconds)


def run(function: Callable[[], Any]) -> Ended:
    """Run a function in a child, and wait."""
    return Child(function).wait()


def _answer(function: Callable[[], Any], pipe: int) -> None:
    value, error = None, ""
    try:
        value = function()
    except BaseException as raised:
        error = f"{type(raised).__name__}: {raised}"
    with contextlib.suppress(BaseException):
        data = pickle.dumps((value, error))
        while data:
            data = data[os.write(pipe, data) :]
    os._exit(0)
