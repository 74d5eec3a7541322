"""Affinities between the codes of linked samples: the off-diagonal part of the graph term.

Each class here holds a matrix A of affinities between two sets of samples, and multiplies by A and
by its transpose at once.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from cppcl.learning.graph import Laplacian

Vector = NDArray[np.float64]

CHUNK = 4096
"""Rows of codes that are copied at once."""


class Affinity(NamedTuple):
    """Affinity of two linked samples: ``product (c_p . c_q) + squares (|c_p|^2 + |c_q|^2)``.

    It is multiplied by the weight of the link.
    """

    product: float
    squares: float

    def of(self, products: NDArray[Any], own: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
        """Affinities from inner products of codes and the squared norms of both (broadcast)."""
        affinities: NDArray[Any] = self.product * products
        if self.squares:
            affinities += self.squares * (own + other)
        return affinities

    def norms(self, codes: NDArray[Any]) -> NDArray[Any]:
        """Squared norms of codes where they matter, zeros where not."""
        norms = np.zeros(len(codes), dtype=codes.dtype)
        if self.squares:
            np.einsum("pn,pn->p", codes, codes, out=norms)
        return norms


class AffinityMatrix(Protocol):
    """Affinities A (k, l) between two sets of samples."""

    def apply(self, x: Vector, y: Vector) -> tuple[Vector, Vector]:
        """Return ``A @ y`` (k,) and ``A.T @ x`` (l,)."""
        ...

    def row_sums(self) -> tuple[Vector, Vector]:
        """Upper bounds of the sums of absolute affinities, over rows (k,) and columns (l,)."""
        ...


class ClassBlocks:
    """Affinities within classes, each a dense block: one small matrix product a class.

    Parameters
    ----------
    laplacian : Laplacian
        Its factors have at most one entry a row; see `has_classes`.
    codes : (n, N) array
        Stacked codes.
    affinity : Affinity
        Of two linked samples.
    """

    def __init__(self, laplacian: Laplacian, codes: NDArray[Any], affinity: Affinity) -> None:
        K = laplacian.n_sketches
        squares = affinity.norms(codes)
        left, right = laplacian.left.tocsc(), laplacian.right.tocsc()
        heights, widths = np.diff(left.indptr), np.diff(right.indptr)
        # Samples in the order of their classes, so that a row of a block is a run of columns.
        self._rows, self._columns = left.indices, right.indices
        self._lengths = np.repeat(widths, heights).astype(np.int64)
        self._first = np.repeat(right.indptr[:-1], heights).astype(np.int64)
        self._values = np.empty(int(self._lengths.sum()), dtype=codes.dtype)
        at = 0
        for g in np.flatnonzero((heights > 0) & (widths > 0)):
            own, other = slice(*left.indptr[g : g + 2]), slice(*right.indptr[g : g + 2])
            p, q = self._rows[own], K + self._columns[other]
            block = affinity.of(codes[p] @ codes[q].T, squares[p][:, None], squares[q])
            block *= left.data[own][:, None]
            block *= right.data[other]
            self._values[at : at + block.size] = block.ravel()
            at += block.size
        self._shape = (K, laplacian.n_images)

    def apply(self, x: Vector, y: Vector) -> tuple[Vector, Vector]:
        """Return ``A @ y`` and ``A.T @ x``."""
        return self._multiply(self._values, x, y)

    def row_sums(self) -> tuple[Vector, Vector]:
        """Sums of absolute affinities, over rows and over columns."""
        return self._multiply(np.abs(self._values), *map(np.ones, self._shape))

    def _multiply(self, values: NDArray[Any], x: Vector, y: Vector) -> tuple[Vector, Vector]:
        from cppcl.optim.pacing.kernels import multiply_runs

        Ay, Ax = map(np.zeros, self._shape)
        Ay[self._rows], Ax[self._columns] = multiply_runs(
            values, self._first, self._lengths, x[self._rows], y[self._columns]
        )
        return Ay, Ax


class ListedLinks:
    """Affinities listed as a sparse matrix.

    Parameters
    ----------
    weights : sparse array (k, l)
        Weights between two sets of samples.
    own, other : (k, N) and (l, N) arrays
        Codes of either set.
    affinity : Affinity
        Of two linked samples.

    Attributes
    ----------
    matrix : sparse array (k, l)
        A, in compressed rows.
    """

    def __init__(
        self, weights: Any, own: NDArray[Any], other: NDArray[Any], affinity: Affinity
    ) -> None:
        from scipy import sparse

        from cppcl.optim.pacing.kernels import row_products

        weights = sparse.csr_array(weights)
        rows = np.repeat(np.arange(weights.shape[0]), np.diff(weights.indptr))
        products = row_products(own, other, rows, weights.indices)
        squares = affinity.norms(own)[rows], affinity.norms(other)[weights.indices]
        values = affinity.of(products, *squares)
        self.matrix: Any = sparse.csr_array(
            (values * weights.data, weights.indices, weights.indptr), shape=weights.shape
        )

    def apply(self, x: Vector, y: Vector) -> tuple[Vector, Vector]:
        """Return ``A @ y`` and ``A.T @ x``."""
        from cppcl.optim.pacing.kernels import multiply_listed

        A = self.matrix
        products: tuple[Vector, Vector] = multiply_listed(A.indptr, A.indices, A.data, x, y)
        return products

    def row_sums(self) -> tuple[Vector, Vector]:
        """Sums of absolute affinities, over rows and over columns."""
        size = abs(self.matrix)
        return size.sum(axis=1, dtype=np.float64), size.sum(axis=0, dtype=np.float64)


class UnlistedLinks:
    """Affinities across the modalities, applied through the codes.

    For classes so large that they have more links than the codes have entries.

    Parameters
    ----------
    laplacian : Laplacian
        Its weights between the modalities count.
    codes : (n, N) array
        Stacked codes.
    affinity : Affinity
        Of two linked samples.
    """

    def __init__(self, laplacian: Laplacian, codes: NDArray[Any], affinity: Affinity) -> None:
        self._laplacian, self._affinity = laplacian, affinity
        self._codes = codes[: laplacian.n_sketches], codes[laplacian.n_sketches :]
        self._squares = [np.einsum("pn,pn->p", C, C) for C in self._codes]

    def apply(self, x: Vector, y: Vector) -> tuple[Vector, Vector]:
        """Return ``A @ y`` and ``A.T @ x``."""
        return self._to(0, y), self._to(1, x)

    def row_sums(self) -> tuple[Vector, Vector]:
        """Upper bounds by the inequality of Cauchy and Schwarz."""
        sums = []
        norms = [np.sqrt(squares) for squares in self._squares]
        for modality, own in enumerate(norms):
            total = (
                abs(self._affinity.product)
                * own
                * self._laplacian.cross(norms[1 - modality], modality)
            )
            if self._affinity.squares:
                total += abs(self._affinity.squares) * self._of_squares(modality, np.ones(1))
            sums.append(total.astype(np.float64))
        return sums[0], sums[1]

    def _to(self, modality: int, v: Vector) -> Vector:
        """Affinities of the samples of one modality, times the other's variables."""
        own, other = self._codes[modality], self._codes[1 - modality]
        factors = self._laplacian.left, self._laplacian.right
        scaled = factors[1 - modality].multiply(v.astype(other.dtype)[:, None]).tocsr()
        by_group = scaled.T @ other
        product = np.empty(len(own))
        for first in range(0, len(own), CHUNK):
            rows = slice(first, first + CHUNK)
            product[rows] = np.einsum("pn,pn->p", own[rows], factors[modality][rows] @ by_group)
        product *= self._affinity.product
        if self._affinity.squares:
            product += self._affinity.squares * self._of_squares(modality, v)
        return product

    def _of_squares(self, modality: int, v: Vector) -> NDArray[Any]:
        cross, own, other = (
            self._laplacian.cross,
            self._squares[modality],
            self._squares[1 - modality],
        )
        v = np.broadcast_to(v, other.shape)
        total: NDArray[Any] = own * cross(v, modality) + cross(other * v, modality)
        return total


def has_classes(laplacian: Laplacian) -> bool:
    """True if each sample belongs to at most one group, as with labels."""
    return all(
        np.diff(factor.indptr).max(initial=0) <= 1 for factor in (laplacian.left, laplacian.right)
    )


def cross_links(laplacian: Laplacian, codes: NDArray[Any], affinity: Affinity) -> AffinityMatrix:
    """Affinities between the modalities, in memory linear in the entries of the codes."""
    if laplacian.n_links() > codes.size:
        return UnlistedLinks(laplacian, codes, affinity)
    if has_classes(laplacian):
        return ClassBlocks(laplacian, codes, affinity)
    K = laplacian.n_sketches
    return ListedLinks(laplacian.cross_weights(), codes[:K], codes[K:], affinity)
