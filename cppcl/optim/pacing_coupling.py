"""The graph term of the pacing step."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.graph import CrossModalLaplacian


class GraphCoupling:
    """The graph term as a quadratic form of the pacing variables.

    ``Tr((VC)^T L (VC)) = v^T M v`` with ``M = L o (C C^T)`` (rows of C are samples): positive
    semidefinite by the Schur product theorem, unlike the form printed in the paper. M is listed
    where the linked pairs are fewer than the entries of C, and applied through the codes where
    they are not; memory stays O(nN) either way.

    Parameters
    ----------
    laplacian : CrossModalLaplacian
        The graph.
    codes : (n, N) array
        Stacked codes.
    """

    def __init__(self, laplacian: CrossModalLaplacian, codes: NDArray[Any]) -> None:
        self._laplacian, self._codes = laplacian, codes
        norms = np.linalg.norm(codes, axis=1)
        self.diagonal: NDArray[Any] = laplacian.degree * norms * norms
        self._cross: Any = None
        if laplacian.n_links() <= codes.size:
            self._cross = self._listed()
            self._cross_t = self._cross.T.tocsr()
            size = abs(self._cross)
            self._row_sums = np.concatenate([size.sum(axis=1), size.sum(axis=0)])
        else:
            self._row_sums = norms * laplacian.adjacency(norms)

    def _listed(self) -> Any:
        from scipy import sparse

        weights = self._laplacian.cross_weights().tocoo()
        own, other = weights.row, self._laplacian.n_sketches + weights.col
        products = np.einsum("pn,pn->p", self._codes[own], self._codes[other])
        return sparse.csr_array(
            (weights.data * products, (weights.row, weights.col)), shape=weights.shape
        )

    def apply(self, v: NDArray[Any]) -> NDArray[Any]:
        """Return ``M @ v``, (n,)."""
        if self._cross is None:
            through_codes: NDArray[Any] = np.einsum(
                "pn,pn->p", self._codes, self._laplacian.apply(v[:, None] * self._codes)
            )
            return through_codes
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
