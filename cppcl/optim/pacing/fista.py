"""The pacing step by accelerated proximal gradient, matrix-free."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cppcl.optim.accelerated import Step, accelerate
from cppcl.optim.pacing.problem import PacingProblem

SMOOTHING = (1e-1, 1e-2, 1e-3)
"""Widths of the Huberised hinge of curricula that do not list their pairs, from coarse to fine."""
LARGEST_SWEEPS = 1000
"""Sweeps over pairs that change, in one iteration."""


class Effort(NamedTuple):
    """How far `solve_by_fista` goes; the other solvers have accuracies of their own."""

    smoothing: Sequence[float] = SMOOTHING
    """Widths of the Huberised hinge, decreasing."""
    max_iter: int = 1000
    """Iterations at each width."""
    tol: float = 1e-6
    """Largest residual of the optimality conditions."""


class Solution(NamedTuple):
    """What a solver of the pacing step returns."""

    v: NDArray[Any]
    """Pacing variables in [0, 1], (n,)."""
    n_iter: int
    """Iterations."""
    converged: bool
    """True if the solver met its own tolerance."""
    multipliers: NDArray[np.float64] | None
    """Multiplier of each listed pair, (P,), from 0 to the pair's weight."""


def solve_by_fista(problem: PacingProblem, start: NDArray[Any], effort: Effort) -> Solution:
    """FISTA in a diagonal metric with gradient restart; exact in the pairs' hinge and the box.

    Their proximal operator is found by coordinate ascent over the pairs' multipliers
    (`cppcl.optim.pacing.kernels.ascend`), warm-started, to an accuracy that follows the
    iterations'. Curricula that do not list their pairs take part by their Huberised hinge, whose
    widths decrease. Without momentum where the problem is not convex, which then ends at a
    stationary point.

    Returns
    -------
    Solution
        Converged if, with the multipliers returned, no entry of the gradient's projection exceeds
        ``tol`` times the largest entry of any one term of the gradient, and no two variables
        differ by more than ``tol`` where their pair's multiplier says that they are in order.
    """
    from cppcl.optim.pacing.kernels import add_pairs, ascend, disorder

    tol, (pairs, caps) = effort.tol, problem.listed_pairs
    v, x = start.astype(np.float64), np.zeros(len(pairs))
    changing = np.empty(len(pairs), dtype=np.int64)
    of_pairs = np.zeros_like(v)  # what the pairs contribute to the gradient
    scale, n_iter, converged = problem.gradient_scale(v), 0, False
    moved = np.inf

    def step(Y: NDArray[Any], v: NDArray[Any]) -> Step:
        nonlocal moved
        before = Y - (problem.smoothed_gradient(Y, eps) + of_pairs) * inverse
        y = before.copy()
        # An inexact proximal operator would be amplified by the momentum.
        accuracy = max(0.1 * moved, 1e-3 * tol)
        worst = ascend(pairs, caps, x, y, inverse, changing, accuracy, LARGEST_SWEEPS)
        np.add(of_pairs, (before - y) * curvature, out=of_pairs)
        v_new = np.clip(y, 0, 1)
        change, gone = v_new - v, (Y - v_new) * curvature
        moved = float(np.abs(change).max())
        done = worst <= tol and float(np.abs(gone).max()) <= tol * scale and optimal(v_new)
        return Step(
            v_new, float(np.vdot(gone, change)), done, lambda share: v_new + share * change
        )

    def optimal(v: NDArray[Any]) -> bool:
        of_pairs[:] = 0  # anew, as rounding adds up
        add_pairs(pairs, x, of_pairs)
        gradient = problem.smoothed_gradient(v, eps) + of_pairs
        residual = v - np.clip(v - gradient / problem.gradient_scale(v), 0, 1)
        return max(float(np.abs(residual).max()), disorder(pairs, caps, x, v)) <= tol

    for eps in effort.smoothing if problem.unlisted else (0.0,):
        # Samples without curvature would leave no digits to the order of others.
        curvature = np.maximum(problem.curvature(eps), 1e-2 * scale)
        inverse, moved = 1 / curvature, np.inf
        run = accelerate(v, step, max_iter=effort.max_iter, momentum=problem.convex)
        v, converged, n_iter = run.x, run.converged, n_iter + run.n_iter
    return Solution(v.astype(start.dtype), n_iter, converged, x)
