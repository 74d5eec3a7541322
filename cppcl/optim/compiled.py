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

    It is not kept on disk: one that is read from there cannot be inlined, so that its caller would
    round otherwise than where both were compiled together, and processes would differ.
    """
    kernel: Function = njit(**OPTIONS)(function)
    return kernel
