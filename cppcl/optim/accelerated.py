"""Accelerated proximal gradient (FISTA) with restart, whatever it moves and wherever it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Step(NamedTuple):
    """A proximal gradient step from an extrapolated point Y."""

    x: Any
    """Where it ends."""
    ahead: float
    """Inner product of ``Y - x`` and the change of x; momentum goes uphill where positive."""
    done: bool
    """True if this is the last step."""
    extrapolated: Callable[[float], Any]
    """Next Y: x and this share of its change."""


class Run(NamedTuple):
    """Outcome of `accelerate`."""

    x: Any
    """Last point."""
    n_iter: int
    """Steps taken."""
    converged: bool
    """True if a step was the last by its own account."""


def accelerate(
    start: Any, step: Callable[[Any, Any], Step], *, max_iter: int, momentum: bool = True
) -> Run:
    """Take steps until one is done, with momentum that restarts where it goes uphill.

    The momentum is that of Beck and Teboulle 2009, the restart that of O'Donoghue and Candes
    2015.

    Parameters
    ----------
    start : array or tensor
        First point.
    step : callable
        From an extrapolated point Y and the last point x to a `Step`.
    max_iter : int
        Steps at most.
    momentum : bool, default True
        False for plain proximal gradient, which never goes uphill.
    """
    x, Y, t = start, start, 1.0
    for n_iter in range(1, max_iter + 1):
        taken = step(Y, x)
        if taken.ahead > 0:
            t = 1.0
        t_new = (1 + (1 + 4 * t * t) ** 0.5) / 2
        share = (t - 1) / t_new if momentum else 0.0
        Y = taken.extrapolated(share) if share else taken.x
        x, t = taken.x, t_new
        if taken.done:
            return Run(x, n_iter, True)
    return Run(x, max_iter, False)


def descend_from(
    start: Any,
    step: Callable[[Any, Any], Step],
    value: Callable[[Any], float],
    *,
    max_iter: int,
) -> Run:
    """Accelerate; take plain steps where momentum raised the value, so that it never ends higher.

    Parameters
    ----------
    start, step, max_iter
        As of `accelerate`.
    value : callable
        Objective at a point.
    """
    least = value(start)
    for momentum in (True, False):
        run = accelerate(start, step, max_iter=max_iter, momentum=momentum)
        if value(run.x) <= least:
            return run
    return run._replace(x=start)
