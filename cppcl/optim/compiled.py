"""Loops that numba compiles; importing this imports numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile by numba, without the interpreter's lock; kept on disk where a place is writable."""
    options: Any = {"nogil": True, "fastmath": {"reassoc", "contract", "nsz", "arcp"}}
    try:
        kernel: Function = njit(cache=True, **options)(function)
    except RuntimeError:  # no place for the cache can be written
        kernel = njit(**options)(function)
    return kernel
