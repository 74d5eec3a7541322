"""Progress of stages, told to whoever listens: the terminal, Prefect, a test."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from cppcl.errors import ConvergenceWarning


@dataclass(frozen=True)
class Progress:
    """How far one piece of a stage is.

    Attributes
    ----------
    stage : str
        Stage of the chain.
    label : str
        Which piece of it, in words.
    done, total : int
        Units done and in all; ``total`` 0 where it is not known.
    cached : bool
        True if the store had it already.
    seconds : float
        Time so far.
    detail : str
        How fast it goes, and how long it will take.
    """

    stage: str
    label: str
    done: int
    total: int
    cached: bool = False
    seconds: float = 0.0
    detail: str = ""

    @property
    def finished(self) -> bool:
        """True if nothing is left to do."""
        return self.done >= self.total


_listeners: list[Callable[[Progress], None]] = []
_message_listeners: list[Callable[[str], None]] = []


def tell(progress: Progress) -> None:
    """Pass progress on to every listener."""
    for listener in list(_listeners):
        listener(progress)


def log(message: str) -> None:
    """Pass a remark for the user on to every listener."""
    for listener in list(_message_listeners):
        listener(message)


@contextmanager
def logging_convergence(label: str) -> Iterator[None]:
    """Pass on, as remarks, that solvers stopped early; other warnings stay warnings."""
    with warnings.catch_warnings(record=True) as caught:
        yield
    for warning in caught:
        if issubclass(warning.category, ConvergenceWarning):
            log(f"{label}: {warning.message}")
        else:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )


@contextmanager
def listening(
    on_progress: Callable[[Progress], None] | None = None,
    on_message: Callable[[str], None] | None = None,
) -> Iterator[None]:
    """Listen within a ``with`` block."""
    if on_progress:
        _listeners.append(on_progress)
    if on_message:
        _message_listeners.append(on_message)
    try:
        yield
    finally:
        if on_progress:
            _listeners.remove(on_progress)
        if on_message:
            _message_listeners.remove(on_message)
