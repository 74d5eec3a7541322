"""When the nearest picture is close, found with a model's own sketches in the gallery searched."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cppcl.retrieval.exact import Metric, nearest

OF_RIGHT = 0.05
"""Share of right answers that are called far, at most."""
OF_ALL = 0.01
"""Share of all answers that are called far, at most, where it is not known which are right."""
FIRST_K = 8


@dataclass(frozen=True)
class Closeness:
    """What tells answers that are worth nothing from others.

    Attributes
    ----------
    threshold : float or None
        Similarity from which the nearest picture counts as close; None where nothing tells.
    n_right, n_wrong : int
        Right answers, and nearest wrong ones, that were compared with it.
    right_kept, wrong_refused : float
        Share of the right answers at or above it, and of the wrong ones below it; NaN for None.
    n_unknown : int
        Answers that it was found from where too few are known to be right; then 0 and 0 are.
    """

    threshold: float | None
    n_right: int = 0
    n_wrong: int = 0
    right_kept: float = math.nan
    wrong_refused: float = math.nan
    n_unknown: int = 0


def lower_bound(values: NDArray[np.floating], share: float) -> float | None:
    """Value that one more of the same kind falls below with a probability of at most `share`.

    It is the j-th smallest of n, where j is `share` (n + 1) rounded down: one more value falls
    below it with probability j / (n + 1) at most, whatever the distribution (Vovk, Gammerman,
    Shafer: Algorithmic Learning in a Random World, 2005).

    Parameters
    ----------
    values : (n,) floating
        Exchangeable with those to come.
    share : float
        Between 0 and 1.

    Returns
    -------
    float or None
        None where n is too small: below 19 for 5 %, below 99 for 1 %.
    """
    place = math.floor(share * (len(values) + 1) + 1e-9)
    return float(np.sort(values)[place - 1]) if place else None


def closeness_of(
    query_codes: NDArray[np.floating],
    gallery_codes: NDArray[np.floating],
    query_targets: NDArray[np.str_],
    gallery_targets: NDArray[np.str_],
    *,
    metric: Metric,
) -> Closeness:
    """Find what close means in a gallery from sketches that the model did not learn from.

    Where the nearest pictures of enough sketches are right, it is what at least 95 of 100 right
    answers reach. Elsewhere it is what 99 of 100 sketches reach: right answers are no less similar
    than any others, so that at least as many of them do.

    Parameters
    ----------
    query_codes, gallery_codes : (q, N) and (g, N) floating
        Codes of sketches, and of the pictures that are searched, at least one.
    query_targets, gallery_targets : (q,) and (g,) str
        Equal ones are right.
    metric : {'cosine', 'l2', 'intersection'}
        What is compared.
    """
    drawn = query_codes.any(axis=1)
    query_codes, query_targets = query_codes[drawn], query_targets[drawn]
    if not len(query_codes):
        return Closeness(None)
    known = np.isin(query_targets, gallery_targets)
    if known.any():
        right, wrong = answers(
            query_codes[known],
            gallery_codes,
            query_targets[known],
            gallery_targets,
            metric=metric,
        )
        threshold = lower_bound(right, OF_RIGHT)
        if threshold is not None:
            kept = float((right >= threshold).mean())
            refused = float((wrong < threshold).mean()) if len(wrong) else math.nan
            return Closeness(threshold, len(right), len(wrong), kept, refused)
    _, best = nearest(query_codes, gallery_codes, 1, metric=metric)
    return Closeness(lower_bound(best[:, 0], OF_ALL), n_unknown=len(best))


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
