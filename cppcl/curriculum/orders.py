"""Curricula that stand for all admissible pairs of a semiorder without listing them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cppcl.curriculum.pairs import check_pacing
from cppcl.curriculum.semiorder import Semiorder
from cppcl.validation import Floating, check_number


@dataclass(frozen=True)
class OrderCurriculum:
    """Base of the curricula over a semiorder.

    Parameters
    ----------
    admissible : Semiorder
        Of the n samples of one modality.
    """

    kind: ClassVar[str]

    admissible: Semiorder

    @property
    def n_samples(self) -> int:
        """Number of samples n."""
        return self.admissible.n_samples

    def restrict(self, rows: NDArray[np.int64]) -> Self:
        """Keep what concerns the samples `rows` alone, renumbered in their order."""
        return type(self)(self.admissible.restrict(rows))

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the semiorder, (m, 3) int64, under the name of the kind."""
        return {self.kind: self.admissible.to_array()}

    def _by_position(self, v: Floating) -> NDArray[np.float64]:
        check_pacing(v, self.n_samples)
        return v[self.admissible.order].astype(np.float64)

    def _by_sample(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        of_samples = np.zeros(self.n_samples)
        of_samples[self.admissible.order] = values
        return of_samples


@dataclass(frozen=True)
class AllPairs(OrderCurriculum):
    """Every admissible pair, each with a hinge on its violation.

    The same as `cppcl.curriculum.ExplicitPairs` of all pairs, in O(n log n) time and O(n) memory
    instead of O(n^2): sums over pairs are sums over ranks of the pacing variables.

    Parameters
    ----------
    admissible : Semiorder
        Of the n samples of one modality.
    """

    kind: ClassVar[str] = "all"

    @property
    def n_pairs(self) -> int:
        """Number of admissible pairs."""
        return self.admissible.n_pairs

    def value(self, v: Floating) -> float:
        """Sum of ``max(0, v[harder] - v[easier])`` at pacing variables v (n,)."""
        return self._hinge(v, 0.0)[0]

    def smoothed_gradient(self, v: Floating, eps: float) -> tuple[float, Floating]:
        """Value and gradient of the Huberised hinge, as of `ExplicitPairs`."""
        check_number("eps", eps, above=0)
        value, gradient = self._hinge(v, eps)
        return value, self._by_sample(gradient).astype(v.dtype)

    def degree(self) -> NDArray[np.float64]:
        """Return the number of pairs that each sample takes part in, (n,)."""
        return self.admissible.degree()

    def curvature(self, eps: float) -> NDArray[np.float64]:
        """Diagonal that bounds the Hessian of the Huberised hinge, (n,): ``2 / eps`` a pair."""
        return (2 / eps) * self.degree()

    def _hinge(self, v: Floating, eps: float) -> tuple[float, NDArray[np.float64]]:
        from cppcl.curriculum.order_kernels import all_pairs_hinge

        order, of_position = self.admissible, self._by_position(v)
        by_value = np.lexsort((of_position, order.last))
        gradient = np.zeros(len(of_position))
        value = all_pairs_hinge(order.first, order.last, of_position, by_value, eps, gradient)
        return float(value), gradient


@dataclass(frozen=True)
class ChainedPairs(OrderCurriculum):
    r"""Every admissible pair, with one hinge for each easier sample: O(n) time and memory.

    ``value(v) = sum over samples j of max(0, max over harder i of v_i - v_j)``: only the worst
    violation of each sample counts, by one slack variable a sample. It is zero where all
    admissible pairs are in order, and there alone. Sorted by score, the largest variable of all
    harder samples is a running maximum, a chain of n auxiliary variables.

    Its smooth form replaces the maximum by a soft one, at most eps above it, so that it lies
    within eps of `value` a sample.

    Parameters
    ----------
    admissible : Semiorder
        Of the n samples of one modality.
    """

    kind: ClassVar[str] = "chain"

    @property
    def n_pairs(self) -> int:
        """Number of samples that have an admissible harder one, each with a hinge."""
        return int((self.admissible.n_harder() > 0).sum())

    def value(self, v: Floating) -> float:
        """Sum of the worst violations at pacing variables v (n,)."""
        from cppcl.curriculum.order_kernels import chain_hinge

        order = self.admissible
        return float(chain_hinge(order.first, order.last, self._by_position(v)))

    def smoothed_gradient(self, v: Floating, eps: float) -> tuple[float, Floating]:
        """Value and gradient of the Huberised hinge of the soft maximum, within eps a sample."""
        from cppcl.curriculum.order_kernels import smooth_chain_hinge

        check_number("eps", eps, above=0)
        order = self.admissible
        gradient = np.zeros(len(order.order))
        value = smooth_chain_hinge(order.first, order.last, self._by_position(v), eps, gradient)
        return float(value), self._by_sample(gradient).astype(v.dtype)

    def degree(self) -> NDArray[np.float64]:
        """Return the number of admissible pairs that each sample takes part in, (n,)."""
        return self.admissible.degree()

    def curvature(self, eps: float) -> NDArray[np.float64]:
        """Diagonal that bounds the Hessian of the smooth form, (n,).

        ``2 / eps`` for the hinge of a sample, and as much with the curvature of the soft maximum
        for each hinge in which it may be the largest of the harder ones.
        """
        order = self.admissible
        n_easier = order.last - order.first
        starts = np.searchsorted(order.last, order.last)  # of each position's class
        of_maximum = (1 + np.log(np.maximum(order.last - starts, 1))) / eps
        of_hinge = 2 / eps
        values = of_hinge * (order.n_harder() > 0) + (of_hinge + of_maximum) * n_easier
        return self._by_sample(values)
