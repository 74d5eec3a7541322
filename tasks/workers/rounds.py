"""What learns in rounds: it tells progress, and goes on from one of the last if it was killed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from numpy.typing import NDArray

from cppcl.errors import ResumeError
from storage import load_checkpoint, save_checkpoint
from tasks.progress import Progress, log, tell

NAME = "training"
SHARE = 0.05
"""Most of the time of training that goes into checkpoints."""


class KeepsState(Protocol):
    """Where the state of a training is kept: a `storage.Writer`, or `Checkpoints`."""

    def save_checkpoint(self, name: str, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Keep arrays."""
        ...

    def load_checkpoint(self, name: str) -> dict[str, NDArray[Any]] | None:
        """Return what was kept last, or None."""
        ...


@dataclass(frozen=True)
class Checkpoints:
    """Checkpoints in the folder of an unfinished artifact, on a worker, which has no writer."""

    folder: Path

    def save_checkpoint(self, name: str, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Keep arrays."""
        save_checkpoint(self.folder, name, arrays)

    def load_checkpoint(self, name: str) -> dict[str, NDArray[Any]] | None:
        """Return what was kept last, or None."""
        return load_checkpoint(self.folder, name)


class ReportedRound(Protocol):
    """What a callback is told; `cppcl.learning.resuming.Round` is one."""

    @property
    def number(self) -> int:
        """Which round, from 1."""
        ...

    @property
    def n_rounds(self) -> int:
        """How many at most."""
        ...

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """All that training needs to go on from here."""
        ...


def fit_in_rounds(
    fit: Callable[..., Any],
    place: KeepsState,
    *,
    stage: str,
    label: str,
    show: Callable[[float], None] | None = None,
) -> tuple[Any, int]:
    """Fit what learns in rounds, resuming after a killed call.

    Parameters
    ----------
    fit : callable
        Takes ``callback`` and ``resume_from``.
    place : KeepsState
        Where its state is kept.
    stage, label : str
        What progress is told of.
    show : callable
        Told the share of rounds that are done, too.

    Returns
    -------
    result : object
        What `fit` returned.
    done : int
        Rounds of this call.
    """
    show = show or (lambda share: None)
    rounds = Rounds(place, stage, label, show)
    state = place.load_checkpoint(NAME)
    try:
        fitted = fit(callback=rounds, resume_from=state)
    except ResumeError as error:
        log(f"{label}: starts anew, since what was kept of it is of no use: {error}")
        fitted = fit(callback=rounds, resume_from=None)
    show(1)
    return fitted, rounds.done


class Rounds:
    """Callback of a training: tells progress, and saves the state as often as is cheap."""

    def __init__(
        self, place: KeepsState, stage: str, label: str, show: Callable[[float], None]
    ) -> None:
        self.place, self.stage, self.label, self.show = place, stage, label, show
        self.done = 0
        self._next_save = 0.0

    def __call__(self, training: ReportedRound) -> None:
        """Note the end of a round."""
        if not self.done and training.number > 1:
            log(f"{self.label}: {training.number - 1} of {training.n_rounds} rounds were done")
        self.done += 1
        detail = time_to_go(getattr(training, "seconds_to_go", None))
        tell(Progress(self.stage, self.label, training.number, training.n_rounds, detail=detail))
        self.show(training.number / training.n_rounds)
        started = time.monotonic()
        if started >= self._next_save:
            self.place.save_checkpoint(NAME, training.to_arrays())
            ended = time.monotonic()
            self._next_save = ended + (ended - started) / SHARE


def time_to_go(seconds: float | None) -> str:
    """Time that remains, in words; empty where nobody knows it."""
    if seconds is None:
        return ""
    return f"{seconds / 60:.0f} min to go" if seconds >= 90 else f"{seconds:.0f} s to go"
