"""The pacing step: how much each training sample counts, under graph and curricula."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from cppcl.curriculum.base import Curriculum
from cppcl.errors import InputError
from cppcl.graph import CrossModalLaplacian

Regularizer = Literal["B", "A", "none"]
"""Self-paced regulariser of the paper, or none (every sample counts fully)."""

SMOOTHING = (1e-1, 1e-2, 1e-3)
"""Widths of the Huberised hinge, from coarse to fine."""


class CurriculumTerm(NamedTuple):
    """One modality's curriculum in the pacing step."""

    rows: slice
    """Rows of the modality in the stack."""
    curriculum: Curriculum
    """Its ordered pairs."""
    mu: float
    """Weight of their hinge."""


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
        from scipy import sparse

        self._laplacian, self._codes = laplacian, codes
        norms = np.linalg.norm(codes, axis=1)
        self.diagonal: NDArray[Any] = laplacian.degree * norms * norms
        self._cross: Any = None
        K = laplacian.n_sketches
        if laplacian.n_links() <= codes.size:
            weights = laplacian.cross_weights().tocoo()
            products = np.einsum("pn,pn->p", codes[weights.row], codes[K + weights.col])
            self._cross = sparse.csr_array(
                (weights.data * products, (weights.row, weights.col)), shape=weights.shape
            )
            self._cross_t = self._cross.T.tocsr()
            size = abs(self._cross)
            self._row_sums = np.concatenate([size.sum(axis=1), size.sum(axis=0)])
        else:
            self._row_sums = norms * laplacian.adjacency(norms)

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


def group_sizes(labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """Size of each sample's class over the mean of these sizes, (n,): E of regulariser A."""
    sizes = np.bincount(labels)[labels].astype(np.float64)
    scaled: NDArray[np.float64] = sizes / sizes.mean()
    return scaled


@dataclass(frozen=True)
class PacingProblem:
    r"""The objective as a function of the pacing variables alone.

    ``sum_p l_p v_p^2 + beta v^T M v + R(v) + sum_modality mu sum_(i,j) max(0, v_i - v_j)`` with
    ``R_B = gamma sum (v^2 / 2 - v)`` and ``R_A = -gamma sum v_p / E_p``, both decreasing on
    [0, 1]. (The paper prints regulariser B with the opposite sign, which selects no sample at
    any gamma.)

    Parameters
    ----------
    losses : (n,) array
        Loss of each sample, with its L1 term where that is weighted by ``v^2``.
    regularizer : {'B', 'A', 'none'}
        Which R; 'none' fixes v at 1.
    gamma : float
        Age of the learner: how readily samples are selected.
    group_scale : (n,) array or None
        E of regulariser A; ones where None.
    coupling : GraphCoupling or None
        The graph; None leaves it out.
    beta : float
        Weight of the graph.
    curricula : sequence of CurriculumTerm
        Ordered pairs of either modality.
    """

    losses: NDArray[Any]
    regularizer: Regularizer
    gamma: float
    group_scale: NDArray[Any] | None = None
    coupling: GraphCoupling | None = None
    beta: float = 0.0
    curricula: Sequence[CurriculumTerm] = ()

    def __post_init__(self) -> None:
        if self.regularizer not in get_args(Regularizer):
            raise InputError(
                f"regularizer={self.regularizer!r} is not one of {get_args(Regularizer)}"
            )
        if self.regularizer != "none" and not self.gamma > 0:
            raise InputError(
                f"gamma={self.gamma} selects nothing; use gamma > 0, or regularizer='none' to "
                "count every sample fully"
            )

    @property
    def _coupled(self) -> GraphCoupling | None:
        return self.coupling if self.beta else None

    def quadratic(self) -> NDArray[Any]:
        """Diagonal a of the separable part ``sum a v^2 - b v``, (n,)."""
        shift = self.gamma / 2 if self.regularizer == "B" else 0.0
        a: NDArray[Any] = self.losses + shift
        return a

    def linear(self) -> NDArray[Any]:
        """Coefficients b of the separable part ``sum a v^2 - b v``, (n,)."""
        if self.regularizer == "none":
            return np.zeros_like(self.losses)
        b = np.full_like(self.losses, self.gamma)
        if self.regularizer == "A" and self.group_scale is not None:
            b /= self.group_scale
        return b

    def value(self, v: NDArray[Any]) -> float:
        """Exact objective at v (n,)."""
        total = float((self.quadratic() * v - self.linear()) @ v)
        if self._coupled is not None:
            total += self.beta * float(v @ self._coupled.apply(v))
        return total + sum(
            mu * curriculum.value(v[rows]) for rows, curriculum, mu in self.curricula
        )

    def smoothed_gradient(self, v: NDArray[Any], eps: float) -> NDArray[Any]:
        """Gradient with the hinge Huberised over a width ``eps``, (n,)."""
        gradient: NDArray[Any] = 2 * self.quadratic() * v - self.linear()
        if self._coupled is not None:
            gradient += 2 * self.beta * self._coupled.apply(v)
        for rows, curriculum, mu in self.curricula:
            gradient[rows] += mu * curriculum.smoothed_gradient(v[rows], eps)[1]
        return gradient

    def curvature(self, eps: float) -> NDArray[Any]:
        """Diagonal majoriser of the Hessian of the smoothed objective, (n,)."""
        curvature = 2 * self.quadratic()
        if self._coupled is not None:
            curvature = curvature + 2 * self.beta * self._coupled.absolute_row_sums()
        for rows, curriculum, mu in self.curricula:
            curvature[rows] += 2 * mu / eps * curriculum.degree().astype(curvature.dtype)
        bounded: NDArray[Any] = np.maximum(curvature, np.finfo(curvature.dtype).tiny ** 0.5)
        return bounded

    def separable_solution(self) -> NDArray[Any]:
        """Minimiser without graph and curricula: ``min(1, b / 2a)``, (n,)."""
        a, b = self.quadratic(), self.linear()
        at_most_one = 2 * a <= b
        solution: NDArray[Any] = np.where(at_most_one, 1, b / np.where(at_most_one, 1, 2 * a))
        return solution.astype(self.losses.dtype, copy=False)


@dataclass(frozen=True)
class PacingResult:
    """Outcome of a pacing step.

    Attributes
    ----------
    v : (n,) array
        Pacing variables in [0, 1].
    objective : float
        Exact objective at v.
    n_iter : int
        Iterations taken; 0 for a closed form.
    converged : bool
        Whether the last smoothing level met the tolerance.
    """

    v: NDArray[Any]
    objective: float
    n_iter: int
    converged: bool


def update_pacing(
    problem: PacingProblem,
    *,
    start: NDArray[Any],
    smoothing: Sequence[float] = SMOOTHING,
    max_iter: int = 1000,
    tol: float = 1e-6,
) -> PacingResult:
    """Lower the objective over the pacing variables, warm-started.

    Closed form where samples are independent; else FISTA in a diagonal metric with box
    projection and gradient restart on a Huberised hinge of decreasing width. Matrix-free. The
    better of start and result on the exact objective is returned.

    Parameters
    ----------
    problem : PacingProblem
        What to minimise.
    start : (n,) array
        Pacing variables to start from, in [0, 1].
    smoothing : sequence of float
        Widths of the Huberised hinge, decreasing.
    max_iter : int, default 1000
        Iterations at each width.
    tol : float, default 1e-6
        Largest change of a pacing variable that ends a width.
    """
    if problem.regularizer == "none":
        v = np.ones_like(start)
        return PacingResult(v, problem.value(v), 0, True)
    if problem._coupled is None and not problem.curricula:
        v = problem.separable_solution()
        return PacingResult(v, problem.value(v), 0, True)
    v, n_iter, converged = start, 0, False
    for eps in smoothing if problem.curricula else smoothing[-1:]:
        curvature = problem.curvature(eps)
        Y, t, converged = v, 1.0, False
        for _ in range(max_iter):
            n_iter += 1
            v_new = np.clip(Y - problem.smoothed_gradient(Y, eps) / curvature, 0, 1)
            change = v_new - v
            if float(np.vdot((Y - v_new) * curvature, change)) > 0:
                t = 1.0
            t_new = (1 + (1 + 4 * t * t) ** 0.5) / 2
            Y = v_new + ((t - 1) / t_new) * change
            v, t = v_new, t_new
            if np.abs(change).max() < tol:
                converged = True
                break
    objective, at_start = problem.value(v), problem.value(start)
    if objective > at_start:
        return PacingResult(start, at_start, n_iter, converged)
    return PacingResult(v, objective, n_iter, converged)
