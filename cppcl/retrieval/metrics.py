"""Retrieval scores under one convention, with the level that chance reaches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cppcl.errors import InputError
from cppcl.retrieval.cutoffs import (
    DENOMINATORS,
    IN_CLASS_CONVENTION,
    MAP_AT_CONVENTION,
    PRECISION_CONVENTION,
    Denominator,
    expected_average_precision,
    expected_rank,
    in_class_name,
    map_at_name,
    precision_sum,
)
from cppcl.retrieval.exact import Metric, checked_codes, rank_gallery, zero_codes
from cppcl.retrieval.hamming import precision_within
from cppcl.validation import as_array, check_choice, check_labels, check_number

CONVENTION = (
    "The whole gallery is ranked for every query; ties are broken by a fixed-seed shuffle of the "
    "gallery; all-zero codes have no cosine, rank last and are counted. Average precision is the "
    "sum of the precisions at the ranks of the relevant items, divided by the number R of "
    "relevant items in the gallery; map is its mean over queries. rank_k is the share of queries "
    "with a relevant item among the first k; precision_at_n the mean share of relevant items "
    "among the first n. Queries without any relevant item in the gallery are left out and "
    "counted. Precision at a recall level is the highest precision at that recall or beyond "
    "(interpolated), averaged over queries: for curves only, never for map. Chance is the exact "
    "expectation over random rankings."
)
"""How every score is computed; printed with the scores."""
HAMMING_CONVENTION = (
    " precision_within_r is the mean share of relevant items among those of Hamming distance at "
    "most r, 0 where there are none."
)
"""What is added for binary codes."""

RECALL_LEVELS: NDArray[np.float64] = np.arange(101) / 100
"""Recall levels of `RankingScores.precision_recall`."""

_DEFAULT_PRECISIONS = (100,)
_NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True)
class RankingScores:
    """What a ranking of the gallery is worth.

    Parameters
    ----------
    scores : dict of str to float
        ``rank_<k>``, ``map`` and ``precision_at_<n>``, what else was asked for
        (``map_at_<k>_<divisor>``, ``rank_<k>_in_class``), and ``precision_within_<r>`` of binary
        codes, each in [0, 1].
    chance : dict of str to float
        Expected value of the same scores for a random ranking.
    average_precision : ndarray, (q,) float64
        NaN for a query without any relevant item.
    first_relevant_rank : ndarray, (q,) int64
        Rank of the first relevant item, from 1; 0 for a query without any.
    precision_recall : ndarray, (101,) float64
        Mean interpolated precision at recall 0, 0.01, ..., 1.
    n_queries, n_gallery : int
        Sizes q and g.
    n_zero_queries, n_zero_gallery : int
        Number of all-zero codes on each side.
    n_without_relevant : int
        Number of queries that were left out since the gallery holds nothing relevant.
    n_bits : int or None
        Length of binary codes; None for others.
    of_queries : dict of str to ndarray, (q,) float64
        Each score of the first places that was asked for, by query; NaN for a query without any
        relevant item.
    """

    scores: dict[str, float]
    chance: dict[str, float]
    average_precision: NDArray[np.float64]
    first_relevant_rank: NDArray[np.int64]
    precision_recall: NDArray[np.float64]
    n_queries: int
    n_gallery: int
    n_zero_queries: int
    n_zero_gallery: int
    n_without_relevant: int
    n_bits: int | None = None
    convention: str = field(default=CONVENTION, repr=False)
    of_queries: dict[str, NDArray[np.float64]] = field(default_factory=dict, repr=False)


def evaluate(
    query_codes: ArrayLike,
    gallery_codes: ArrayLike,
    query_labels: Iterable[Hashable],
    gallery_labels: Iterable[Hashable],
    *,
    metric: Metric = "cosine",
    ranks: Sequence[int] = (1, 5, 10),
    precisions: Sequence[int] | None = None,
    map_at: Sequence[int] = (),
    denominators: Sequence[Denominator] = ("R",),
    query_classes: Iterable[Hashable] | None = None,
    gallery_classes: Iterable[Hashable] | None = None,
    radius: int | None = None,
    seed: int = 0,
    chunk: int = 4096,
) -> RankingScores:
    """Rank the gallery for every query and score the rankings under `CONVENTION`.

    A gallery item is relevant to a query of the same label: classes for category retrieval,
    instances for instance retrieval.

    Parameters
    ----------
    query_codes : array_like, (q, N)
        Finite numbers; rows are codes.
    gallery_codes : array_like, (g, N)
        Likewise.
    query_labels, gallery_labels : iterable of hashable
        Label of each code, q and g of them.
    metric : {'cosine', 'l2', 'intersection'}
        What is compared, see `cppcl.retrieval.exact.nearest`.
    ranks : sequence of int
        The k of ``rank_k``; above g, k counts as g.
    precisions : sequence of int, optional
        The n of ``precision_at_n``; places beyond the gallery's end count as wrong. By default
        100, where the gallery has as many.
    map_at : sequence of int
        The k of ``map_at_k_<divisor>``; the whole gallery for a k above g.
    denominators : sequence of {'R', 'min_k_r', 'hits'}
        What the sum of precisions of ``map_at`` is divided by: all relevant items, at most k of
        them, or those among the first k.
    query_classes, gallery_classes : iterable of hashable, optional
        Class of each code, for ``rank_k_in_class``: ranks among the gallery items of the query's
        class, where labels are instances.
    radius : int, optional
        The r of ``precision_within_r``, for binary codes alone: entries -1 and 1.
    seed : int
        Seed of the shuffle that breaks ties.
    chunk : int
        Gallery codes that are held in float64 at once. Memory does not grow with q but for the
        few numbers kept of each query.

    Returns
    -------
    RankingScores
        Scores, chance level, curves and counts.

    Raises
    ------
    InputError
        As `cppcl.retrieval.exact.nearest`; when labels and codes differ in number, or a label is
        missing (None, NaN); when there is no query with a relevant item; for a radius of codes
        that are not binary.
    """
    queries = checked_codes("query_codes", query_codes)
    gallery = checked_codes("gallery_codes", gallery_codes)
    ranks, map_at = _counts("ranks", ranks), _counts("map_at", map_at)
    for denominator in denominators:
        check_choice("denominators", denominator, DENOMINATORS)
    asked = precisions is not None
    tops = _counts("precisions", _DEFAULT_PRECISIONS if precisions is None else precisions)
    if not asked:
        tops = tuple(n for n in tops if n <= len(gallery))
    cuts = [(k, denominator) for k in map_at for denominator in denominators]
    targets = _classes(
        check_labels(query_labels, len(queries), "query_labels"),
        check_labels(gallery_labels, len(gallery), "gallery_labels"),
    )
    kinds = None
    if (query_classes is None) != (gallery_classes is None):
        raise InputError("give both query_classes and gallery_classes, or neither")
    if query_classes is not None and gallery_classes is not None:
        kinds = _classes(
            check_labels(query_classes, len(queries), "query_classes"),
            check_labels(gallery_classes, len(gallery), "gallery_classes"),
        )
    expected = _chance(*targets, ranks, tops, cuts, kinds)

    average = np.full(len(queries), np.nan)
    first = np.zeros(len(queries), np.int64)
    first_in_class = np.full(len(queries), _NEVER)
    hits_at = np.zeros((len(queries), len(tops)))
    averages_at = np.zeros((len(queries), len(cuts)))
    curve = np.zeros(len(RECALL_LEVELS))
    for block, order in rank_gallery(queries, gallery, metric=metric, seed=seed, chunk=chunk):
        for query, row in enumerate(order, block.start):
            relevant = targets[1][row] == targets[0][query]
            positions = np.flatnonzero(relevant) + 1
            if len(positions):
                average[query], precision = _average_precision(positions)
                first[query] = positions[0]
                hits_at[query] = np.searchsorted(positions, tops, side="right")
                averages_at[query] = [precision_sum(positions, *cut) for cut in cuts]
                curve += precision
                if kinds is not None:
                    found = np.flatnonzero(relevant[kinds[1][row] == kinds[0][query]])
                    first_in_class[query] = found[0] + 1 if len(found) else _NEVER
    used = first > 0
    n_bits, convention = None, CONVENTION
    if radius is not None:
        check_number("radius", radius, least=0, whole=True)
        n_bits, convention = queries.shape[1], CONVENTION + HAMMING_CONVENTION
        within = precision_within(queries, gallery, *targets, radius)
        expected[f"precision_within_{radius}"] = _share_relevant(*targets)
    n_used = int(np.count_nonzero(used))
    scores = {f"rank_{k}": float(np.mean(first[used] <= k)) for k in ranks}
    scores["map"] = float(np.mean(average[used]))
    values: dict[str, NDArray[np.floating]] = {
        f"precision_at_{n}": hits_at[:, column] / n for column, n in enumerate(tops)
    }
    values |= {map_at_name(*cut): averages_at[:, column] for column, cut in enumerate(cuts)}
    if kinds is not None:
        values |= {in_class_name(k): (first_in_class <= k) * 1.0 for k in ranks}
    scores |= {name: float(np.mean(of_query[used])) for name, of_query in values.items()}
    if not asked:
        values = {name: v for name, v in values.items() if not name.startswith("precision_at")}
    convention += PRECISION_CONVENTION * asked + MAP_AT_CONVENTION * bool(cuts)
    convention += IN_CLASS_CONVENTION * (kinds is not None)
    if radius is not None:
        scores[f"precision_within_{radius}"] = float(np.mean(within[used]))
    return RankingScores(
        scores=scores,
        chance=expected,
        average_precision=average,
        first_relevant_rank=first,
        precision_recall=curve / n_used,
        n_queries=len(queries),
        n_gallery=len(gallery),
        n_zero_queries=int(np.count_nonzero(zero_codes(queries))),
        n_zero_gallery=int(np.count_nonzero(zero_codes(gallery))),
        n_without_relevant=len(queries) - n_used,
        n_bits=n_bits,
        convention=convention,
        of_queries={name: np.where(used, v, np.nan) for name, v in values.items()},
    )


def summarise(scores: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Mean and standard deviation of scores over splits.

    Parameters
    ----------
    scores : sequence of dict
        `RankingScores.scores` of each split.

    Returns
    -------
    dict of str to float
        ``<name>``, the mean, for every score that all splits have, in their order; and
        ``<name>_std``, the sample deviation (n - 1), where there are two splits or more.
    """
    summary = {}
    for name in scores[0] if scores else ():
        if all(name in split for split in scores):
            values = np.array([split[name] for split in scores], np.float64)
            summary[name] = float(values.mean())
            if len(values) > 1:
                summary[f"{name}_std"] = float(values.std(ddof=1))
    return summary


def average_precision(
    relevance: ArrayLike, k: int | None = None, denominator: Denominator = "R"
) -> float:
    """Average precision of one ranking of the whole gallery, or of its first k places.

    Parameters
    ----------
    relevance : array_like, (g,)
        True if the item at each rank is relevant, nearest first.
    k : int, optional
        Places that count; all by default.
    denominator : {'R', 'min_k_r', 'hits'}
        What the sum of precisions is divided by: the number R of relevant items, the lesser of k
        and R, or the relevant items among the first k (0 where there are none).

    Raises
    ------
    InputError
        When nothing is relevant: the value is undefined then.
    """
    marks = as_array(relevance, "relevance")
    if marks.ndim != 1 or marks.dtype.kind not in "biuf" or np.isnan(marks).any():
        raise InputError(
            f"relevance must be one true or false a rank, got {marks.dtype} of shape {marks.shape}"
        )
    positions = np.flatnonzero(marks) + 1
    if not len(positions):
        raise InputError("relevance marks no item; average precision needs at least one")
    check_choice("denominator", denominator, DENOMINATORS)
    places = len(marks) if k is None else int(check_number("k", k, least=1, whole=True))
    return precision_sum(positions, places, denominator)


def chance(
    query_labels: Iterable[Hashable],
    gallery_labels: Iterable[Hashable],
    *,
    ranks: Sequence[int] = (1, 5, 10),
    precisions: Sequence[int] | None = None,
    map_at: Sequence[int] = (),
    denominators: Sequence[Denominator] = ("R",),
) -> dict[str, float]:
    """Exact expectation of the scores of `evaluate` over uniformly random rankings.

    With R of g items relevant, a ranking has a relevant item among its first k with probability
    ``1 - binom(g - R, k) / binom(g, k)``; its expected average precision is
    ``(R - 1) / (g - 1) + H_g / g * (g - R) / (g - 1)`` with the harmonic number ``H_g``, as the
    items at ranks r and s < r are both relevant with probability ``R (R - 1) / (g (g - 1))``.

    Parameters
    ----------
    query_labels, gallery_labels : iterable of hashable
        As in `evaluate`.
    ranks, precisions, map_at, denominators : sequence
        As in `evaluate`.

    Returns
    -------
    dict of str to float
        The keys of `RankingScores.scores`; means over queries with a relevant item.

    Raises
    ------
    InputError
        When there is no query with a relevant item.
    """
    classes = _classes(
        check_labels(query_labels, None, "query_labels"),
        check_labels(gallery_labels, None, "gallery_labels"),
    )
    tops = _counts("precisions", _DEFAULT_PRECISIONS if precisions is None else precisions)
    if precisions is None:
        tops = tuple(n for n in tops if n <= len(classes[1]))
    for denominator in denominators:
        check_choice("denominators", denominator, DENOMINATORS)
    cuts = [(k, d) for k in _counts("map_at", map_at) for d in denominators]
    return _chance(*classes, _counts("ranks", ranks), tops, cuts)


def _chance(
    query_classes: NDArray[np.int64],
    gallery_classes: NDArray[np.int64],
    ranks: Sequence[int],
    precisions: Sequence[int],
    cuts: Sequence[tuple[int, Denominator]] = (),
    kinds: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None,
) -> dict[str, float]:
    g = len(gallery_classes)
    sizes = np.bincount(gallery_classes, minlength=int(query_classes.max(initial=-1)) + 1)
    used = sizes[query_classes] > 0
    R: NDArray[np.float64] = sizes[query_classes[used]].astype(np.float64)
    if not len(R):
        raise InputError(
            f"none of the {len(query_classes)} queries shares a label with any of the {g} "
            "gallery items; check that query_labels and gallery_labels use the same"
        )
    expected = {}
    for k in ranks:
        expected[f"rank_{k}"] = float(np.mean(expected_rank(R, np.full(len(R), g), k)))
    if g == 1:
        expected["map"] = 1.0
    else:
        harmonic = np.sum(1 / np.arange(1, g + 1))
        expected["map"] = float(np.mean((R - 1 + harmonic / g * (g - R)) / (g - 1)))
    for n in precisions:
        share = _share_relevant(query_classes, gallery_classes)
        expected[f"precision_at_{n}"] = share * min(1.0, g / n)
    for cut in cuts:
        expected[map_at_name(*cut)] = float(np.mean(expected_average_precision(R, g, *cut)))
    if kinds is not None:
        # How many of the gallery are of the query's class, and how many of these are relevant.
        pairs = query_classes[used], kinds[0][used]
        same = np.bincount(kinds[1], minlength=int(kinds[0].max(initial=-1)) + 1)[pairs[1]]
        both = Counter(zip(gallery_classes.tolist(), kinds[1].tolist(), strict=True))
        inside = [both[pair] for pair in zip(*map(np.ndarray.tolist, pairs), strict=True)]
        for k in ranks:
            found = expected_rank(np.array(inside, np.float64), same, k)
            expected[in_class_name(k)] = float(np.mean(found))
    return expected


def _share_relevant(query_classes: NDArray[np.int64], gallery_classes: NDArray[np.int64]) -> float:
    """Mean share of the gallery that is relevant, over queries with a relevant item."""
    sizes = np.bincount(gallery_classes, minlength=int(query_classes.max(initial=-1)) + 1)
    R = sizes[query_classes].astype(np.float64)
    return float(np.mean(R[R > 0]) / len(gallery_classes))


def _average_precision(positions: NDArray[np.int64]) -> tuple[float, NDArray[np.float64]]:
    """Average precision and interpolated precision (101,) from the ranks of the R hits."""
    R = len(positions)
    precision = np.arange(1, R + 1) / positions
    interpolated = np.maximum.accumulate(precision[::-1])[::-1]
    # The first hit that reaches recall j / 100, in integers: ceil(j R / 100), at least 1.
    needed = np.maximum(1, -(-np.arange(101) * R // 100))
    return float(precision.mean()), interpolated[needed - 1]


def _classes(
    query_labels: Iterable[Hashable], gallery_labels: Iterable[Hashable]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Integers that are equal where labels are."""
    numbers: dict[Hashable, int] = {}
    queries = [numbers.setdefault(label, len(numbers)) for label in query_labels]
    gallery = [numbers.setdefault(label, len(numbers)) for label in gallery_labels]
    return np.array(queries, np.int64), np.array(gallery, np.int64)


def _counts(name: str, values: Sequence[int]) -> tuple[int, ...]:
    listed = isinstance(values, Sequence) or getattr(values, "ndim", None) == 1
    if not listed or isinstance(values, str | bytes):
        raise InputError(f"{name}={values!r} must be a list of whole numbers")
    return tuple(
        int(check_number(f"{name}[{n}]", value, least=1, whole=True))
        for n, value in enumerate(values)
    )
