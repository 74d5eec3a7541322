"""Files that are read without waiting: a pipe, a socket or a device is refused by name."""

from __future__ import annotations

import os
import stat
from io import BufferedReader
from pathlib import Path

from cppcl.errors import InputError

_KINDS = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def special_kind(mode: int) -> str | None:
    """What a file that would be waited for is, by its mode; None for others."""
    return next((name for test, name in _KINDS if test(mode)), None)


def check_regular(path: Path) -> None:
    """Raise `InputError` for a pipe, a socket or a device; a path that is not there may be."""
    try:
        kind = special_kind(path.stat().st_mode)
    except OSError:
        return  # said by what opens it
    if kind:
        raise InputError(f"{path} is {kind}, which is never waited for; give a file")


def open_regular(path: Path) -> BufferedReader:
    """Open a file for reading bytes.

    Raises
    ------
    InputError
        It is a pipe, a socket or a device.
    OSError
        It cannot be opened.
    """
    check_regular(path)
    # It may have become a pipe meanwhile.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    file = os.fdopen(descriptor, "rb")
    if kind := special_kind(os.fstat(descriptor).st_mode):
        file.close()
        raise InputError(f"{path} is {kind}, which is never waited for; give a file")
    return file


def read_bytes(path: Path) -> bytes:
    """Content of a file; errors as of `open_regular`."""
    with open_regular(path) as file:
        return file.read()


def read_text(path: Path, encoding: str = "utf-8") -> str:
    """Text of a file; errors as of `open_regular`, and of decoding."""
    check_regular(path)
    return path.read_text(encoding=encoding)
