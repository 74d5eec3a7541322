"""Scores of the first k places of a ranking, each under a convention that its name says.

Publications divide the average precision of the first k places by three different numbers, often
without saying which: the number R of relevant items in the gallery, ``min(k, R)``, or the hits
among the first k (as ``torchmetrics.functional.retrieval_average_precision`` with ``top_k``). The
same ranking can have 42, 56 or 83 per cent. For the whole gallery all three are the same number.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

Denominator = Literal["R", "min_k_r", "hits"]
DENOMINATORS: tuple[Denominator, ...] = get_args(Denominator)
"""What average precision at k is divided by."""

DIVISOR_TITLES: dict[str, str] = {"R": "R", "min_k_r": "min(k, R)", "hits": "hits"}
"""The same for people."""

MAP_AT_CONVENTION = (
    " map_at_k_DIVISOR sums the precisions at the ranks of the relevant items among the first k "
    "and divides by R (R), by the lesser of k and R (min_k_r), or by the number of relevant items "
    "among the first k (hits; 0 where there are none)."
)
PRECISION_CONVENTION = (
    " precision_at_n divides by n, also where the gallery has fewer than n items: places beyond "
    "its end count as wrong."
)
IN_CLASS_CONVENTION = (
    " rank_k_in_class is rank_k where only gallery items of the query's class are ranked."
)


def map_at_name(k: int, denominator: Denominator) -> str:
    """Key of a score: mean average precision at k, with its divisor."""
    return f"map_at_{k}_{denominator}"


def in_class_name(k: int) -> str:
    """Key of a score: rank-k among the gallery items of the query's class."""
    return f"rank_{k}_in_class"


def precision_sum(positions: NDArray[np.int64], k: int, denominator: Denominator) -> float:
    """Average precision at k from the ranks of all R relevant items, from 1, ascending."""
    n_hits = int(np.searchsorted(positions, k, side="right"))
    if not n_hits:
        return 0.0
    total = float(np.sum(np.arange(1, n_hits + 1) / positions[:n_hits]))
    return total / divisor(denominator, k, len(positions), n_hits)


def divisor(denominator: Denominator, k: int, n_relevant: int, n_hits: int) -> int:
    """What a sum of precisions is divided by."""
    if denominator == "hits":
        return n_hits
    return n_relevant if denominator == "R" else min(k, n_relevant)


def expected_average_precision(
    n_relevant: NDArray[np.float64], n_gallery: int, k: int, denominator: Denominator
) -> NDArray[np.float64]:
    """Average precision at k of a random ranking, exactly, for each R.

    The items at ranks r and s < r are both relevant with probability ``R (R - 1) / (g (g - 1))``;
    so the expected sum of precisions is ``R / g [H_k + (k - H_k) (R - 1) / (g - 1)]`` with the
    harmonic number ``H_k``. Given h hits, the first k places are a random ranking of k items of
    which h are relevant, whose expected average precision is linear in h.
    """
    g, R = n_gallery, n_relevant
    reached = min(k, g)
    harmonic = float(np.sum(1 / np.arange(1, reached + 1)))
    if denominator == "hits":
        some = expected_rank(R, np.full(len(R), g), k)
        if reached == 1:
            return some
        hits = reached * R / g
        return ((harmonic - 1) * some + hits * (1 - harmonic / reached)) / (reached - 1)
    pairs = (reached - harmonic) * (R - 1) / (g - 1) if g > 1 else 0.0
    total = R / g * (harmonic + pairs)
    return np.asarray(total / (R if denominator == "R" else np.minimum(k, R)))


def expected_rank(
    n_relevant: NDArray[np.float64], n_gallery: NDArray[np.int64], k: int
) -> NDArray[np.float64]:
    """Chance that some of R relevant items of g is among the first k: 1 - C(g-R, k) / C(g, k)."""
    i = np.arange(min(k, int(n_gallery.max(initial=0))))
    left = n_gallery[:, None] - i
    misses = np.clip(left - n_relevant[:, None], 0, None) / np.maximum(left, 1)
    misses = np.where(left > 0, misses, 1.0)
    return np.asarray(1 - misses.prod(axis=1))


def family(name: str) -> tuple[str, int | None]:
    """What a score counts, and over how many places (None: all), whatever its convention.

    Names without a convention, ``map_at_k`` and ``acc_at_k``, are those of publications that do
    not state it.
    """
    for kind, pattern in _FAMILIES.items():
        if match := re.fullmatch(pattern, name):
            return kind, int(match[1]) if match.groups() else None
    return name, None


_FAMILIES = {
    "map": r"map",
    "map_at": r"map_at_(\d+)(?:_R|_min_k_r|_hits)?",
    "accuracy": r"(?:rank|acc_at)_(\d+)(?:_in_class)?",
    "precision_at": r"precision_at_(\d+)",
}


def convention_line(names: Collection[str]) -> str:
    """One line for the title of a table: under which convention its scores are.

    Parameters
    ----------
    names : collection of str
        Keys of scores.
    """
    said = []
    if "map" in names:
        said.append("mAP over the whole ranking, divided by R (all right pictures)")
    divisors = [d for d in DENOMINATORS if any(re.fullmatch(rf"map_at_\d+_{d}", n) for n in names)]
    if divisors:
        said.append(f"mAP@k divided by {', '.join(DIVISOR_TITLES[d] for d in divisors)}")
    if any(name.startswith("precision_at_") for name in names):
        said.append("P@k divided by k")
    if any(re.fullmatch(r"rank_\d+", name) for name in names):
        said.append("rank-k (Acc@k) over the whole gallery")
    if any(name.endswith("_in_class") for name in names):
        said.append("in class: among pictures of the query's class")
    return "; ".join(said)
