"""Compiled intersection of histograms; importing this imports numba."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from cppcl.optim.compiled import compiled, compiled_within

Array = NDArray[Any]

_ROWS, _COLUMNS = 16, 2048  # two tiles of float64 that stay in the cache together


@compiled
def intersections(
    queries: Array, codes: Array, scores: Array
) -> None:  # pragma: no cover - compiled lines are not traced
    """Sum over entries of the smaller size where signs agree, (q, N) and (g, N) into (q, g).

    The order of the sum depends on nothing but N: equal codes have equal scores.
    """
    scores[:] = 0
    for q_first in range(0, len(queries), _ROWS):
        q_last = min(q_first + _ROWS, len(queries))
        for g_first in range(0, len(codes), _ROWS):
            g_last = min(g_first + _ROWS, len(codes))
            for first in range(0, queries.shape[1], _COLUMNS):
                last = min(first + _COLUMNS, queries.shape[1])
                for q in range(q_first, q_last):
                    query = queries[q, first:last]
                    for g in range(g_first, g_last):
                        scores[q, g] += overlap(query, codes[g, first:last])


@compiled
def intersections_of_pairs(
    queries: Array, codes: Array, scores: Array
) -> None:  # pragma: no cover - compiled lines are not traced
    """As `intersections`, of row with row, into (n,)."""
    for row in range(len(queries)):
        scores[row] = 0
        for first in range(0, queries.shape[1], _COLUMNS):
            last = min(first + _COLUMNS, queries.shape[1])
            scores[row] += overlap(queries[row, first:last], codes[row, first:last])


@compiled_within
def overlap(
    query: Array, code: Array
) -> float:  # pragma: no cover - compiled lines are not traced
    """Intersection of two vectors."""
    total = 0.0
    for k in range(len(query)):
        a, b = query[k], code[k]
        smaller = a if a < b else b
        larger = b if a < b else a
        # At most one of both terms is not zero.
        total += (smaller if smaller > 0 else 0.0) - (larger if larger < 0 else 0.0)
    return total
