"""How far pacing variables are from the optimality conditions, whatever solver found them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.optim.accelerated import Step, accelerate
from cppcl.optim.pacing.problem import PacingProblem

TIE = 1e-3
"""Pacing variables of a pair that differ by less count as equal; the finest smoothing's width."""


def kkt_residual(
    problem: PacingProblem,
    v: NDArray[Any],
    multipliers: NDArray[np.float64] | None = None,
    *,
    tie: float = TIE,
    max_iter: int = 200,
    tol: float = 1e-6,
) -> float:
    r"""Residual of the Karush-Kuhn-Tucker conditions of the exact pacing problem, scale-free.

    With the slack variables eliminated, v is optimal if and only if some subgradient g of the
    objective leaves it in place: ``v = clip(v - g, 0, 1)``. A pair's hinge contributes mu where
    it is violated, 0 where it is kept, and any multiplier in [0, mu] where both variables are
    equal (to within `tie`). The multipliers that leave least are sought by accelerated projected
    gradient on ``sum_p h(g_p)``, where h is the Huber function with derivative
    ``clip(g_p, -s (1 - v_p), s v_p)``; whatever is found is an upper bound of the least residual.

    Parameters
    ----------
    problem : PacingProblem
        Its curricula may list their pairs; of one that does not, the gradient of the hinge
        Huberised over a width `tie`, a subgradient in the same sense, is used.
    v : (n,) array
        Pacing variables in [0, 1].
    multipliers : (P,) array, optional
        A guess of the listed pairs' multipliers, such as those a solver returns; those of the
        Huberised hinge, which are exact for what minimises that, where None.
    tie : float, default 1e-3
        Pairs that differ by at most this count as equal.
    max_iter : int, default 200
        Iterations over the multipliers.
    tol : float, default 1e-6
        Residual that ends them.

    Returns
    -------
    float
        ``max_p |v_p - clip(v_p - g_p / s, 0, 1)|`` with s the largest entry of any one term of
        the gradient (`PacingProblem.gradient_scale`): in units of v, the same for objectives
        that differ by a factor. Zero for optimal v; at most 1.
    """
    from cppcl.optim.pacing.kernels import add_pairs

    if problem.regularizer == "none" or not len(v):
        return 0.0
    v = v.astype(np.float64, copy=False)
    scale = problem.gradient_scale(v)
    pairs, caps = problem.listed_pairs
    violation = v[pairs[:, 0]] - v[pairs[:, 1]]
    if multipliers is None:
        multipliers = caps * np.clip(violation / tie, 0, 1)
    free = np.abs(violation) <= tie
    # Of the other pairs only one multiplier is right.
    x = np.where(free, np.clip(multipliers, 0, caps), np.where(violation > 0, caps, 0))
    gradient = problem.smoothed_gradient(v, tie)
    add_pairs(pairs, x, gradient)
    lower, upper = -scale * (1 - v), scale * v
    left = np.clip(gradient, lower, upper)
    best = float(np.abs(left).max())
    if best <= tol * scale or not free.any():
        return best / scale
    pairs, caps, x = pairs[free], caps[free], x[free]
    add_pairs(pairs, -x, gradient)
    degree = np.bincount(pairs.ravel(), minlength=len(v))
    curvature = degree[pairs].sum(axis=1).astype(np.float64)

    def residual(x: NDArray[np.float64]) -> NDArray[np.float64]:
        total = gradient.copy()
        add_pairs(pairs, x, total)
        projected: NDArray[np.float64] = np.clip(total, lower, upper)
        return projected

    first = x

    def step(Y: NDArray[np.float64], x: NDArray[np.float64]) -> Step:
        nonlocal best
        at = left if Y is first else residual(Y)
        x_new = np.clip(Y - (at[pairs[:, 0]] - at[pairs[:, 1]]) / curvature, 0, caps)
        best = min(best, float(np.abs(residual(x_new)).max()))
        change = x_new - x
        ahead = float(np.vdot((Y - x_new) * curvature, change))
        done = best <= tol * scale or not change.any()
        return Step(x_new, ahead, done, lambda share: x_new + share * change)

    accelerate(first, step, max_iter=max_iter)
    return best / scale
