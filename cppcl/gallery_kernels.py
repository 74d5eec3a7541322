"""Compiled products with codes that are held by atom; importing this imports numba."""

from __future__ import annotations

from typing import Any

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
