"""Ordered pairs from easiness scores."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from cppcl.curriculum.pairs import ExplicitPairs
from cppcl.errors import InputError

Scope = Literal["auto", "within_class", "global"]


def pairs_from_scores(
    scores: NDArray[Any],
    labels: NDArray[Any] | Sequence[Any],
    *,
    delta: float = 0.5,
    rho: float = 0.3,
    scope: Scope = "auto",
    maximum_pairs: int | None = 100_000,
    seed: int = 0,
) -> ExplicitPairs:
    """Draw pairs (harder, easier) whose scores differ clearly.

    A pair is admissible iff ``score_easier > score_harder + delta * sd``, sd being the standard
    deviation of the scores. The pairs kept are a uniform sample without replacement of all
    admissible ones, which are counted by sorting and never listed: O(n log n) time and O(n)
    memory besides the pairs themselves.

    Parameters
    ----------
    scores : array_like, (n,)
        Easiness of each sample of one modality: higher is easier. NaN marks a sample without a
        score, which takes part in no pair.
    labels : array_like, (n,)
        Class of each sample.
    delta : float
        Least difference, in standard deviations of the scores.
    rho : float
        Share of the admissible pairs to keep, in [0, 1].
    scope : {'auto', 'within_class', 'global'}
        Whether both samples of a pair must have one class. 'auto' is within class, or global
        when every class has a single sample.
    maximum_pairs : int, optional
        Upper bound on the pairs kept, whatever `rho` says; None for none.
    seed : int
        Of the draw.

    Returns
    -------
    ExplicitPairs
        Ordered by class, then by the harder sample's score, then by the easier one's.

    Raises
    ------
    InputError
        For an option out of range, infinite scores, or scores and labels of different length.

    Notes
    -----
    Step "partial curricula" of CPRL: the partial order of the paper, with its unpublished
    threshold in units of the scores' spread.
    """
    values = np.asarray(scores, dtype=np.float64)
    _, classes = np.unique(np.asarray(labels), return_inverse=True)
    _check(values, classes, delta=delta, rho=rho, scope=scope, maximum_pairs=maximum_pairs)
    n = len(values)
    if scope == "global" or (scope == "auto" and n > 0 and np.bincount(classes).max() == 1):
        classes = np.zeros(n, dtype=np.int64)

    scored = np.flatnonzero(~np.isnan(values))
    if scored.size == 0:
        return ExplicitPairs(np.zeros((0, 2), dtype=np.int64), n)
    threshold = delta * float(values[scored].std())
    order = scored[np.lexsort((values[scored], classes[scored]))]
    first_easier, last_easier = _easier_ranges(values[order], classes[order], threshold)
    cumulative = np.cumsum(last_easier - first_easier)

    admissible = int(cumulative[-1])
    kept = round(rho * admissible)
    if maximum_pairs is not None:
        kept = min(kept, maximum_pairs)
    draw = np.random.default_rng(seed).choice(admissible, kept, replace=False, shuffle=False)
    draw.sort()
    harder = np.searchsorted(cumulative, draw, side="right")
    easier = last_easier[harder] - (cumulative[harder] - draw)
    return ExplicitPairs(np.stack([order[harder], order[easier]], axis=1), n)


def _easier_ranges(
    values: NDArray[np.float64], classes: NDArray[np.int64], threshold: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Positions [first, last) of the admissible easier samples of each one, sorted by class."""
    first = np.empty(len(values), dtype=np.int64)
    last = np.empty(len(values), dtype=np.int64)
    edges = np.flatnonzero(np.diff(classes, prepend=-1, append=-1))
    for start, stop in itertools.pairwise(edges):
        members = values[start:stop]
        first[start:stop] = start + np.searchsorted(members, members + threshold, side="right")
        last[start:stop] = stop
    return first, last


def _check(
    values: NDArray[np.float64],
    classes: NDArray[np.int64],
    *,
    delta: float,
    rho: float,
    scope: Scope,
    maximum_pairs: int | None,
) -> None:
    if values.ndim != 1 or classes.shape != values.shape:
        raise InputError(
            f"scores have shape {values.shape}, labels {classes.shape}; both are (n,)"
        )
    if np.isinf(values).any():
        row = int(np.flatnonzero(np.isinf(values))[0])
        raise InputError(f"score of sample {row} is {values[row]}; a missing score is NaN")
    if not (np.isfinite(delta) and delta >= 0):
        raise InputError(f"delta={delta} must be finite and not negative")
    if not 0 <= rho <= 1:
        raise InputError(f"rho={rho} must be a share in [0, 1]")
    if scope not in get_args(Scope):
        raise InputError(f"scope={scope!r} is not one of {get_args(Scope)}")
    if maximum_pairs is not None and maximum_pairs < 0:
        raise InputError(f"maximum_pairs={maximum_pairs} must not be negative")
