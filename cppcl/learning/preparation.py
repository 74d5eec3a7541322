"""Preparation of one modality's features: centring, unit norm, PCA and whitening."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import InputError, NotFittedError
from cppcl.learning.estimator import Estimator
from cppcl.validation import (
    Auto,
    Floating,
    check_flag,
    check_matrix,
    check_number,
    check_number_or_auto,
)

__all__ = ["Floating", "Preparation", "check_matrix", "principal_axes", "unit_rows"]

LARGEST_POWER = 10
"""Beyond, all but the largest entry of a row vanish."""
CLASS_RIDGE, INSTANCE_RIDGE = 0.03, 0.1
"""Ridge of whitening for labels of classes, and for pairs or where nothing is known."""


def unit_rows(matrix: Floating, scale: Floating | None = None) -> Floating:
    """Divide every row by its Euclidean norm; zero rows stay zero.

    Parameters
    ----------
    matrix : ndarray, (n, m)
        Rows to normalise; not changed.
    scale : ndarray, (n,), optional
        Norms before something was subtracted from the rows. A row that is shorter than rounding
        error at this scale counts as zero, so that noise is not blown up to unit length.
    """
    norms = row_norms(matrix)
    zero = norms == 0
    if scale is not None:
        zero |= norms <= 4 * np.finfo(matrix.dtype).eps * scale
    divisor = np.where(zero, np.inf, norms).astype(matrix.dtype)
    unit: Floating = matrix / divisor[:, None]
    return unit


def row_norms(matrix: Floating) -> Floating:
    """Euclidean norm of every row (n, m), (n,), also where its square overflows or vanishes."""
    with np.errstate(over="ignore"):
        norms: Floating = np.linalg.norm(matrix, axis=1)
    limits = np.finfo(matrix.dtype)
    # Below, the squares of small entries lose digits; above, their sum is infinite.
    lost = ~((norms > np.sqrt(limits.tiny) / limits.eps) & np.isfinite(norms))
    if lost.any():
        rows = matrix[lost]
        largest = np.abs(rows).max(axis=1, keepdims=True, initial=0)
        shares = np.divide(rows, largest, where=largest > 0, out=np.zeros_like(rows))
        with np.errstate(over="ignore"):  # a norm beyond the type is infinite all the same
            norms[lost] = np.linalg.norm(shares, axis=1) * largest[:, 0]
    return norms


def principal_axes(matrix: Floating, *, largest: int | None = None) -> tuple[Floating, Floating]:
    """Eigenvectors and eigenvalues of ``matrix.T @ matrix / n``, largest first.

    Computed in float64 from the Gram matrix of the smaller side, so n or m may be large but not
    both. Axes whose eigenvalue is rounding noise are left out; each axis's entry of largest
    magnitude is positive, which makes signs reproducible.

    Parameters
    ----------
    matrix : ndarray, (n, m)
        Samples, centred by the caller where a covariance is meant.
    largest : int, optional
        Most axes to return.

    Returns
    -------
    axes : ndarray, (m, k), float64
        Orthonormal columns, k <= min(n, m, largest).
    eigenvalues : ndarray, (k,), float64
        Variances along them (divisor n).
    """
    n, m = matrix.shape
    samples = matrix.astype(np.float64, copy=False)
    gram = (samples.T @ samples if m <= n else samples @ samples.T) / n
    values, vectors = np.linalg.eigh(gram)
    values, vectors = values[::-1], vectors[:, ::-1]
    # Single-precision input carries its own rounding, squared in the Gram matrix.
    precision = max(float(np.finfo(matrix.dtype).eps) ** 2, float(np.finfo(np.float64).eps))
    rank = int((values > max(n, m) * precision * max(float(values[0]), 0.0)).sum())
    k = rank if largest is None else min(largest, rank)
    values, vectors = values[:k], vectors[:, :k]
    axes = vectors if m <= n else samples.T @ (vectors / np.sqrt(values * n))
    strongest = np.abs(axes).argmax(axis=0)
    axes = axes * np.where(axes[strongest, np.arange(k)] < 0, -1.0, 1.0)
    return axes, values


@dataclass(kw_only=True, eq=False, repr=False)
class Preparation(Estimator):
    """Unsupervised preparation of the features of one modality.

    In this order: raise entries to a power; subtract the training mean; scale rows to unit norm;
    project on the leading principal axes of the result; divide each axis by the square root of
    its (ridged) eigenvalue; scale rows to unit norm again. The first and the last three happen
    only where asked for.

    Parameters
    ----------
    power : float or 'auto'
        Each entry is replaced by its magnitude to this power, with its sign: 0.5 evens out the
        few large entries of histograms and of rectified network outputs; 1 changes nothing.
        'auto' is 0.5 for training features without negative entries, else 1.
    center : bool
        Subtract the training mean, and take principal axes about the mean of the scaled rows.
        Without it the axes are those of the second moments about zero.
    unit_norm : bool
        Scale rows to unit Euclidean norm, before and after the projection. Rows equal to the
        mean stay zero.
    n_components : int, optional
        Principal axes to keep, at most the rank of the training features (so never more than
        samples or columns); None keeps the columns, or the whole rank when whitening.
    whiten : bool
        Divide each axis by ``sqrt(eigenvalue + ridge * largest eigenvalue)``.
    ridge : float or 'auto'
        Regularises whitening relative to the largest eigenvalue: no direction is amplified more
        than ``ridge ** -0.5`` times the leading one, at any scale or dimension of the features.
        'auto' is 0.1, or what a method settles that knows the labels.

    Notes
    -----
    The power is that of Perronnin, Sanchez, Mensink, "Improving the Fisher kernel for large-scale
    image classification", ECCV 2010.

    Raises
    ------
    InputError
        For an option out of range, features that are not finite, or (when projecting) training
        features without variance.
    """

    version: ClassVar[int] = 1

    center: bool = True
    unit_norm: bool = True
    n_components: int | None = None
    whiten: bool = False
    ridge: float | Auto = 1e-3
    power: float | Auto = 1.0
    _arrays: dict[str, NDArray[Any]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        check_flag("center", self.center)
        check_flag("unit_norm", self.unit_norm)
        if self.n_components is not None:
            hint = ", or None for all"
            check_number("n_components", self.n_components, least=1, whole=True, why=hint)
        check_flag("whiten", self.whiten)
        check_number_or_auto("ridge", self.ridge, least=0)
        check_number_or_auto("power", self.power, above=0, most=LARGEST_POWER)

    @property
    def n_features_(self) -> int:
        """Columns m that `transform` expects."""
        return int(self._fitted("n_features")[0])

    @property
    def power_(self) -> float:
        """Power that entries are raised to."""
        return float(self._fitted("power")[0]) if self.power == "auto" else float(self.power)

    @property
    def projects(self) -> bool:
        """True if features are projected on principal axes, which each modality has of its own."""
        return self.whiten or self.n_components is not None

    @property
    def dimension_(self) -> int:
        """Columns that `transform` returns."""
        projection = self._arrays.get("projection")
        return self.n_features_ if projection is None else int(projection.shape[1])

    def fit(self, features: NDArray[Any], *, name: str = "features") -> Self:
        """Learn mean and axes from training features (n, m); `name` is what errors call them."""
        matrix = check_matrix(features, name)
        self._arrays = arrays = {"n_features": np.array([matrix.shape[1]])}
        if self.power == "auto":
            arrays["power"] = np.array([0.5 if matrix.min() >= 0 else 1.0])
        matrix = self._raised(matrix)
        if self.center:
            arrays["mean"] = matrix.mean(axis=0, dtype=np.float64).astype(matrix.dtype)
        if self.n_components is None and not self.whiten:
            return self
        scaled = self._scale(matrix)
        if self.center:
            arrays["offset"] = scaled.mean(axis=0, dtype=np.float64).astype(matrix.dtype)
            scaled = scaled - arrays["offset"]
        axes, eigenvalues = principal_axes(scaled, largest=self.n_components)
        if eigenvalues.size == 0:
            raise InputError(
                f"{name}: the {len(matrix)} training rows have no variance, so they cannot be "
                "projected; give more samples, or n_components=None and whiten=False"
            )
        if self.whiten:
            ridge = INSTANCE_RIDGE if self.ridge == "auto" else self.ridge
            axes = axes / np.sqrt(eigenvalues + ridge * eigenvalues[0])
        arrays["projection"] = axes.astype(matrix.dtype)
        arrays["eigenvalues"] = eigenvalues.astype(matrix.dtype)
        return self

    def transform(self, features: NDArray[Any], *, name: str = "features") -> Floating:
        """Prepare features (n, m); returns (n, `dimension_`) of the same dtype."""
        matrix = check_matrix(features, name)
        if matrix.shape[1] != self.n_features_:
            raise InputError(
                f"{name} has {matrix.shape[1]} columns, but training had {self.n_features_}"
            )
        matrix = self._raised(matrix)
        scaled = self._scale(matrix)
        if "projection" not in self._arrays:
            return scaled
        if self.center:
            scaled = scaled - self._as(matrix, "offset")
        projected: Floating = scaled @ self._as(matrix, "projection")
        return unit_rows(projected) if self.unit_norm else projected

    def fit_transform(self, features: NDArray[Any], *, name: str = "features") -> Floating:
        """Fit on features (n, m) and return them prepared."""
        return self.fit(features, name=name).transform(features, name=name)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return what `fit` learned, by name."""
        self._fitted("n_features")
        return dict(self._arrays)

    def from_arrays(self, arrays: dict[str, NDArray[Any]]) -> Self:
        """Restore what `to_arrays` returned, on an object with the same options."""
        names = {"n_features", "power", "mean", "offset", "projection", "eigenvalues"}
        self._arrays = {name: np.asarray(arrays[name]) for name in names & arrays.keys()}
        self._fitted("n_features")
        return self

    def _raised(self, matrix: Floating) -> Floating:
        power = self.power_
        if power == 1:
            return matrix
        with np.errstate(over="ignore", under="ignore"):
            raised: Floating = np.copysign(np.abs(matrix) ** matrix.dtype.type(power), matrix)
        if not np.isfinite(raised).all():
            raise InputError(
                f"power={power} takes features of up to {float(np.abs(matrix).max()):.3g} beyond "
                f"{matrix.dtype}; divide the features by their largest entry"
            )
        return raised

    def _scale(self, matrix: Floating) -> Floating:
        if not self.center:
            return unit_rows(matrix) if self.unit_norm else matrix.copy()
        centred: Floating = matrix - self._as(matrix, "mean")
        return unit_rows(centred, row_norms(matrix)) if self.unit_norm else centred

    def _as(self, matrix: Floating, name: str) -> Floating:
        return self._fitted(name).astype(matrix.dtype, copy=False)

    def _fitted(self, name: str) -> NDArray[Any]:
        try:
            return self._arrays[name]
        except KeyError:
            raise NotFittedError("this preparation is not fitted yet; call fit first") from None
