"""Sketch-based image retrieval by cross-paced learning of coupled dictionaries (CPRL)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cppcl.learning.cprl import CPRL

__all__ = ["CPRL"]


def __getattr__(name: str) -> Any:
    """Import on first use: the command line must not wait for numpy."""
    if name in __all__:
        from cppcl.learning import cprl as model

        return getattr(model, name)
    raise AttributeError(f"module 'cppcl' has no attribute {name!r}")
