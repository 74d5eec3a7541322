"""The graph that ties sketches to images, as a structured operator: nothing here is n x n."""

from __future__ import annotations

import reprlib
from collections.abc import Hashable, Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cppcl.errors import InputError
from cppcl.validation import as_array, check_choice, check_labels

Normalize = Literal["mean_degree", "sym", "none"]
"""How weights are scaled: by their mean degree, symmetrically by both degrees, or not."""

CHUNK = 4096
"""Rows whose products with weights within a modality are held at once."""


class Laplacian:
    """Laplacian of a graph over K sketches and L images.

    The weights between the modalities are kept as a product of two sparse factors,
    ``W = left @ right.T``: indicators of classes, instances or clusters (O(K + L) memory,
    whatever their sizes), or the given affinity and an identity. Weights within a modality are
    sparse matrices of their own. Samples are stacked, sketches first.

    Parameters
    ----------
    left : sparse matrix (K, G)
        Non-negative factor of the sketches.
    right : sparse matrix (L, G)
        Non-negative factor of the images.
    within : pair of sparse matrices (K, K) and (L, L), optional
        Non-negative symmetric weights within either modality, zero on the diagonal; None for a
        modality without any. See `cppcl.learning.affinity.within_weights`.
    normalize : {'mean_degree', 'sym', 'none'}, default 'mean_degree'
        'mean_degree' divides the weights by their mean degree, so that one value of ``beta``
        means the same on every data set; 'sym' gives ``I - D^-1/2 W D^-1/2``; 'none' keeps the
        weights, as in the paper.
    dtype : dtype, default float64
        Type of the weights; apply the operator to arrays of the same type.

    Attributes
    ----------
    n_sketches, n_images : int
        K and L.
    degree : (K + L,) array
        Diagonal of the Laplacian.
    cross_degree, within_degree : (K + L,) arrays
        What weights between and within the modalities contribute to it.
    left, right : sparse arrays (K, G) and (L, G)
        Factors of the weights between the modalities, scaled.
    within_weights : pair of sparse arrays (K, K) and (L, L) or None
        Weights within either modality, scaled.

    Raises
    ------
    InputError
        When no sketch is linked to an image, a weight is negative or not finite, or weights
        within a modality are of another shape, not symmetric, or not zero on the diagonal.
    """

    def __init__(
        self,
        left: Any,
        right: Any,
        *,
        within: tuple[Any, Any] | None = None,
        normalize: Normalize = "mean_degree",
        dtype: DTypeLike = np.float64,
    ) -> None:
        check_choice("normalize", normalize, Normalize)
        dtype = _floating(dtype)
        left, right = _checked(left, "left"), _checked(right, "right")
        if left.shape[1] != right.shape[1]:
            raise InputError(
                f"left has {left.shape[1]} columns and right {right.shape[1]}; give factors of "
                "as many"
            )
        K, L = self.n_sketches, self.n_images = left.shape[0], right.shape[0]
        rows = (slice(0, K), slice(K, K + L))
        inner = [
            None if weights is None else _checked_within(weights, name, n)
            for weights, name, n in zip(_pair(within), ("sketch", "image"), (K, L), strict=True)
        ]
        with np.errstate(over="ignore"):  # told below
            cross = np.concatenate([left @ right.sum(axis=0), right @ left.sum(axis=0)])
        if not cross.any():
            raise InputError(
                "no sketch is linked to any image: sketch_labels and image_labels share no value "
                "(or links, or left @ right.T, is all zero); give labels that occur in both "
                "modalities"
            )
        own = np.zeros_like(cross)
        for of_modality, weights in zip(rows, inner, strict=True):
            own[of_modality] = 0 if weights is None else weights.sum(axis=1)
        degree = cross + own
        # Every weight w_pq becomes before_p w_pq after_q. What exceeds the type is told below: the
        # roots of both degrees scale 'sym', and the mean of extreme ones is infinite.
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            before = after = np.ones_like(degree)
            if normalize == "mean_degree":
                before = before / degree.mean()
            elif normalize == "sym":
                before = after = np.divide(1, np.sqrt(degree), where=degree > 0, out=0 * degree)
            self.degree: NDArray[Any] = (before * degree * after).astype(dtype)
            self.cross_degree: NDArray[Any] = (before * cross * after).astype(dtype)
            self.within_degree: NDArray[Any] = (before * own * after).astype(dtype)
            left.data *= np.repeat(before[:K], np.diff(left.indptr))
            right.data *= np.repeat(after[K:], np.diff(right.indptr))
            for of_modality, weights in zip(rows, inner, strict=True):
                if weights is not None:
                    weights.data *= np.repeat(before[of_modality], np.diff(weights.indptr))
                    weights.data *= after[of_modality][weights.indices]
            self.left, self.right = left.astype(dtype), right.astype(dtype)
        arrays = self.left.data, self.right.data, self.degree
        if not all(np.isfinite(array).all() for array in arrays):
            raise InputError(
                f"links (left @ right.T) of up to {degree.max():.3g} a sample are beyond {dtype} "
                f"with normalize={normalize!r}; divide them by their mean, or use float64 features"
            )
        of_sketches, of_images = (w if w is None else w.astype(dtype) for w in inner)
        self.within_weights: tuple[Any, Any] = of_sketches, of_images
        # The products with transposes need their own row-major copies to be fast.
        self._left_t = self.left.T.tocsr()
        self._right_t = self.right.T.tocsr()

    @classmethod
    def from_labels(
        cls,
        sketch_labels: Sequence[Hashable] | NDArray[Any],
        image_labels: Sequence[Hashable] | NDArray[Any],
        *,
        within: tuple[Any, Any] | None = None,
        normalize: Normalize = "mean_degree",
        dtype: DTypeLike = np.float64,
    ) -> Self:
        """Weight 1 between a sketch and an image of equal label, 0 elsewhere.

        Labels are what groups samples: classes, instances or numbers of clusters.
        """
        from scipy import sparse

        numbers = number_labels(
            check_labels(sketch_labels, None, "sketch_labels"),
            check_labels(image_labels, None, "image_labels"),
        )
        n_classes = 1 + max(
            (int(of_modality.max()) for of_modality in numbers if len(of_modality)), default=0
        )

        def indicator(columns: NDArray[np.int64]) -> Any:
            shape = (len(columns), n_classes)
            entries = (np.ones(len(columns)), (np.arange(len(columns)), columns))
            return sparse.csr_array(entries, shape=shape)

        left, right = map(indicator, numbers)
        return cls(left, right, within=within, normalize=normalize, dtype=dtype)

    @classmethod
    def from_links(
        cls,
        links: Any,
        *,
        within: tuple[Any, Any] | None = None,
        normalize: Normalize = "mean_degree",
        dtype: DTypeLike = np.float64,
    ) -> Self:
        """Weights from a sparse non-negative (K, L) affinity."""
        from scipy import sparse

        links = _checked(links, "links")
        identity = sparse.eye_array(links.shape[1], format="csr")
        return cls(links, identity, within=within, normalize=normalize, dtype=dtype)

    def cross(self, X: NDArray[Any], modality: int) -> NDArray[Any]:
        """Weights between the modalities times the *other* modality's rows.

        Parameters
        ----------
        X : (L,) or (L, N) array for modality 0, (K,) or (K, N) array for modality 1
            Rows of the images, or of the sketches.
        modality : {0, 1}
            Whose rows are returned: 0 the sketches', 1 the images'.

        Returns
        -------
        (K,) or (K, N) array for modality 0, (L,) or (L, N) array for modality 1
        """
        if modality == 0:
            product: NDArray[Any] = self.left @ (self._right_t @ X)
        else:
            product = self.right @ (self._left_t @ X)
        return product

    def within(self, X: NDArray[Any], modality: int) -> NDArray[Any] | None:
        """Weights within a modality times its own rows; None where it has no weights.

        Parameters
        ----------
        X : (K,) or (K, N) array for modality 0, (L,) or (L, N) array for modality 1
            Rows of the modality.
        modality : {0, 1}
            0 for the sketches, 1 for the images.
        """
        weights = self.within_weights[modality]
        return None if weights is None else weights @ X

    def adjacency(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return ``W @ X`` for stacked rows X, (K + L,) or (K + L, N)."""
        of_modalities = X[: self.n_sketches], X[self.n_sketches :]
        products = [self.cross(of_modalities[1 - modality], modality) for modality in (0, 1)]
        for modality, product in enumerate(products):
            inner = self.within(of_modalities[modality], modality)
            if inner is not None:
                product += inner
        return np.concatenate(products)

    def apply(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return ``L @ X`` for stacked rows X, (K + L,) or (K + L, N)."""
        degree = self.degree if X.ndim == 1 else self.degree[:, None]
        product: NDArray[Any] = degree * X - self.adjacency(X)
        return product

    def quadratic_form(self, X: NDArray[Any]) -> float:
        """``Tr(X^T L X)``, half the weighted sum of squared differences of linked rows.

        Sums over samples are taken in float64, and no copy of X is made.
        """
        X = X.reshape(len(X), -1)
        sketches, images = X[: self.n_sketches], X[self.n_sketches :]
        total = _total(self.degree, X, X)
        total -= 2 * _total(1, self._left_t @ sketches, self._right_t @ images)
        for own, weights in zip((sketches, images), self.within_weights, strict=True):
            for first in range(0, 0 if weights is None else len(own), CHUNK):
                rows = slice(first, first + CHUNK)
                total -= _total(1, own[rows], weights[rows] @ own)
        return total

    def correlated_directions(
        self, sketch_features: NDArray[Any], image_features: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Singular vectors of the cross-moment of linked samples, ``F_s^T W F_i``.

        Weights between the modalities are divided by the roots of both samples' sums of them, so
        that every sample counts alike. On whitened features these are the canonical directions
        of (class-wise) canonical correlation analysis.

        Parameters
        ----------
        sketch_features, image_features : (K, m_s) and (L, m_i) arrays
            One sample a row.

        Returns
        -------
        sketch_directions : (r, m_s) array
            Orthonormal rows, strongest first.
        strengths : (r,) array
            Singular values.
        image_directions : (r, m_i) array
            Orthonormal rows.
        """
        K, degree = self.n_sketches, self.cross_degree[:, None]
        balance = np.divide(1, np.sqrt(degree), where=degree > 0, out=np.zeros_like(degree))
        sketches, sketch_factor = np.linalg.qr((self._left_t @ (balance[:K] * sketch_features)).T)
        images, image_factor = np.linalg.qr((self._right_t @ (balance[K:] * image_features)).T)
        U, strengths, V = np.linalg.svd(sketch_factor @ image_factor.T, full_matrices=False)
        strongest = np.abs(U).argmax(axis=0)
        signs = np.where(U[strongest, np.arange(U.shape[1])] < 0, -1, 1).astype(U.dtype)
        return (sketches @ (U * signs)).T, strengths, (V * signs[:, None]) @ images.T

    def n_links(self) -> int:
        """Upper bound of the number of linked (sketch, image) pairs, exact for labels."""
        return int(np.diff(self._left_t.indptr).astype(np.int64) @ np.diff(self._right_t.indptr))

    def cross_weights(self) -> Any:
        """Weights between sketches and images listed as a sparse (K, L) matrix."""
        return (self.left @ self._right_t).tocsr()

    def sample_pairs(
        self, rng: np.random.Generator, n_partners: int = 1
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Draw linked pairs: every linked sample of either modality occurs at least once.

        Parameters
        ----------
        rng : numpy Generator
            Source of the draws.
        n_partners : int, default 1
            Draws for each sample.

        Returns
        -------
        sketches, images : (P,) int64 arrays
            Row numbers within their modality, sorted, without repetition.
        """
        from_sketches = _draw_partners(self.left, self._right_t, rng, n_partners)
        from_images = _draw_partners(self.right, self._left_t, rng, n_partners)
        sketches, images = np.concatenate([from_sketches, from_images[::-1]], axis=1)
        drawn = np.unique(sketches * self.n_images + images)
        return drawn // self.n_images, drawn % self.n_images


def _checked(weights: Any, name: str) -> Any:
    """Return weights as a CSR array, float64, without stored zeros."""
    from scipy import sparse

    given = weights if sparse.issparse(weights) else as_array(weights, name)
    if given.ndim != 2 or given.dtype.kind not in "biuf":
        raise InputError(
            f"{name} must be a matrix of real numbers, got {given.dtype} of shape {given.shape}"
        )
    weights = sparse.csr_array(given, dtype=np.float64, copy=True)
    if not np.isfinite(weights.data).all() or (weights.data < 0).any():
        raise InputError(f"{name} holds a negative or non-finite weight; use weights >= 0")
    weights.sum_duplicates()
    weights.eliminate_zeros()
    return weights


def _checked_within(weights: Any, modality: str, n: int) -> Any:
    name = f"within-{modality} weights"
    if tuple(np.shape(weights)) != (n, n):
        raise InputError(f"{name} have shape {np.shape(weights)}, expected ({n}, {n})")
    weights = _checked(weights, name)
    if weights.diagonal().any():
        raise InputError(f"{name} link a sample to itself; set their diagonal to zero")
    asymmetry = abs(weights - weights.T).max() if weights.nnz else 0.0
    if asymmetry > 1e-6 * weights.data.max(initial=0.0):
        raise InputError(
            f"{name} differ from their transpose by {asymmetry:.3g}; use a symmetric matrix, "
            "such as W.maximum(W.T)"
        )
    return weights


def _pair(within: Any) -> tuple[Any, Any]:
    if within is None:
        return None, None
    if not isinstance(within, tuple | list) or len(within) != 2:
        raise InputError(
            f"within={reprlib.repr(within)} must be two matrices, of the sketches and of the "
            "images; None for a modality without any"
        )
    sketches, images = within
    return sketches, images


def _floating(dtype: Any) -> np.dtype[Any]:
    try:
        known: np.dtype[Any] = np.dtype(dtype)
    except (TypeError, ValueError):
        known = np.dtype(object)
    if known not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise InputError(f"dtype={dtype!r} must be float32 or float64")
    return known


def _total(weights: Any, X: NDArray[Any], Y: NDArray[Any]) -> float:
    """Weighted sum over rows of inner products of two matrices, in float64 over rows."""
    products = np.einsum("pn,pn->p", X, Y)
    return float((weights * products).sum(dtype=np.float64))


def _draw_partners(
    own: Any, other_t: Any, rng: np.random.Generator, n_partners: int
) -> NDArray[np.int64]:
    """For each row of `own`, draw a group with partners and one of those; (2, P) row numbers."""
    shared = np.diff(other_t.indptr)[own.indices] > 0
    kept = np.concatenate([[0], np.cumsum(shared)])[own.indptr]
    groups = own.indices[shared]
    rows = np.repeat(np.flatnonzero(np.diff(kept)), n_partners)
    drawn = groups[rng.integers(kept[rows], kept[rows + 1])]
    partners = other_t.indices[rng.integers(other_t.indptr[drawn], other_t.indptr[drawn + 1])]
    return np.stack([rows, partners.astype(np.int64)])


def number_labels(*modalities: Sequence[Hashable] | NDArray[Any]) -> list[NDArray[np.int64]]:
    """Return labels as numbers in order of first appearance, shared by all modalities.

    Raises
    ------
    InputError
        When a label is None, not hashable, or not equal to itself (NaN).
    """
    number: dict[Hashable, int] = {}
    numbered = []
    for labels in modalities:
        # Plain Python objects, so that numpy's and Python's own compare equal.
        plain = check_labels(labels, None, "labels")
        for label in plain:
            number.setdefault(label, len(number))
        numbered.append(np.array([number[label] for label in plain], dtype=np.int64))
    return numbered


def sorted_labels(*modalities: Sequence[Hashable] | NDArray[Any]) -> list[NDArray[np.int64]]:
    """Return labels as their places among all distinct ones, in ascending order.

    Labels that cannot be sorted, such as numbers beside strings, are numbered by `number_labels`.

    Raises
    ------
    InputError
        As `number_labels`.
    """
    plain = [check_labels(labels, None, "labels") for labels in modalities]
    try:
        distinct: Any = sorted({label for labels in plain for label in labels})
    except TypeError:
        return number_labels(*plain)
    place = {label: number for number, label in enumerate(distinct)}
    return [np.array([place[label] for label in labels], dtype=np.int64) for labels in plain]
