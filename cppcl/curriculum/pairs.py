"""A curriculum given as a list of ordered pairs."""

from __future__ import annotations

import reprlib
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import InputError
from cppcl.validation import Floating, as_array, check_number, check_rows

MOST_SAMPLES = 10**9
"""Samples that pairs may refer to."""


class ExplicitPairs:
    """Ordered pairs (harder, easier) over n samples, each with a hinge on its violation.

    Time and memory are linear in the number of pairs. A pair that is listed twice counts twice.

    Parameters
    ----------
    pairs : array_like of int, (P, 2)
        Row numbers (harder, easier) into the training matrix of one modality; P may be 0.
    n_samples : int
        Rows n of that matrix.

    Raises
    ------
    InputError
        For pairs of another shape or type, a row number outside ``0 .. n-1``, or a sample paired
        with itself.
    """

    def __init__(self, pairs: NDArray[Any], n_samples: int) -> None:
        listed = as_array(pairs, "pairs")
        check_number("n_samples", n_samples, least=0, most=MOST_SAMPLES, whole=True)
        if listed.size == 0:
            listed = np.zeros((0, 2), dtype=np.int64)
        if listed.ndim != 2 or listed.shape[1] != 2 or not np.issubdtype(listed.dtype, np.integer):
            raise InputError(
                "pairs must be integers of shape (P, 2), columns (harder, easier); "
                f"got {listed.dtype} of shape {listed.shape}"
            )
        outside = ((listed < 0) | (listed >= n_samples)).any(axis=1)
        if outside.any():
            row = int(np.flatnonzero(outside)[0])
            raise InputError(
                f"pairs: pair {row} is {tuple(listed[row].tolist())}, but there are "
                f"n_samples={n_samples}"
            )
        same = np.flatnonzero(listed[:, 0] == listed[:, 1])
        if same.size:
            raise InputError(
                f"pairs: pair {same[0]} pairs sample {listed[same[0], 0]} with itself"
            )
        self.pairs: NDArray[np.int64] = np.ascontiguousarray(listed, dtype=np.int64)
        self._n_samples = int(n_samples)
        self._degree = np.bincount(self.pairs.ravel(), minlength=n_samples).astype(np.float64)

    def __len__(self) -> int:
        return len(self.pairs)

    @property
    def n_samples(self) -> int:
        """Number of samples n that the pairs refer to."""
        return self._n_samples

    @property
    def n_pairs(self) -> int:
        """Number of pairs P."""
        return len(self.pairs)

    def value(self, v: Floating) -> float:
        """Sum of ``max(0, v[harder] - v[easier])`` at pacing variables v (n,)."""
        from cppcl.optim.pacing.kernels import hinge

        self._check(v)
        return float(hinge(self.pairs, v))

    def smoothed_gradient(self, v: Floating, eps: float) -> tuple[float, Floating]:
        """Value and gradient of the Huberised hinge: 0 | z^2 / (2 eps) | z - eps / 2.

        It lies at most ``eps / 2`` a pair below the hinge, and its gradient is Lipschitz with
        constant ``2 / eps`` times the largest degree.

        Parameters
        ----------
        v : ndarray, (n,)
            Pacing variables.
        eps : float
            Width of the quadratic part, positive.

        Returns
        -------
        value : float
        gradient : ndarray, (n,), dtype of v
        """
        check_number("eps", eps, above=0)
        self._check(v)
        z = v[self.pairs[:, 0]] - v[self.pairs[:, 1]]
        slope = np.clip(z / eps, 0, 1)
        # z^2 / (2 eps) and z - eps / 2 are both slope * (z - eps * slope / 2).
        value = float((slope * (z - (0.5 * eps) * slope)).sum(dtype=np.float64))
        gradient = np.bincount(self.pairs[:, 0], slope, self._n_samples)
        gradient -= np.bincount(self.pairs[:, 1], slope, self._n_samples)
        return value, gradient.astype(v.dtype)

    def degree(self) -> NDArray[np.float64]:
        """Return the number of pairs that each sample takes part in, (n,)."""
        return self._degree.copy()

    def curvature(self, eps: float) -> NDArray[np.float64]:
        """Diagonal that bounds the Hessian of the Huberised hinge, (n,): ``2 / eps`` a pair."""
        return (2 / eps) * self._degree

    def restrict(self, rows: NDArray[np.int64]) -> ExplicitPairs:
        """Keep the pairs whose samples are both among `rows`, renumbered in their order.

        Parameters
        ----------
        rows : ndarray of int, (r,)
            Distinct row numbers, such as the training part of a fold.
        """
        rows = check_rows(rows, self._n_samples, "rows")
        position = np.full(self._n_samples, -1, dtype=np.int64)
        position[rows] = np.arange(len(rows))
        renumbered = position[self.pairs]
        return ExplicitPairs(renumbered[(renumbered >= 0).all(axis=1)], len(rows))

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return ``pairs`` (P, 2) and ``n_samples`` (1,), both int64."""
        return {"pairs": self.pairs, "n_samples": np.array([self._n_samples], dtype=np.int64)}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> Self:
        """Restore what `to_arrays` returned."""
        return cls(arrays["pairs"], int(arrays["n_samples"][0]))

    def _check(self, v: Floating) -> None:
        check_pacing(v, self._n_samples)


def check_pacing(v: Any, n: int) -> None:
    """Refuse what is no array (n,) of floating point."""
    plain = isinstance(v, np.ndarray) and not isinstance(v, np.ma.MaskedArray)
    if not plain or v.shape != (n,) or v.dtype.kind != "f":
        raise InputError(f"v={reprlib.repr(v)} must be an array of floating point of shape ({n},)")
