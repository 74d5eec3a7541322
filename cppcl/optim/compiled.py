"""Loops that numba compiles; importing this imports numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

OPTIONS: Any = {"nogil": True, "fastmath": {"reassoc", "contract", "nsz", "arcp"}}
Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile by numba, without the interpreter's lock; kept on disk where a place is writable."""
    try:
        kernel: Function = njit(cache=True, **OPTIONS)(function)
    except RuntimeError:  # no place for the cache can be written
        kernel = njit(**OPTIONS)(function)
    return kernel


def compiled_within(function: Function) -> Function:
    """Compile a function that other compiled ones call, as a part of each of them.

    It is inlined before compilation. Else a process has the function twice, on its own and within
    its caller, which are optimised apart; which one is called depends on whether the caller was
    compiled there or read from disk, and so would the last bits of what it returns.
    """
    kernel: Function = njit(inline="always", **OPTIONS)(function)
    return kernel
