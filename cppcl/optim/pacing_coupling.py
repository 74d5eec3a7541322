"""The graph term of the pacing step."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from cppcl.graph import Laplacian

Coupling = Literal["trace", "none", "printed"]
"""Form of the graph term in the pacing step."""


class GraphCoupling:
    """The graph term as a quadratic form of the pacing variables.

    ``Tr((VC)^T L (VC)) = v^T M v`` with ``M = L o (C C^T)`` (rows of C are samples): positive
    semidefinite by the Schur product theorem, unlike the form printed in the paper. M is listed
    where the linked pairs are fewer than the entries of C, and applied through the codes where
    they are not; memory stays O(nN) either way.

    Parameters
    ----------
    laplacian : Laplacian
        The graph.
    codes : (n, N) array
        Stacked codes.
    """

    convex: ClassVar[bool] = True

    def __init__(self, laplacian: Laplacian, codes: NDArray[Any]) -> None:
        self._laplacian, self._codes = laplacian, codes
        self._norms = np.linalg.norm(codes, axis=1)
        self.diagonal: NDArray[Any] = self._diagonal()
        self._cross: Any = None
        if laplacian.n_links() <= codes.size:
            self._cross = self._listed()
            self._cross_t = self._cross.T.tocsr()
            size = abs(self._cross)
            self._row_sums = np.concatenate([size.sum(axis=1), size.sum(axis=0)])
        else:
            self._row_sums = self._bound_row_sums()

    def apply(self, v: NDArray[Any]) -> NDArray[Any]:
        """Return ``M @ v``, (n,)."""
        if self._cross is None:
            return self._apply_through_codes(v)
        K = self._laplacian.n_sketches
        cross = np.concatenate([self._cross @ v[K:], self._cross_t @ v[:K]])
        product: NDArray[Any] = self.diagonal * v - cross
        return product

    def absolute_row_sums(self) -> NDArray[Any]:
        """Upper bound of ``sum_q |M_pq|``, (n,)."""
        bound: NDArray[Any] = self.diagonal + self._row_sums
        return bound

    def matrix(self) -> Any:
        """List M as a sparse (n, n) matrix, float64; as many entries as there are links."""
        from scipy import sparse

        cross = self._listed() if self._cross is None else self._cross
        off_diagonal = sparse.block_array([[None, cross], [cross.T, None]])
        return sparse.csr_array(sparse.diags_array(self.diagonal) - off_diagonal, dtype=np.float64)

    def _listed(self) -> Any:
        """Entries of ``-M`` between sketches and images, as a sparse matrix."""
        from scipy import sparse

        weights = self._laplacian.cross_weights().tocoo()
        own, other = weights.row, self._laplacian.n_sketches + weights.col
        return sparse.csr_array(
            (weights.data * self._affinities(own, other), (weights.row, weights.col)),
            shape=weights.shape,
        )

    def _diagonal(self) -> NDArray[Any]:
        diagonal: NDArray[Any] = self._laplacian.degree * self._norms * self._norms
        return diagonal

    def _affinities(self, own: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
        products: NDArray[Any] = np.einsum("pn,pn->p", self._codes[own], self._codes[other])
        return products

    def _apply_through_codes(self, v: NDArray[Any]) -> NDArray[Any]:
        product: NDArray[Any] = np.einsum(
            "pn,pn->p", self._codes, self._laplacian.apply(v[:, None] * self._codes)
        )
        return product

    def _bound_row_sums(self) -> NDArray[Any]:
        bound: NDArray[Any] = self._norms * self._laplacian.adjacency(self._norms)
        return bound


class PrintedCoupling(GraphCoupling):
    """The graph term of the pacing step as the paper prints it, for ablation only.

    An erratum: ``M_pq = w_pq |c_p - c_q|^2`` off a zero diagonal comes from the sum over ordered
    pairs ``w_pq v_p v_q |c_p - c_q|^2``, which is not the term that the code step minimises
    (at ``v = 1`` it is twice that) and is indefinite: no convex quadratic program, contrary to
    the paper. It charges for selecting both of two linked samples, and nothing for selecting one.
    With it the alternation need not lower one common objective.
    """

    convex = False

    def _diagonal(self) -> NDArray[Any]:
        return np.zeros_like(self._norms)

    def _affinities(self, own: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
        difference = self._codes[own] - self._codes[other]
        distances: NDArray[Any] = np.einsum("pn,pn->p", difference, difference)
        return -distances

    def _apply_through_codes(self, v: NDArray[Any]) -> NDArray[Any]:
        squared, adjacency = self._norms * self._norms, self._laplacian.adjacency
        products = np.einsum("pn,pn->p", self._codes, adjacency(v[:, None] * self._codes))
        product: NDArray[Any] = squared * adjacency(v) + adjacency(squared * v) - 2 * products
        return product

    def _bound_row_sums(self) -> NDArray[Any]:
        return self._apply_through_codes(np.ones_like(self._norms))
