"""How far pacing variables are from the optimality conditions, whatever solver found them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.optim.pacing_problem import PacingProblem

TIE = 1e-3
"""Pacing variables of a pair that differ by less count as equal; the finest smoothing's width."""


def kkt_residual(
    problem: PacingProblem,
    v: NDArray[Any],
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
    if problem.regularizer == "none" or not len(v):
        return 0.0
    scale = problem.gradient_scale(v)
    gradient = problem.smooth_gradient(v).astype(np.float64)
    v = v.astype(np.float64)
    harder, easier, caps, multipliers = [], [], [], []
    for rows, curriculum, mu in problem.curricula:
        pairs = getattr(curriculum, "pairs", None)
        if pairs is None:
            gradient[rows] += mu * curriculum.smoothed_gradient(v[rows], tie)[1]
            continue
        violation = v[rows][pairs[:, 0]] - v[rows][pairs[:, 1]]
        tied = np.abs(violation) <= tie
        _add_pairs(gradient, pairs[violation > tie] + rows.start, mu)
        harder.append(pairs[tied, 0] + rows.start)
        easier.append(pairs[tied, 1] + rows.start)
        caps.append(np.full(int(tied.sum()), float(mu)))
        # The multipliers of the Huberised hinge: exact for what minimises that.
        multipliers.append(mu * np.clip(violation[tied] / tie, 0, 1))
    lower, upper = -scale * (1 - v), scale * v
    if not sum(map(len, harder)):
        return float(np.abs(np.clip(gradient, lower, upper)).max()) / scale
    i, j, cap = map(np.concatenate, (harder, easier, caps))
    degree = np.bincount(np.concatenate([i, j]), minlength=len(v))
    curvature = (degree[i] + degree[j]).astype(np.float64)

    def residual(x: NDArray[Any]) -> NDArray[Any]:
        total = gradient + np.bincount(i, x, len(v)) - np.bincount(j, x, len(v))
        return np.clip(total, lower, upper)

    x = Y = np.concatenate(multipliers)
    left = residual(x)
    best, t = float(np.abs(left).max()), 1.0
    for _ in range(max_iter):
        if best <= tol * scale:
            break
        x_new = np.clip(Y - (left[i] - left[j]) / curvature, 0, cap)
        best = min(best, float(np.abs(residual(x_new)).max()))
        change = x_new - x
        if float(np.vdot((Y - x_new) * curvature, change)) > 0:
            t = 1.0
        t_new = (1 + (1 + 4 * t * t) ** 0.5) / 2
        Y = x_new + ((t - 1) / t_new) * change
        x, t = x_new, t_new
        if not change.any():
            break
        left = residual(Y)
    return best / scale


def _add_pairs(gradient: NDArray[np.float64], pairs: NDArray[np.int64], mu: float) -> None:
    n = len(gradient)
    gradient += mu * (
        np.bincount(pairs[:, 0], minlength=n) - np.bincount(pairs[:, 1], minlength=n)
    )
