"""Compiled loops of the pacing step; imported where they are used, as numba takes its time.

Every loop runs in one thread and in a fixed order: the same input gives the same bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.optim.compiled import compiled

Vector = NDArray[np.float64]

ACTIVE_SWEEPS = 30
"""Sweeps over the pairs that still change, between sweeps over all."""


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


@compiled
def equalise(
    e: int, i: int, j: int, cap: float, x: Vector, y: Vector, inverse: Vector
) -> float:  # pragma: no cover
    """Move a multiplier to where ``v_i = v_j``, or as far as its bounds allow, in place.

    Returns
    -------
    float
        By how much the two variables differed; 0 where nothing changed.
    """
    difference = abs(min(max(y[i], 0.0), 1.0) - min(max(y[j], 0.0), 1.0))
    if difference > 0:
        wanted = x[e] + (y[i] - y[j]) / (inverse[i] + inverse[j])
        allowed = min(max(wanted, 0.0), cap)
        step = allowed - x[e]
        x[e] = allowed
        y[i] -= step * inverse[i]
        y[j] += step * inverse[j]
    return difference


@compiled
def ascend(
    pairs: NDArray[Any],
    caps: Vector,
    x: Vector,
    y: Vector,
    inverse: Vector,
    tol: float,
    max_iter: int,
) -> float:  # pragma: no cover
    """Order pacing variables by coordinate ascent over the multipliers of pairs, in place.

    Minimises ``sum_p (v_p - z_p)^2 / (2 inverse_p) + sum_(i,j) cap_ij max(0, v_i - v_j)`` over
    [0, 1]. With multipliers x in [0, cap] its solution is ``v = clip(y)``, where y is z less
    ``inverse`` times what the pairs contribute to the gradient (`add_pairs`). Between sweeps over
    all pairs are some over those alone that still change: most settle at a bound.

    Returns
    -------
    float
        Largest difference of two variables for which the last sweep over all pairs changed a
        multiplier; at most `tol` unless `max_iter` such sweeps were not enough.
    """
    worst = 0.0
    changing = np.empty(len(pairs), np.int64)
    for _ in range(max_iter):
        worst, size = 0.0, 0
        for e in range(len(pairs)):
            i, j, cap = pairs[e, 0], pairs[e, 1], caps[e]
            # Settled at the bound that the order of the variables asks for.
            if x[e] != (cap if y[i] > y[j] else 0.0):
                difference = equalise(e, i, j, cap, x, y, inverse)
                if difference > 0:
                    worst = max(worst, difference)
                    changing[size] = e
                    size += 1
        if worst <= tol:
            break
        for _ in range(ACTIVE_SWEEPS):
            left, kept = 0.0, 0
            for k in range(size):
                e = changing[k]
                i, j, cap = pairs[e, 0], pairs[e, 1], caps[e]
                if x[e] != (cap if y[i] > y[j] else 0.0):
                    difference = equalise(e, i, j, cap, x, y, inverse)
                    if difference > 0:
                        left = max(left, difference)
                        changing[kept] = e
                        kept += 1
            size = kept
            if left <= max(0.1 * worst, tol):
                break
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
