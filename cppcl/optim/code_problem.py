"""What the code step minimises."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.learning.graph import Laplacian
from cppcl.optim.terms import (
    CodeBlock,
    GraphTerm,
    L1Weight,
    Reconstruction,
    SmoothTerm,
    Sparsity,
)

SMALLEST_PACING = 1e-4
"""Samples with a smaller pacing variable do not take part in the code step."""


@dataclass(frozen=True)
class CodeProblem:
    r"""The objective as a function of the codes alone: reconstruction, graph and sparsity.

    ``sum_p v_p^2 |f_p - c_p D|^2 + beta Tr((VC)^T L (VC)) + alpha sum_p w_p |c_p|_1``

    Parameters
    ----------
    blocks : sequence of CodeBlock
        Samples and atoms of each modality.
    v : (n,) array
        Pacing variables in [0, 1].
    alpha, beta : float
        Weights of sparsity and of the graph.
    laplacian : Laplacian or None
        The graph; None where ``beta`` is zero.
    l1_weight : {'v2', 'none'}
        Weight ``w_p`` of a sample's L1 norm: ``v_p^2`` or 1.
    """

    blocks: Sequence[CodeBlock]
    v: NDArray[Any]
    alpha: float
    beta: float = 0.0
    laplacian: Laplacian | None = None
    l1_weight: L1Weight = "v2"

    @property
    def graph(self) -> Laplacian | None:
        """The graph where it has a weight."""
        return self.laplacian if self.beta else None

    @cached_property
    def smooth(self) -> list[SmoothTerm]:
        """Terms with a gradient."""
        terms: list[SmoothTerm] = [Reconstruction(self.blocks)]
        if self.graph is not None:
            terms.append(GraphTerm(self.graph, self.beta))
        return terms

    @cached_property
    def sparsity(self) -> Sparsity:
        """The term with a prox."""
        return Sparsity(self.alpha, self.l1_weight)

    def value(self, X: NDArray[Any]) -> float:
        """Objective at codes X (n, N)."""
        total = sum(term.value(X, self.v) for term in self.smooth)
        return total + self.sparsity.value(X, self.v)

    def gradient(self, X: NDArray[Any]) -> NDArray[Any]:
        """Gradient of the smooth part at codes X (n, N)."""
        first, *rest = (term.gradient(X, self.v) for term in self.smooth)
        return sum(rest, start=first)

    def curvature(self) -> NDArray[Any]:
        """Curvature of a separable majoriser of the smooth part, one value a sample, (n,)."""
        v = np.maximum(self.v, SMALLEST_PACING)
        curvature: NDArray[Any] = np.full_like(v, np.finfo(v.dtype).tiny ** 0.5)
        for term in self.smooth:
            curvature += term.curvature()
        curvature *= v * v
        return curvature

    def relative_gap(self, X: NDArray[Any]) -> float:
        """Duality gap at codes X (n, N), relative to the objective there.

        The smooth part is ``|b - A x|^2`` for some A and b, so the scaled residual
        ``s (b - A x)`` is a dual point, feasible for the largest s in [0, 1] at which no entry of
        its gradient exceeds the weight of that entry's L1 norm. The objective lies at most this
        share above its minimum. One s serves all samples of a graph: small gaps need every
        sample solved.
        """
        gradient = self.gradient(X)
        weights = self.sparsity.weights(self.v)[:, None]
        excess = np.abs(gradient)
        np.divide(excess, weights, out=excess, where=weights > 0)
        penalty = float((weights * np.abs(X)).sum())
        primal = self.value(X)
        smooth = primal - penalty
        # With r = b - A x the gradient is -2 A^T r, hence b . r = r . r - x . gradient / 2.
        along = smooth - float(np.vdot(X, gradient)) / 2
        s = 1 / max(1.0, float(excess.max(initial=0.0)))
        if smooth > 0:
            s = min(s, along / smooth)
        gap = primal - (2 * s * along - s * s * smooth)
        return max(gap, 0.0) / primal if primal > 0 else 0.0


@dataclass(frozen=True)
class CodeResult:
    """Outcome of a code step.

    Attributes
    ----------
    codes : (n, N) array
        One sample a row.
    n_iter : int
        Iterations taken.
    converged : bool
        True if the tolerance was met.
    changes : tuple of float
        Relative change of the codes in each iteration; empty for new samples.
    """

    codes: NDArray[Any]
    n_iter: int
    converged: bool
    changes: tuple[float, ...] = ()
