"""A query that is moved by which of its answers a person likes and does not like."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cppcl.errors import InputError
from cppcl.retrieval.exact import METRICS, Metric, checked_codes, prepared_rows
from cppcl.validation import check_choice, check_number


def moved_query(
    query: ArrayLike,
    liked: ArrayLike,
    disliked: ArrayLike,
    *,
    metric: Metric = "cosine",
    towards: float = 0.75,
    away: float = 0.1,
) -> NDArray[np.float64]:
    """Move the code of a query towards some codes and away from others.

    ``q + towards mean(liked) - away mean(disliked)``, where codes count by their direction if the
    metric is the cosine (Rocchio, "Relevance feedback in information retrieval", 1971). Searching
    with it is exact search with another query.

    Parameters
    ----------
    query : array_like, (N,)
        Code that was searched with; zero if all there is are the answers.
    liked, disliked : array_like, (l, N) and (d, N)
        Codes of answers; none are no rows.
    metric : {'cosine', 'l2', 'intersection'}
        What codes are compared by. Of a distance, the mean is taken instead of the sum, which
        would leave the place of the codes.
    towards, away : float
        Weights, at least 0.

    Returns
    -------
    ndarray, (N,) float64
        Of an intersection, with no entry below zero.

    Raises
    ------
    InputError
        Codes differ in length, are not finite, or a weight is negative.
    """
    check_choice("metric", metric, METRICS)
    check_number("towards", towards, least=0)
    check_number("away", away, least=0)
    code = checked_codes("query", np.atleast_2d(np.asarray(query)))
    moved: NDArray[np.float64] = prepared_rows(code, metric)[0]
    weights = 1.0
    for name, codes, weight in (("liked", liked, towards), ("disliked", disliked, -away)):
        given = np.asarray(codes)
        if not len(given):
            continue
        rows = checked_codes(name, given)
        if rows.shape[1] != len(moved):
            raise InputError(
                f"{name} codes have {rows.shape[1]} entries and the query {len(moved)}; "
                "all must come from the same model"
            )
        moved = moved + weight * prepared_rows(rows, metric).mean(axis=0)
        weights += weight
    if metric == "l2" and weights > 0:
        moved = moved / weights
    return moved.clip(min=0) if metric == "intersection" else moved
