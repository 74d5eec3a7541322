"""A training that tells its rounds and, killed, goes on from one of the last."""

from __future__ import annotations

import time
from collections.abc import Callable
from inspect import signature
from typing import Any

from cppcl.errors import ResumeError
from cppcl.learning.rounds import Round
from cppcl.methods import Method
from storage import Writer
from tasks.progress import Progress, log, tell

NAME = "training"
SHARE = 0.05
"""Most of the time of training that goes into checkpoints."""


def fit_with_checkpoints(
    method: Method,
    arguments: tuple[Any, ...],
    writer: Writer,
    *,
    stage: str,
    label: str,
    show: Callable[[float], None] | None = None,
) -> Method:
    """Fit a method, from where a killed call left it; closed forms are just fitted.

    Parameters
    ----------
    method : Method
        Not fitted; its `fit` may take ``callback`` and ``resume_from``.
    arguments : tuple
        Positional arguments of its `fit`.
    writer : Writer
        Of the artifact that is made from it.
    stage, what : str
        What progress is told of.
    show : callable
        Told the share of rounds that are done, too.
    """
    if not in_rounds(method):
        return method.fit(*arguments)
    fit: Callable[..., Method] = method.fit
    show = show or (lambda share: None)
    rounds = Rounds(writer, stage, label, show)
    state = writer.load_checkpoint(NAME)
    try:
        fitted = fit(*arguments, callback=rounds, resume_from=state)
    except ResumeError as error:
        log(f"{label}: starts anew, since what was kept of it is of no use: {error}")
        fitted = fit(*arguments, callback=rounds)
    show(1)
    writer.note(rounds_of_this_call=rounds.done)
    return fitted


def in_rounds(method: Method) -> bool:
    """Whether a method learns in rounds and can go on from one, or is fitted at once."""
    return {"callback", "resume_from"} <= signature(method.fit).parameters.keys()


class Rounds:
    """Callback of a training: tells progress, and saves the state as often as is cheap."""

    def __init__(
        self, writer: Writer, stage: str, label: str, show: Callable[[float], None]
    ) -> None:
        self.writer, self.stage, self.label, self.show = writer, stage, label, show
        self.done = 0
        self._next_save = 0.0

    def __call__(self, training: Round) -> None:
        """Note the end of a round."""
        if not self.done and training.number > 1:
            log(f"{self.label}: {training.number - 1} of {training.n_rounds} rounds were done")
        self.done += 1
        tell(Progress(self.stage, self.label, training.number, training.n_rounds))
        self.show(training.number / training.n_rounds)
        started = time.monotonic()
        if started >= self._next_save:
            self.writer.save_checkpoint(NAME, training.to_arrays())
            ended = time.monotonic()
            self._next_save = ended + (ended - started) / SHARE
