"""The partial order of samples whose scores differ clearly."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import InputError
from cppcl.learning.graph import sorted_labels
from cppcl.validation import as_array, check_choice, check_number, check_rows

Scope = Literal["auto", "within_class", "global"]
"""Whether both samples of a pair must have one class."""

DeltaUnit = Literal["deviation", "absolute"]
"""Unit of a threshold: standard deviations of the scores, or the unit of the scores."""


@dataclass(frozen=True)
class Semiorder:
    """Admissible pairs (harder, easier) as ranges of positions; O(n) memory for O(n^2) pairs.

    Samples that have a score are sorted by class and score. The easier samples of the one at
    position k are those at positions ``first[k] .. last[k] - 1``.

    Attributes
    ----------
    order : (m,) int64 array
        Sample at every position.
    first, last : (m,) int64 array
        Range of easier samples; ``first`` does not decrease within a class.
    n_samples : int
        Samples n, of which m have a score.
    """

    order: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    n_samples: int

    @property
    def n_pairs(self) -> int:
        """Number of admissible pairs."""
        return int((self.last - self.first).sum())

    def pairs(self) -> NDArray[np.int64]:
        """List all admissible pairs, (P, 2): for few samples."""
        counts = self.last - self.first
        harder = np.repeat(np.arange(len(self.order)), counts)
        before = np.cumsum(counts) - counts
        easier = np.arange(len(harder)) - before[harder] + self.first[harder]
        return np.stack([self.order[harder], self.order[easier]], axis=1)

    def degree(self) -> NDArray[np.float64]:
        """Return the number of admissible pairs that each sample takes part in, (n,)."""
        degree = np.zeros(self.n_samples)
        degree[self.order] = (self.last - self.first) + self.n_harder()
        return degree

    def n_harder(self) -> NDArray[np.int64]:
        """Return the number of admissible harder samples of the one at each position, (m,)."""
        change = np.zeros(len(self.order) + 1, dtype=np.int64)
        np.add.at(change, self.first, 1)
        np.add.at(change, self.last, -1)
        return np.cumsum(change)[:-1]

    def restrict(self, rows: NDArray[np.int64]) -> Semiorder:
        """Keep what concerns the samples `rows` alone, renumbered in their order."""
        rows = check_rows(rows, self.n_samples, "rows")
        renumbered = np.full(self.n_samples, -1, dtype=np.int64)
        renumbered[rows] = np.arange(len(rows))
        order = renumbered[self.order]
        kept = order >= 0
        before = np.concatenate([[0], np.cumsum(kept)])
        return Semiorder(order[kept], before[self.first[kept]], before[self.last[kept]], len(rows))

    def to_array(self) -> NDArray[np.int64]:
        """Return order, first and last as columns, (m, 3)."""
        return np.stack([self.order, self.first, self.last], axis=1)

    @classmethod
    def from_array(cls, columns: NDArray[np.int64], n_samples: int) -> Semiorder:
        """Restore what `to_array` returned."""
        order, first, last = np.ascontiguousarray(columns.T)
        return cls(order, first, last, n_samples)


def order_by_scores(
    scores: NDArray[Any],
    labels: NDArray[Any] | Sequence[Any],
    *,
    delta: float = 0.5,
    delta_unit: DeltaUnit = "deviation",
    scope: Scope = "auto",
) -> Semiorder:
    """Order samples whose scores differ by more than a threshold.

    A pair is admissible iff ``score_easier > score_harder + threshold``, which makes no cycles.
    O(n log n) time.

    Parameters
    ----------
    scores : array_like, (n,)
        Easiness of each sample of one modality: higher is easier. NaN marks a sample without a
        score, which takes part in no pair.
    labels : array_like, (n,)
        Class of each sample.
    delta : float
        Threshold, not negative.
    delta_unit : {'deviation', 'absolute'}
        Whether `delta` is in standard deviations of the scores, or in their own unit. With
        'absolute' two samples stay ordered whatever samples are added.
    scope : {'auto', 'within_class', 'global'}
        Whether both samples of a pair must have one class. 'auto' is within class, or global
        when every class has a single sample.

    Raises
    ------
    InputError
        For an option out of range, infinite scores, or scores and labels of different length.

    Notes
    -----
    The partial curricula of CPRL, Section 4; the threshold is not published.
    """
    values = _checked_scores(scores)
    (classes,) = sorted_labels(labels)
    if classes.shape != values.shape:
        raise InputError(f"labels are {len(classes)} for {len(values)} scores; give one each")
    check_number("delta", delta, least=0)
    check_choice("delta_unit", delta_unit, DeltaUnit)
    check_choice("scope", scope, Scope)
    n = len(values)
    if scope == "global" or (scope == "auto" and n > 0 and np.bincount(classes).max() == 1):
        classes = np.zeros(n, dtype=np.int64)
    scored = np.flatnonzero(~np.isnan(values))
    if scored.size == 0:
        empty = np.zeros(0, dtype=np.int64)
        return Semiorder(empty, empty, empty, n)
    threshold = delta * (_deviation(values[scored]) if delta_unit == "deviation" else 1.0)
    order = scored[np.lexsort((values[scored], classes[scored]))]
    first, last = _easier_ranges(values[order], classes[order], threshold)
    return Semiorder(order, first, last, n)


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


def _deviation(values: NDArray[np.float64]) -> float:
    """Standard deviation, also where squares overflow or vanish."""
    largest = float(np.abs(values).max())
    if largest == 0 or 1e-100 < largest < 1e100:
        return float(values.std())
    return largest * float((values / largest).std())


def _checked_scores(scores: Any) -> NDArray[np.float64]:
    values = as_array(scores, "scores")
    if values.ndim != 1 or values.dtype.kind not in "biuf":
        raise InputError(
            f"scores must be one number a sample, (n,), got {values.dtype} of shape {values.shape}"
        )
    infinite = np.flatnonzero(np.isinf(values))
    if infinite.size:
        row = int(infinite[0])
        raise InputError(f"scores: that of sample {row} is {values[row]}; a missing score is NaN")
    return values.astype(np.float64)
