"""The graph term of the pacing step."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cppcl.learning.graph import Laplacian
from cppcl.optim.pacing.links import Affinity, ListedLinks, cross_links


class GraphCoupling:
    """The graph term as a quadratic form of the pacing variables.

    ``Tr((VC)^T L (VC)) = v^T M v`` with ``M = L o (C C^T)`` (rows of C are samples): positive
    semidefinite by the Schur product theorem, unlike the form printed in the paper. M is listed
    where the linked pairs are fewer than the entries of C, and applied through the codes where
    they are not; memory stays O(nN) either way, beyond what the weights within modalities take.

    Parameters
    ----------
    laplacian : Laplacian
        The graph.
    codes : (n, N) array
        Stacked codes, float32 or float64.

    Attributes
    ----------
    diagonal : (n,) array
        Diagonal of M.
    """

    convex: ClassVar[bool] = True
    affinity: ClassVar[Affinity] = Affinity(product=1.0, squares=0.0)

    def __init__(self, laplacian: Laplacian, codes: NDArray[Any]) -> None:
        self._laplacian, self._codes = laplacian, codes
        self.diagonal: NDArray[Any] = self._diagonal()
        # Affinities are -M off its diagonal.
        self._cross = cross_links(laplacian, codes, self.affinity)
        self._within: ListedLinks | None = None
        if any(weights is not None for weights in laplacian.within_weights):
            self._within = self._listed(None)

    def apply(self, v: NDArray[Any]) -> NDArray[Any]:
        """Return ``M @ v``, (n,), of the dtype of v."""
        x, K = v.astype(np.float64, copy=False), self._laplacian.n_sketches
        product = self.diagonal * x
        product -= np.concatenate(self._cross.apply(x[:K], x[K:]))
        if self._within is not None:
            product -= np.add(*self._within.apply(x, x))
        return product.astype(v.dtype, copy=False)

    def absolute_row_sums(self) -> NDArray[Any]:
        """Upper bound of ``sum_q |M_pq|``, (n,)."""
        bound = self.diagonal + np.concatenate(self._cross.row_sums())
        if self._within is not None:
            bound += np.add(*self._within.row_sums())
        return bound.astype(self._codes.dtype, copy=False)

    def matrix(self) -> Any:
        """List M as a sparse (n, n) matrix, float64; as many entries as there are links."""
        from scipy import sparse

        above = self._listed(self._laplacian.cross_weights()).matrix
        listed = sparse.diags_array(self.diagonal) - above - above.T
        return sparse.csr_array(listed, dtype=np.float64)

    def _listed(self, cross: Any) -> ListedLinks:
        """Affinities of weights within the modalities, and of `cross` ones, above the diagonal."""
        from scipy import sparse

        K, L = self._laplacian.n_sketches, self._laplacian.n_images
        of_sketches, of_images = (
            sparse.csr_array((n, n)) if weights is None else sparse.triu(weights, 1)
            for n, weights in zip((K, L), self._laplacian.within_weights, strict=True)
        )
        weights = sparse.block_array([[of_sketches, cross], [None, of_images]], format="csr")
        return ListedLinks(weights, self._codes, self._codes, self.affinity)

    def _diagonal(self) -> NDArray[Any]:
        squares = np.einsum("pn,pn->p", self._codes, self._codes)
        diagonal: NDArray[Any] = self._laplacian.degree * squares
        return diagonal


class PrintedCoupling(GraphCoupling):
    """The graph term of the pacing step as the paper prints it, for ablation only.

    An erratum: ``M_pq = w_pq |c_p - c_q|^2`` off a zero diagonal comes from the sum over ordered
    pairs ``w_pq v_p v_q |c_p - c_q|^2``, which is not the term that the code step minimises
    (at ``v = 1`` it is twice that) and is indefinite: no convex quadratic program, contrary to
    the paper. It charges for selecting both of two linked samples, and nothing for selecting one.
    With it the alternation need not lower one common objective.
    """

    convex = False
    affinity = Affinity(product=2.0, squares=-1.0)

    def _diagonal(self) -> NDArray[Any]:
        return np.zeros(len(self._codes), dtype=self._codes.dtype)
