"""Sketch-based image retrieval by cross-paced learning of coupled dictionaries (CPRL)."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cppcl.learning.cprl import CPRL
    from cppcl.learning.paired import PairedMethod

    __version__: str

__all__ = ["CPRL", "PairedMethod", "__version__"]

EXPORTED = {"CPRL": "cppcl.learning.cprl", "PairedMethod": "cppcl.learning.paired"}
"""Module of each name, imported on first use: the command line must not wait for numpy."""


def __getattr__(name: str) -> Any:
    if name in EXPORTED:
        return getattr(import_module(EXPORTED[name]), name)
    if name == "__version__":
        from importlib.metadata import version

        return version("cppcl")
    raise AttributeError(f"module 'cppcl' has no attribute {name!r}")
