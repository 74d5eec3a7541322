"""The pacing step by accelerated projected gradient on a smoothed hinge, matrix-free."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cppcl.optim.pacing_problem import PacingProblem

SMOOTHING = (1e-1, 1e-2, 1e-3)
"""Widths of the Huberised hinge, from coarse to fine."""


class Effort(NamedTuple):
    """How far `solve_by_fista` goes; the other solvers have accuracies of their own."""

    smoothing: Sequence[float] = SMOOTHING
    """Widths of the Huberised hinge, decreasing."""
    max_iter: int = 1000
    """Iterations at each width."""
    tol: float = 1e-6
    """Largest change of a pacing variable that ends a width."""


def solve_by_fista(
    problem: PacingProblem, start: NDArray[Any], effort: Effort
) -> tuple[NDArray[Any], int, bool]:
    """FISTA in a diagonal metric with box projection and gradient restart, widths decreasing.

    Without momentum where the problem is not convex, which then lowers the smoothed objective at
    every iteration and ends at a stationary point.

    Returns
    -------
    v : (n,) array
        Pacing variables in [0, 1], of the dtype of `start`.
    n_iter : int
        Iterations at all widths together.
    converged : bool
        Whether the last width met the tolerance.
    """
    v, n_iter, converged = start, 0, False
    for eps in effort.smoothing if problem.curricula else effort.smoothing[-1:]:
        curvature = problem.curvature(eps)
        Y, t, converged = v, 1.0, False
        for _ in range(effort.max_iter):
            n_iter += 1
            v_new = np.clip(Y - problem.smoothed_gradient(Y, eps) / curvature, 0, 1)
            change = v_new - v
            if float(np.vdot((Y - v_new) * curvature, change)) > 0:
                t = 1.0
            t_new = (1 + (1 + 4 * t * t) ** 0.5) / 2
            Y = v_new + ((t - 1) / t_new) * change if problem.convex else v_new
            v, t = v_new, t_new
            if np.abs(change).max() < effort.tol:
                converged = True
                break
    return v, n_iter, converged
