"""Sketch-based image retrieval by cross-paced learning of coupled dictionaries (CPRL)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cppcl.learning.cprl import CPRL

    __version__: str

__all__ = ["CPRL", "__version__"]


def __getattr__(name: str) -> Any:
    """Import on first use: the command line must not wait for numpy."""
    if name == "CPRL":
        from cppcl.learning.cprl import CPRL

        return CPRL
    if name == "__version__":
        from importlib.metadata import version

        return version("cppcl")
    raise AttributeError(f"module 'cppcl' has no attribute {name!r}")
