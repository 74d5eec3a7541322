"""The part of a curriculum that concerns some of its samples, over all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.curriculum.base import Curriculum
from cppcl.curriculum.pairs import ExplicitPairs
from cppcl.validation import Floating, check_rows


class Among:
    """A curriculum of some samples as one over n, in which the others are in no pair.

    Parameters
    ----------
    inner : Curriculum
        Over the samples `rows`, in their order.
    rows : (r,) int64 array
        Distinct row numbers.
    n_samples : int
        n.
    """

    def __init__(self, inner: Curriculum, rows: NDArray[np.int64], n_samples: int) -> None:
        self.inner, self.rows, self._n_samples = inner, rows, n_samples

    @property
    def n_samples(self) -> int:
        """Number of samples n."""
        return self._n_samples

    @property
    def n_pairs(self) -> int:
        """Number of hinges."""
        return self.inner.n_pairs

    def value(self, v: Floating) -> float:
        """Sum of hinge violations at pacing variables v (n,)."""
        return self.inner.value(v[self.rows])

    def smoothed_gradient(self, v: Floating, eps: float) -> tuple[float, Floating]:
        """Value and gradient of the smooth form."""
        value, gradient = self.inner.smoothed_gradient(v[self.rows], eps)
        return value, self._spread(gradient)

    def degree(self) -> Floating:
        """Return the number of pairs that each sample takes part in, (n,)."""
        return self._spread(self.inner.degree())

    def curvature(self, eps: float) -> Floating:
        """Diagonal that bounds the Hessian of the smooth form, (n,)."""
        return self._spread(self.inner.curvature(eps))

    def restrict(self, rows: NDArray[np.int64]) -> Curriculum:
        """Keep what concerns the samples `rows` alone, renumbered in their order."""
        position = np.full(self._n_samples, -1, dtype=np.int64)
        position[self.rows] = np.arange(len(self.rows))
        inside = position[check_rows(rows, self._n_samples, "rows")]
        kept = np.flatnonzero(inside >= 0)
        return Among(self.inner.restrict(inside[kept]), kept, len(rows))

    def _spread(self, values: NDArray[Any]) -> Floating:
        spread: Floating = np.zeros(self._n_samples, dtype=values.dtype)
        spread[self.rows] = values
        return spread


def among(curriculum: Curriculum, rows: NDArray[np.int64]) -> Curriculum:
    """What a curriculum says of the samples `rows` to each other, over all of its samples."""
    n = curriculum.n_samples
    if not isinstance(curriculum, ExplicitPairs):
        return Among(curriculum.restrict(rows), rows, n)
    inside = np.zeros(n, dtype=bool)
    inside[rows] = True
    return ExplicitPairs(curriculum.pairs[inside[curriculum.pairs].all(axis=1)], n)
