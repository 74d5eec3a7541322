"""The interface of partial curricula that the pacing step uses."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Curriculum(Protocol):
    """A set of ordered pairs (harder, easier) over the n training samples of one modality.

    The pacing step adds ``mu * value(v)`` to its objective, with
    ``value(v) = sum over pairs of max(0, v[harder] - v[easier])`` (the slack variables of
    the paper's quadratic program, eliminated). One that has an attribute ``pairs``, (P, 2), is
    solved exactly by its pairs; others take part by `smoothed_gradient` and `curvature`.
    """

    @property
    def n_samples(self) -> int:
        """Number of samples n that the pairs refer to."""
        ...

    @property
    def n_pairs(self) -> int:
        """Number of hinges that `value` adds up."""
        ...

    def value(self, v: NDArray[np.floating]) -> float:
        """Sum of hinge violations at pacing variables v (n,)."""
        ...

    def smoothed_gradient(
        self, v: NDArray[np.floating], eps: float
    ) -> tuple[float, NDArray[np.floating]]:
        """Value and gradient of the Huberised hinge: 0 | z^2 / (2 eps) | z - eps / 2."""
        ...

    def degree(self) -> NDArray[np.floating]:
        """Return the number of pairs that each sample takes part in, (n,)."""
        ...

    def curvature(self, eps: float) -> NDArray[np.floating]:
        """Return a diagonal that bounds the Hessian of the Huberised hinge at every v, (n,)."""
        ...

    def restrict(self, rows: NDArray[np.int64]) -> Curriculum:
        """Keep what concerns the samples `rows` alone, renumbered in their order."""
        ...
