"""When the nearest picture is close, by a model's own sketches that it did not learn from."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cppcl.retrieval.exact import Metric, nearest

LEVEL = 0.05
"""Of the test that right and wrong answers differ at all."""
FIRST_K = 8


@dataclass(frozen=True)
class Closeness:
    """What tells a right answer from a wrong one.

    Attributes
    ----------
    threshold : float or None
        Similarity from which the nearest picture counts as close; None where nothing tells.
    n_right, n_wrong : int
        Answers that it was found from.
    right_kept, wrong_refused : float
        Share of the right answers at or above it, and of the wrong ones below it; NaN for None.
    """

    threshold: float | None
    n_right: int
    n_wrong: int
    right_kept: float = math.nan
    wrong_refused: float = math.nan


def separate(right: NDArray[np.floating], wrong: NDArray[np.floating]) -> Closeness:
    """Find the threshold that tells right answers from wrong ones best.

    It is where the two distributions differ most: the share of right answers at or above it less
    that of wrong ones is Youden's index, and its largest value the one-sided statistic of
    Kolmogorov and Smirnov. Where that is not significant there is no threshold.

    Parameters
    ----------
    right, wrong : (n,) and (m,) floating
        Similarities; ``-inf`` is allowed.
    """
    n, m = len(right), len(wrong)
    if not n or not m:
        return Closeness(None, n, m)
    values = np.unique(np.concatenate([right, wrong]))
    kept = 1 - np.searchsorted(np.sort(right), values, side="left") / n
    refused = np.searchsorted(np.sort(wrong), values, side="left") / m
    index = kept + refused - 1
    best = int(index.argmax())
    # P(D > d) is at most exp(-2 d^2 n m / (n + m)).
    if index[best] < math.sqrt(-math.log(LEVEL) / 2 * (n + m) / (n * m)):
        return Closeness(None, n, m)
    return Closeness(float(values[best]), n, m, float(kept[best]), float(refused[best]))


def answers(
    query_codes: NDArray[np.floating],
    gallery_codes: NDArray[np.floating],
    query_targets: NDArray[np.str_],
    gallery_targets: NDArray[np.str_],
    *,
    metric: Metric,
) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """Similarities of right and of wrong answers to sketches.

    Parameters
    ----------
    query_codes, gallery_codes : (q, N) and (g, N) floating
        Codes of sketches and pictures, at least one of each.
    query_targets, gallery_targets : (q,) and (g,) str
        Equal ones are right.
    metric : {'cosine', 'l2', 'intersection'}
        What is compared.

    Returns
    -------
    right : (n,) floating
        Similarity of the nearest picture, of the sketches whose nearest picture is right.
    wrong : (m,) floating
        Similarity of the nearest wrong picture of every sketch, with one at least: what it would
        find if the gallery held nothing right.
    """
    k = min(FIRST_K, len(gallery_codes))
    rows, similarities = nearest(query_codes, gallery_codes, k, metric=metric)
    is_right = gallery_targets[rows] == query_targets[:, None]
    right = similarities[is_right[:, 0], 0]
    found = []
    open_queries = np.arange(len(query_codes))
    while True:
        has_wrong = ~is_right.all(axis=1)
        first = (~is_right[has_wrong]).argmax(axis=1)
        found.append(similarities[has_wrong][np.arange(len(first)), first])
        open_queries = open_queries[~has_wrong]
        if not len(open_queries) or k == len(gallery_codes):
            return right, np.concatenate(found)
        k = min(4 * k, len(gallery_codes))
        rows, similarities = nearest(query_codes[open_queries], gallery_codes, k, metric=metric)
        is_right = gallery_targets[rows] == query_targets[open_queries, None]
