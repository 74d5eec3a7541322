"""What the pacing step minimises."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cppcl.curriculum.base import Curriculum
from cppcl.errors import InputError
from cppcl.optim.pacing.coupling import GraphCoupling
from cppcl.optim.pacing.options import Regularizer
from cppcl.validation import check_choice

GroupScale = Literal["relative", "size"]
"""Sizes of groups in regulariser A: over their mean, or as printed in the paper."""


class CurriculumTerm(NamedTuple):
    """One modality's curriculum in the pacing step."""

    rows: slice
    """Rows of the modality in the stack."""
    curriculum: Curriculum
    """Its ordered pairs."""
    mu: float
    """Weight of their hinge."""


def group_sizes(labels: NDArray[np.int64], scale: GroupScale = "relative") -> NDArray[np.float64]:
    """E of regulariser A for the samples of one modality, (n,).

    Parameters
    ----------
    labels : (n,) int array
        Number of each sample's group.
    scale : {'relative', 'size'}, default 'relative'
        'relative' divides the size of each sample's group by the mean of these sizes, so that
        both modalities are paced alike and gamma means the same as in regulariser B. 'size', as
        printed in the paper, paces the modality of larger groups more slowly.
    """
    check_choice("group_scale", scale, GroupScale)
    sizes = np.bincount(labels)[labels].astype(np.float64)
    return sizes / sizes.mean() if scale == "relative" else sizes


@dataclass(frozen=True)
class PacingProblem:
    r"""The objective as a function of the pacing variables alone.

    ``sum_p l_p v_p^2 + beta v^T M v + R(v) + sum_modality mu sum_(i,j) max(0, v_i - v_j)`` with
    ``R_B = gamma sum (v^2 / 2 - v)`` and ``R_A = -gamma sum v_p / E_p``, both decreasing on
    [0, 1].

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
        The graph, possibly as the paper prints it (`PrintedCoupling`); None leaves it out.
    beta : float
        Weight of the graph.
    curricula : sequence of CurriculumTerm
        Ordered pairs of either modality.
    printed_sign : bool, default False
        Take -R_B, as the paper prints it: an erratum, under which no sample is selected at any
        gamma, since every term is least at ``v = 0``.
    """

    losses: NDArray[Any]
    regularizer: Regularizer
    gamma: float
    group_scale: NDArray[Any] | None = None
    coupling: GraphCoupling | None = None
    beta: float = 0.0
    curricula: Sequence[CurriculumTerm] = ()
    printed_sign: bool = False

    def __post_init__(self) -> None:
        check_choice("regularizer", self.regularizer, Regularizer)
        if self.printed_sign and self.regularizer != "B":
            raise InputError(f"printed_sign is of regulariser B, not of {self.regularizer!r}")
        if self.regularizer != "none" and not self.gamma > 0:
            raise InputError(
                f"gamma={self.gamma} selects nothing; use gamma > 0, or regularizer='none' to "
                "count every sample fully"
            )

    @property
    def separable(self) -> bool:
        """True if the minimiser has a closed form, sample by sample."""
        return (
            self.regularizer == "none"
            or self.printed_sign
            or (self._coupled is None and not self.curricula)
        )

    @property
    def convex(self) -> bool:
        """True if the objective is convex; some forms that the paper prints are not."""
        return not self.printed_sign and (self._coupled is None or self._coupled.convex)

    @property
    def _sign(self) -> int:
        return -1 if self.printed_sign else 1

    @property
    def _coupled(self) -> GraphCoupling | None:
        return self.coupling if self.beta else None

    @cached_property
    def quadratic(self) -> NDArray[Any]:
        """Diagonal a of the separable part ``sum a v^2 - b v``, (n,)."""
        shift = self._sign * self.gamma / 2 if self.regularizer == "B" else 0.0
        a: NDArray[Any] = self.losses + shift
        return a

    @cached_property
    def linear(self) -> NDArray[Any]:
        """Coefficients b of the separable part ``sum a v^2 - b v``, (n,)."""
        if self.regularizer == "none":
            return np.zeros_like(self.losses)
        b = np.full_like(self.losses, self._sign * self.gamma)
        if self.regularizer == "A" and self.group_scale is not None:
            b /= self.group_scale
        return b

    def value(self, v: NDArray[Any]) -> float:
        """Exact objective at v (n,), summed in float64."""
        v = v.astype(np.float64, copy=False)
        total = float((self.quadratic * v - self.linear) @ v)
        if self._coupled is not None:
            total += self.beta * float(v @ self._coupled.apply(v))
        return total + sum(
            mu * curriculum.value(v[rows]) for rows, curriculum, mu in self.curricula
        )

    def smoothed_gradient(self, v: NDArray[Any], eps: float) -> NDArray[Any]:
        """Gradient of all but the listed pairs at v, (n,).

        The hinge of curricula that do not list their pairs is Huberised over a width ``eps``.
        """
        gradient: NDArray[Any] = 2 * self.quadratic * v - self.linear
        if self._coupled is not None:
            gradient += 2 * self.beta * self._coupled.apply(v)
        for rows, curriculum, mu in self.unlisted:
            gradient[rows] += mu * curriculum.smoothed_gradient(v[rows], eps)[1]
        return gradient

    def curvature(self, eps: float) -> NDArray[Any]:
        """Diagonal majoriser of the Hessian that belongs to `smoothed_gradient`, (n,)."""
        curvature = 2 * self.quadratic
        if self._coupled is not None:
            curvature = curvature + 2 * self.beta * self._coupled.absolute_row_sums()
        for rows, curriculum, mu in self.unlisted:
            curvature[rows] += mu * curriculum.curvature(eps).astype(curvature.dtype)
        return curvature

    def gradient_scale(self, v: NDArray[Any]) -> float:
        """Largest entry of any one term of the smooth gradient at v (n,), never zero."""
        terms = [2 * self.quadratic * v, self.linear]
        if self._coupled is not None:
            terms.append(2 * self.beta * self._coupled.apply(v))
        largest = max(float(np.abs(term).max(initial=0.0)) for term in terms)
        return max(largest, float(np.finfo(np.float32).tiny))

    def matrix(self) -> Any:
        """Sparse symmetric Q (n, n) of the smooth part ``v^T Q v - b^T v``, float64."""
        from scipy import sparse

        Q = sparse.diags_array(self.quadratic.astype(np.float64))
        if self._coupled is not None:
            Q = Q + self.beta * self._coupled.matrix()
        return sparse.csr_array(Q)

    @property
    def unlisted(self) -> list[CurriculumTerm]:
        """Curricula that do not list their pairs."""
        return [term for term in self.curricula if not hasattr(term.curriculum, "pairs")]

    @cached_property
    def listed_pairs(self) -> tuple[NDArray[np.uint32], NDArray[np.float64]]:
        """Pairs (P, 2) of the other curricula as rows of the stack, and their weights, (P,)."""
        pairs, weights = [np.zeros((0, 2), dtype=np.uint32)], [np.zeros(0)]
        for rows, curriculum, mu in self.curricula:
            listed = getattr(curriculum, "pairs", None)
            if listed is not None:
                # Compact numbers: the pairs are read many times.
                pairs.append(np.add(listed, rows.start, dtype=np.uint32, casting="unsafe"))
                weights.append(np.full(len(listed), float(mu)))
        return np.concatenate(pairs), np.concatenate(weights)

    def in_float64(self) -> PacingProblem:
        """Return the same problem for variables in float64."""
        scale = None if self.group_scale is None else self.group_scale.astype(np.float64)
        return replace(self, losses=self.losses.astype(np.float64), group_scale=scale)

    def separable_solution(self) -> NDArray[Any]:
        """Minimiser in closed form: ``min(1, b / 2a)``, or 1 unpaced; (n,)."""
        if self.regularizer == "none":
            return np.ones_like(self.losses)
        if self.printed_sign:
            return np.zeros_like(self.losses)
        a, b = self.quadratic, self.linear
        at_most_one = 2 * a <= b
        solution: NDArray[Any] = np.where(at_most_one, 1, b / np.where(at_most_one, 1, 2 * a))
        return solution.astype(self.losses.dtype, copy=False)


def check_listed(problem: PacingProblem, option: str) -> None:
    """Refuse curricula that do not list their pairs where an option needs them."""
    if problem.unlisted:
        raise InputError(
            f"{type(problem.unlisted[0].curriculum).__name__} does not list its pairs, which "
            f"{option} needs; use qp_solver='fista' and selection='relaxed', or ExplicitPairs"
        )
