"""Means and paired differences of scores over splits, with intervals over queries.

In repeated random splits the same sketch is a query again and again, and what it is worth to a
method in one split tells what it is worth in the next. So queries are drawn by their identity,
each with every split in which it is a query: a cluster bootstrap. Queries drawn apart in each
split would count one sketch as several, and give intervals that are too short.

An interval over queries tells what other queries of the same kind would give, asked of the same
trained methods; one over splits tells what training on other samples would change.

Sources: C. A. Field, A. H. Welsh: Bootstrapping clustered data, JRSS B 69(3), 2007;
A. C. Cameron, J. B. Gelbach, D. L. Miller: Bootstrap-based improvements for inference with
clustered errors, Review of Economics and Statistics 90(3), 2008. Intervals over queries are
percentile intervals: B. Efron, R. J. Tibshirani: An Introduction to the Bootstrap, 1993, chapter
13; those over splits are Student's.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cppcl.errors import InputError
from cppcl.validation import LARGEST, as_array, check_number

LEVELS = (0.025, 0.975)
"""Quantiles between which an interval lies: 95 %."""

N_DRAWS = 2000
"""Bootstrap samples of an interval."""

MOST_DRAWS = 10**6
"""Bootstrap samples at most."""

_WEIGHTS_AT_ONCE = 2**22
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Interval:
    """A mean over splits, and its 95 % interval, over queries unless said otherwise."""

    mean: float
    low: float
    high: float

    def holds(self, value: float) -> bool:
        """True if a value lies inside."""
        return self.low <= value <= self.high


@dataclass(frozen=True)
class Difference(Interval):
    """How much better a first method is than a second one on the same queries.

    Parameters
    ----------
    mean, low, high : float
        Mean over splits of first minus second, and its 95 % interval.
    ahead, level, behind : int
        Splits in which the mean of the first is higher, equal and lower.
    """

    ahead: int
    level: int
    behind: int

    @property
    def verdict(self) -> Literal["ahead", "level", "behind"]:
        """'level' if the interval holds 0, so that the difference could be chance."""
        if self.holds(0):
            return "level"
        return "ahead" if self.low > 0 else "behind"


def mean_interval(
    values: Sequence[ArrayLike],
    queries: Sequence[ArrayLike],
    *,
    n_draws: int = N_DRAWS,
    seed: int = 0,
) -> Interval:
    """Mean over splits of the mean over each split's queries, with its interval.

    Parameters
    ----------
    values : sequence of array_like, (q_s,)
        Score of every query, one array a split; NaN where a query has no relevant item, which is
        left out.
    queries : sequence of array_like, (q_s,)
        Integers that tell queries apart: the same sketch has the same in every split.
    n_draws : int
        Bootstrap samples.
    seed : int
        Seed of the draws.

    Returns
    -------
    Interval
        In the unit of the values.

    Raises
    ------
    InputError
        If values and queries do not match, or a split has no query with a score.
    """
    _check_draws(n_draws, seed)
    scores, rows = _used(values, queries)
    return _interval(scores, rows, n_draws, seed)


def paired_difference(
    first: Sequence[ArrayLike],
    second: Sequence[ArrayLike],
    queries: Sequence[ArrayLike],
    *,
    n_draws: int = N_DRAWS,
    seed: int = 0,
) -> Difference:
    """Mean over splits of first minus second on the same queries, with its interval.

    Parameters
    ----------
    first, second : sequence of array_like, (q_s,)
        Score of every query by either method, as `mean_interval` takes them. A query is left out
        where either is NaN.
    queries, n_draws, seed
        As `mean_interval`.

    Returns
    -------
    Difference
        In the unit of the scores.

    Raises
    ------
    InputError
        As `mean_interval`, and if the methods have scores of different queries.
    """
    _check_draws(n_draws, seed)
    ours, theirs = _splits("first", first), _splits("second", second)
    if [split.shape for split in ours] != [split.shape for split in theirs]:
        raise InputError(
            f"first has scores of {[split.size for split in ours]} queries a split, second of "
            f"{[split.size for split in theirs]}; give the scores of the same queries"
        )
    differences, rows = _used([a - b for a, b in zip(ours, theirs, strict=True)], queries)
    means = np.array([split.mean() for split in differences])
    ahead, behind = means > _ROUNDING, means < -_ROUNDING
    return Difference(
        **vars(_interval(differences, rows, n_draws, seed)),
        ahead=int(ahead.sum()),
        level=int((~ahead & ~behind).sum()),
        behind=int(behind.sum()),
    )


def interval_over_splits(values: ArrayLike) -> Interval:
    """Mean of a number that was found in each split, with its 95 % interval over splits.

    Random splits of one data set share samples, which Student's interval does not see: it is
    somewhat too short.

    Parameters
    ----------
    values : array_like, (n,)
        The number in each of n splits, at least two.

    Returns
    -------
    Interval
        In the unit of the values.

    Raises
    ------
    InputError
        For fewer than two values, or one that is not finite.
    """
    from scipy import stats

    (found,) = _splits("values", [values])
    if found.size < 2 or not np.isfinite(found).all():
        raise InputError(f"values={reprlib.repr(values)} must be finite, of two splits or more")
    mean = float(found.mean())
    half = float(stats.t.ppf(LEVELS[1], found.size - 1) * stats.sem(found))
    return Interval(mean, mean - half, mean + half)


def _check_draws(n_draws: int, seed: int) -> None:
    check_number("n_draws", n_draws, least=1, most=MOST_DRAWS, whole=True)
    check_number("seed", seed, least=0, whole=True)


def _used(
    values: Sequence[ArrayLike], queries: Sequence[ArrayLike]
) -> tuple[list[NDArray[np.float64]], list[NDArray[np.int64]]]:
    """Scores and queries of each split without those that have no score."""
    scores, rows = _splits("values", values), _splits("queries", queries, whole=True)
    if not scores:
        raise InputError("values hold no split; give the scores of at least one")
    if [split.shape for split in scores] != [split.shape for split in rows]:
        raise InputError(
            f"values have {[split.size for split in scores]} scores a split and queries "
            f"{[split.size for split in rows]} numbers; give one number a score"
        )
    known = [np.isfinite(split) for split in scores]
    for number, split in enumerate(known):
        if not split.any():
            raise InputError(f"values: split {number} has no query with a score; leave it out")
    return (
        [split[used] for split, used in zip(scores, known, strict=True)],
        [split[used] for split, used in zip(rows, known, strict=True)],
    )


def _splits(name: str, given: Any, *, whole: bool = False) -> list[NDArray[Any]]:
    """One vector a split: of numbers, or of integers."""
    listed = isinstance(given, Sequence) or getattr(given, "ndim", 0) > 0
    if not listed or isinstance(given, str | bytes | np.ma.MaskedArray):
        raise InputError(f"{name}={reprlib.repr(given)} must be a list, one array a split")
    kinds = "iu" if whole else "biuf"
    splits = [as_array(split, name) for split in given]
    for number, split in enumerate(splits):
        if split.ndim != 1 or split.dtype.kind not in (kinds if split.size else "biuf"):
            raise InputError(
                f"{name}: split {number} must be one {'integer' if whole else 'number'} a query, "
                f"got {split.dtype} of shape {split.shape}"
            )
        if (
            not whole
            and np.abs(split, where=np.isfinite(split), out=np.zeros(split.shape)).max(initial=0)
            > LARGEST
        ):
            raise InputError(f"{name}: split {number} holds scores above {LARGEST:g} in size")
    return [split.astype(np.int64 if whole else np.float64) for split in splits]


def _interval(
    scores: list[NDArray[np.float64]], rows: list[NDArray[np.int64]], n_draws: int, seed: int
) -> Interval:
    low, high = np.quantile(_drawn_means(scores, rows, n_draws, seed), LEVELS)
    return Interval(float(np.mean([split.mean() for split in scores])), float(low), float(high))


def _drawn_means(
    scores: list[NDArray[np.float64]], rows: list[NDArray[np.int64]], n_draws: int, seed: int
) -> NDArray[np.float64]:
    """The mean over splits in each bootstrap sample, (n_draws,).

    A split none of whose queries is drawn has no mean and is left out of that sample; some split
    always has one, since every query is in some split.
    """
    identities, members = np.unique(np.concatenate(rows), return_inverse=True)
    n, n_splits = len(identities), len(rows)
    splits = np.repeat(np.arange(n_splits), [len(split) for split in rows])
    totals, counts = np.zeros((2, n, n_splits))
    np.add.at(totals, (members, splits), np.concatenate(scores))
    np.add.at(counts, (members, splits), 1.0)
    means = []
    for weights in _weights(n, n_draws, seed):
        drawn, sums = weights @ counts, weights @ totals
        share = np.divide(sums, drawn, out=np.zeros_like(sums), where=drawn > 0)
        means.append(share.sum(axis=1) / (drawn > 0).sum(axis=1))
    return np.concatenate(means)


def _weights(n: int, n_draws: int, seed: int) -> Iterator[NDArray[np.float64]]:
    """How often each of n identities is drawn, n draws with replacement: blocks of rows (b, n)."""
    generator = np.random.default_rng(seed)
    block = max(1, _WEIGHTS_AT_ONCE // n)
    for start in range(0, n_draws, block):
        size = min(block, n_draws - start)
        drawn = generator.integers(n, size=(size, n)) + n * np.arange(size)[:, None]
        times = np.bincount(drawn.ravel(), minlength=size * n)
        yield times.reshape(size, n).astype(np.float64)
