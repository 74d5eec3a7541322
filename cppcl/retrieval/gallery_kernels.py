"""Compiled parts of a search among many codes; importing this imports numba."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.optim.compiled import compiled

Array = NDArray[Any]


@compiled
def sum_of_columns(
    starts: Array, rows: Array, values: Array, support: Array, query: Array, products: Array
) -> None:  # pragma: no cover - compiled lines are not traced
    """Add ``codes @ query`` to the products, (g,), by the atoms on which the query is not zero.

    Parameters
    ----------
    starts, rows, values : arrays
        Codes (g, N) by compressed columns.
    support : (s,) int64 array
        Entries of the query that are not zero.
    query : (N,) float32 array
    products : (g,) float32 array
        Added to.
    """
    for atom in support:
        weight = query[atom]
        for k in range(starts[atom], starts[atom + 1]):
            products[rows[k]] += values[k] * weight


@compiled
def write_largest(
    scores: Array, largest: Array
) -> None:  # pragma: no cover - compiled lines are not traced
    """Write the k largest of at least k scores into (k,), largest first."""
    k = len(largest)
    largest[:] = -np.inf
    for score in scores:
        if score > largest[k - 1]:
            at = k - 1
            while at > 0 and largest[at - 1] < score:
                largest[at] = largest[at - 1]
                at -= 1
            largest[at] = score
