"""Compiled loops of the pacing step; imported where they are used, as numba takes its time.

Every loop runs in one thread and in a fixed order: the same input gives the same bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.optim.compiled import compiled

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
