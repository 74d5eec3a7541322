"""Compiled loops of the pacing step; imported where they are used, as numba takes its time.

Every loop runs in one thread and in a fixed order: the same input gives the same bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.optim.compiled import compiled, compiled_within

Vector = NDArray[np.float64]


@compiled
def row_products(
    own: NDArray[Any], other: NDArray[Any], rows: NDArray[Any], columns: NDArray[Any]
) -> NDArray[Any]:  # pragma: no cover - compiled lines are not traced
    """Inner products of rows of two matrices, (P,), without copies of the rows."""
    products = np.empty(len(rows), own.dtype)
    for e in range(len(rows)):
        x, y = own[rows[e]], other[columns[e]]
        total = own.dtype.type(0)
        for n in range(len(x)):
            total += x[n] * y[n]
        products[e] = total
    return products


@compiled
def multiply_runs(
    values: NDArray[Any], first: NDArray[Any], lengths: NDArray[Any], x: Vector, y: Vector
) -> tuple[Vector, Vector]:  # pragma: no cover
    """``A @ y`` and ``A.T @ x``; row k of A is a run of `lengths[k]` values from `first[k]` on."""
    Ay, Ax = np.zeros(len(x)), np.zeros(len(y))
    at = 0
    for k in range(len(x)):
        size = lengths[k]
        row = values[at : at + size]
        of_row, to_row = y[first[k] : first[k] + size], Ax[first[k] : first[k] + size]
        total = 0.0
        for c in range(size):
            total += row[c] * of_row[c]
            to_row[c] += row[c] * x[k]
        Ay[k] = total
        at += size
    return Ay, Ax


@compiled
def multiply_listed(
    indptr: NDArray[Any], indices: NDArray[Any], values: NDArray[Any], x: Vector, y: Vector
) -> tuple[Vector, Vector]:  # pragma: no cover
    """``A @ y`` and ``A.T @ x`` for A in compressed rows."""
    Ay, Ax = np.zeros(len(x)), np.zeros(len(y))
    for k in range(len(x)):
        total = 0.0
        for e in range(indptr[k], indptr[k + 1]):
            total += values[e] * y[indices[e]]
            Ax[indices[e]] += values[e] * x[k]
        Ay[k] = total
    return Ay, Ax


@compiled
def hinge(pairs: NDArray[Any], v: NDArray[Any]) -> float:  # pragma: no cover
    """Sum of ``max(0, v_i - v_j)`` over pairs."""
    total = 0.0
    for e in range(len(pairs)):
        total += max(v[pairs[e, 0]] - v[pairs[e, 1]], 0.0)
    return total


@compiled_within
def equalised(
    x: float, cap: float, yi: float, yj: float, inverse_i: float, inverse_j: float
) -> tuple[float, float]:  # pragma: no cover
    """By how much ``clip(y)`` differ, and the multiplier that makes y equal or is at its bound.

    Numbers only: arrays would not be inlined, which costs ten times as much.
    """
    difference = abs(min(max(yi, 0.0), 1.0) - min(max(yj, 0.0), 1.0))
    return difference, min(max(x + (yi - yj) / (inverse_i + inverse_j), 0.0), cap)


@compiled
def ascend(
    pairs: NDArray[Any],
    caps: Vector,
    x: Vector,
    y: Vector,
    inverse: Vector,
    changing: NDArray[np.int64],
    tol: float,
    max_iter: int,
) -> float:  # pragma: no cover
    """Order pacing variables by coordinate ascent over the multipliers of pairs, in place.

    Towards the minimum of ``sum_p (v_p - z_p)^2 / (2 inverse_p)
    + sum_(i,j) cap_ij max(0, v_i - v_j)`` over [0, 1]. With multipliers x in [0, cap] its
    solution is ``v = clip(y)``, where y is z less ``inverse`` times what the pairs contribute to
    the gradient (`add_pairs`). A sweep over all pairs is followed by sweeps over those that it
    changed, as most are settled at a bound, until these differ by at most `tol`.

    Parameters
    ----------
    changing : (P,) int64 array
        Space for numbers of pairs.
    max_iter : int
        Sweeps over the pairs that changed, at most.

    Returns
    -------
    float
        Largest difference of two variables for which the sweep over all pairs changed a
        multiplier.
    """
    worst, size = 0.0, 0
    for e in range(len(pairs)):
        i, j, cap = pairs[e, 0], pairs[e, 1], caps[e]
        # Else settled at the bound that the order of the variables asks for.
        if x[e] != (cap if y[i] > y[j] else 0.0):
            difference, wanted = equalised(x[e], cap, y[i], y[j], inverse[i], inverse[j])
            if difference > 0:
                step = wanted - x[e]
                x[e] = wanted
                y[i] -= step * inverse[i]
                y[j] += step * inverse[j]
                worst = max(worst, difference)
                changing[size] = e
                size += 1
    left, n_iter = worst, 0
    while left > tol and n_iter < max_iter:
        n_iter += 1
        left = 0.0
        for k in range(size):
            e = changing[k]
            i, j, cap = pairs[e, 0], pairs[e, 1], caps[e]
            if x[e] != (cap if y[i] > y[j] else 0.0):
                difference, wanted = equalised(x[e], cap, y[i], y[j], inverse[i], inverse[j])
                if difference > 0:
                    step = wanted - x[e]
                    x[e] = wanted
                    y[i] -= step * inverse[i]
                    y[j] += step * inverse[j]
                    left = max(left, difference)
    return worst


@compiled
def add_pairs(pairs: NDArray[Any], x: Vector, gradient: Vector) -> None:  # pragma: no cover
    """Add what multipliers x of the pairs contribute to the gradient, in place."""
    for e in range(len(pairs)):
        gradient[pairs[e, 0]] += x[e]
        gradient[pairs[e, 1]] -= x[e]


@compiled
def disorder(pairs: NDArray[Any], caps: Vector, x: Vector, v: Vector) -> float:  # pragma: no cover
    """Largest difference of two variables that their pair's multiplier does not account for."""
    worst = 0.0
    for e in range(len(pairs)):
        difference, cap = v[pairs[e, 0]] - v[pairs[e, 1]], caps[e]
        if x[e] != (cap if difference > 0 else 0.0):
            worst = max(worst, abs(difference))
    return worst
