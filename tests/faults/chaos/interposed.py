"""Calls that change files, counted one by one; any of them can be made to fail.

Python code changes files by functions of `os` and `io`. `interpose` replaces them in the process
that calls it, which must be thrown away afterwards.
"""

from __future__ import annotations

import builtins
import contextlib
import errno
import fcntl
import io
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from storage import files

NEED_ROOM = frozenset({"create", "write", "mkdir"})
"""Calls that fail on a full disk."""


@dataclass(frozen=True)
class Fault:
    """A fault, and the call at which it happens.

    Attributes
    ----------
    at : int
        Number of the call, from 0.
    how : {'before', 'half', 'after', 'error'}
        The process is killed before it, when half of the bytes are written, or after it; or it
        fails.
    error : int
        Error number that it fails with.
    lasting : bool
        True if all later calls that need room fail too, as on a full disk.
    """

    at: int
    how: Literal["before", "half", "after", "error"]
    error: int = errno.ENOSPC
    lasting: bool = False


class Call(NamedTuple):
    """One call: its name, and the phase of the job."""

    name: str
    phase: str


class Calls:
    """Counts the calls of this process below a folder, and lets one go wrong.

    Parameters
    ----------
    root : Path
        Folder; calls elsewhere are not counted.
    fault : Fault, optional
        The fault.
    pauses : int, optional
        Seed of pauses of up to two milliseconds before every call.
    """

    def __init__(self, root: Path, fault: Fault | None, pauses: int | None) -> None:
        self.root, self.fault = str(root), fault
        self.made: list[Call] = []
        self.phase = "start"
        self._pauses = None if pauses is None else random.Random(pauses)
        self._lock = threading.Lock()

    def below(self, path: Any) -> bool:
        """True if a call on this path is counted."""
        return not isinstance(path, int) and os.fspath(path).startswith(self.root)

    def pass_on(self, name: str, call: Callable[[], Any], half: Callable[[], Any] | None = None):  # type: ignore[no-untyped-def]
        """Count a call and make it, unless it is the one that goes wrong."""
        with self._lock:
            number = len(self.made)
            self.made.append(Call(name, self.phase))
        if self._pauses:
            time.sleep(self._pauses.random() * 0.002)
        fault = self.fault
        if fault is None or number < fault.at:
            return call()
        if fault.how == "error":
            if number == fault.at or (fault.lasting and name in NEED_ROOM):
                if half:
                    half()
                raise OSError(fault.error, os.strerror(fault.error), self.root)
            return call()
        if number == fault.at:
            if fault.how == "half" and half:
                half()
            elif fault.how == "after":
                with contextlib.suppress(OSError):
                    call()
            os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(60)  # another thread may get the signal first
        return call()


def interpose(root: Path, fault: Fault | None = None, pauses: int | None = None) -> Calls:
    """Replace the calls of this process that change files."""
    calls = Calls(root, fault, pauses)

    class File(io.FileIO):
        def write(self, data: Any) -> int:
            part = memoryview(data).cast("B")
            whole = super().write
            return int(
                calls.pass_on("write", lambda: whole(part), lambda: whole(part[: len(part) // 2]))
            )

    open_file, open_descriptor, flock, exchange = io.open, os.open, fcntl.flock, files._exchange

    def opened(
        file: Any,
        mode: str = "r",
        buffering: int = -1,
        encoding: Any = None,
        *more: Any,
        **kw: Any,
    ) -> Any:
        if not set(mode) & set("wax+") or not calls.below(file):
            return open_file(file, mode, buffering, encoding, *more, **kw)
        if "+" in mode:
            raise NotImplementedError(
                f"{file} opened with mode {mode!r}: its writes would go past"
            )
        raw = calls.pass_on("create", lambda: File(file, mode.strip("bt")))
        stream = io.BufferedWriter(raw)
        return stream if "b" in mode else io.TextIOWrapper(stream, encoding, *more, **kw)

    def opened_descriptor(path: Any, flags: int, *more: Any, **kw: Any) -> int:
        def call() -> int:
            return open_descriptor(path, flags, *more, **kw)

        return (
            calls.pass_on("create", call) if flags & os.O_CREAT and calls.below(path) else call()
        )

    def counted(name: str) -> Callable[..., Any]:
        function = getattr(os, name)

        def call(path: Any, *more: Any, **kw: Any) -> Any:
            if kw.get("dir_fd") is None and not (name == "fsync" or calls.below(path)):
                return function(path, *more, **kw)
            return calls.pass_on(name, lambda: function(path, *more, **kw))

        return call

    for name in ("rename", "replace", "link", "unlink", "remove", "rmdir", "mkdir", "fsync"):
        replaced = counted(name)
        for functions in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks):
            if getattr(os, name) in functions:
                functions.add(replaced)
        setattr(os, name, replaced)
    io.open = builtins.open = opened
    os.open = opened_descriptor  # type: ignore[assignment]
    os.supports_dir_fd.add(os.open)
    fcntl.flock = lambda fd, how: calls.pass_on("flock", lambda: flock(fd, how))
    files._exchange = lambda a, b: calls.pass_on("exchange", lambda: exchange(a, b))
    return calls
