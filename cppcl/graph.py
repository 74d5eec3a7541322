"""The graph that ties sketches to images, as a structured operator: nothing here is n x n."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cppcl.errors import InputError

Normalize = Literal["mean_degree", "sym", "none"]
"""How weights are scaled: by their mean degree, symmetrically by both degrees, or not."""


class Laplacian:
    """Laplacian of a bipartite graph between K sketches and L images.

    The weights between the modalities are kept as a product of two sparse factors,
    ``W = left @ right.T``: class indicators for labels (O(K + L) memory, whatever the classes'
    sizes), or the given affinity and an identity. Samples are stacked, sketches first.

    Parameters
    ----------
    left : sparse matrix (K, G)
        Non-negative factor of the sketches.
    right : sparse matrix (L, G)
        Non-negative factor of the images.
    normalize : {'mean_degree', 'sym', 'none'}, default 'mean_degree'
        'mean_degree' divides the weights by their mean degree, so that one value of ``beta``
        means the same on every data set; 'sym' gives ``I - D^-1/2 W D^-1/2``; 'none' keeps the
        weights, as in the paper.
    dtype : dtype, default float64
        Type of the factors; apply the operator to arrays of the same type.

    Attributes
    ----------
    degree : (K + L,) array
        Diagonal of the Laplacian.

    Raises
    ------
    InputError
        When nothing is linked, or a weight is negative or not finite.
    """

    def __init__(
        self,
        left: Any,
        right: Any,
        *,
        normalize: Normalize = "mean_degree",
        dtype: DTypeLike = np.float64,
    ) -> None:
        from scipy import sparse

        if normalize not in get_args(Normalize):
            raise InputError(f"normalize={normalize!r} is not one of {get_args(Normalize)}")
        left, right = sparse.csr_array(left), sparse.csr_array(right)
        for name, factor in (("links", left), ("links", right)):
            if not np.isfinite(factor.data).all() or (factor.data < 0).any():
                raise InputError(f"{name} holds a negative or non-finite weight; use weights >= 0")
        left, right = left.astype(np.float64), right.astype(np.float64)
        left.eliminate_zeros()
        right.eliminate_zeros()
        degree = np.concatenate([left @ right.sum(axis=0), right @ left.sum(axis=0)])
        if not degree.any():
            raise InputError(
                "no sketch is linked to any image: sketch_labels and image_labels share no value "
                "(or links is all zero); give labels that occur in both modalities"
            )
        n_sketches = left.shape[0]
        inverse_root = np.divide(1.0, np.sqrt(degree), where=degree > 0, out=np.zeros_like(degree))
        self._balance: NDArray[Any] = inverse_root.astype(dtype)
        if normalize == "mean_degree":
            left = left / degree.mean()
            self._balance *= self._balance.dtype.type(degree.mean() ** 0.5)
            degree = degree / degree.mean()
        elif normalize == "sym":
            left = sparse.diags_array(inverse_root[:n_sketches]) @ left
            right = sparse.diags_array(inverse_root[n_sketches:]) @ right
            degree = (degree > 0).astype(np.float64)
            self._balance = degree.astype(dtype)
        self.n_sketches: int = left.shape[0]
        self.n_images: int = right.shape[0]
        self.degree: NDArray[Any] = degree.astype(dtype)
        self._left = sparse.csr_array(left.astype(dtype))
        self._right = sparse.csr_array(right.astype(dtype))
        # The products with transposes need their own row-major copies to be fast.
        self._left_t = self._left.T.tocsr()
        self._right_t = self._right.T.tocsr()

    @classmethod
    def from_labels(
        cls,
        sketch_labels: Sequence[Hashable] | NDArray[Any],
        image_labels: Sequence[Hashable] | NDArray[Any],
        *,
        normalize: Normalize = "mean_degree",
        dtype: DTypeLike = np.float64,
    ) -> Self:
        """Weight 1 between a sketch and an image of equal label, 0 elsewhere."""
        from scipy import sparse

        numbers = number_labels(sketch_labels, image_labels)
        n_classes = 1 + max((int(of_side.max()) for of_side in numbers if len(of_side)), default=0)

        def indicator(columns: NDArray[np.int64]) -> Any:
            shape = (len(columns), n_classes)
            entries = (np.ones(len(columns)), (np.arange(len(columns)), columns))
            return sparse.csr_array(entries, shape=shape)

        left, right = map(indicator, numbers)
        return cls(left, right, normalize=normalize, dtype=dtype)

    @classmethod
    def from_links(
        cls, links: Any, *, normalize: Normalize = "mean_degree", dtype: DTypeLike = np.float64
    ) -> Self:
        """Weights from a sparse non-negative (K, L) affinity."""
        from scipy import sparse

        links = sparse.csr_array(links)
        identity = sparse.eye_array(links.shape[1], format="csr")
        return cls(links, identity, normalize=normalize, dtype=dtype)

    def adjacency(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return ``W @ X`` for stacked rows X, (K + L,) or (K + L, N)."""
        K = self.n_sketches
        return np.concatenate(
            [self._left @ (self._right_t @ X[K:]), self._right @ (self._left_t @ X[:K])]
        )

    def apply(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return ``L @ X`` for stacked rows X, (K + L,) or (K + L, N)."""
        degree = self.degree if X.ndim == 1 else self.degree[:, None]
        product: NDArray[Any] = degree * X - self.adjacency(X)
        return product

    def quadratic_form(self, X: NDArray[Any]) -> float:
        """``Tr(X^T L X)``, half the weighted sum of squared differences of linked rows."""
        return float(np.vdot(X, self.apply(X)))

    def correlated_directions(
        self, sketch_features: NDArray[Any], image_features: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Singular vectors of the cross-moment of linked samples, ``F_s^T W F_i``.

        Weights are divided by the roots of both degrees, so that every sample counts alike. On
        whitened features these are the canonical directions of (class-wise) canonical
        correlation analysis.

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
        K, balance = self.n_sketches, self._balance[:, None]
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
        return (self._left @ self._right_t).tocsr()

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
        pairs: set[tuple[int, int]] = set()
        for own, other_t, swap in (
            (self._left, self._right_t, False),
            (self._right, self._left_t, True),
        ):
            for row in range(own.shape[0]):
                groups = own.indices[own.indptr[row] : own.indptr[row + 1]]
                groups = groups[other_t.indptr[groups + 1] > other_t.indptr[groups]]
                for _ in range(n_partners if len(groups) else 0):
                    group = groups[rng.integers(len(groups))]
                    first, last = other_t.indptr[group], other_t.indptr[group + 1]
                    partner = int(other_t.indices[rng.integers(first, last)])
                    pairs.add((partner, row) if swap else (row, partner))
        listed = np.array(sorted(pairs), dtype=np.int64)
        return listed[:, 0], listed[:, 1]


def number_labels(*modalities: Sequence[Hashable] | NDArray[Any]) -> list[NDArray[np.int64]]:
    """Return labels as numbers in order of first appearance, shared by all modalities.

    Raises
    ------
    InputError
        When a label is not hashable, or not equal to itself (NaN).
    """
    number: dict[Hashable, int] = {}
    numbered = []
    for labels in modalities:
        # Plain Python objects, so that numpy's and Python's own compare equal.
        plain = labels.tolist() if isinstance(labels, np.ndarray) else labels
        for label in plain:
            if not isinstance(label, Hashable) or label != label:
                raise InputError(f"label {label!r} cannot be compared; use numbers or strings")
            number.setdefault(label, len(number))
        numbered.append(np.array([number[label] for label in plain], dtype=np.int64))
    return numbered
