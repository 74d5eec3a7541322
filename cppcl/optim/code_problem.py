"""What the code step minimises."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import InputError
from cppcl.graph import Laplacian
from cppcl.optim.devices import placed, to_numpy

L1Weight = Literal["v2", "none"]
"""Weight of a sample's L1 norm: its squared pacing variable, or 1 as printed in the paper."""

SMALLEST_PACING = 1e-4
"""Samples with a smaller pacing variable do not take part in the code step."""

LARGEST_DENSE = 256
"""Size of a matrix up to which all of its eigenvalues are computed."""

ROWS_AT_ONCE = 4096
"""Samples whose residuals are in memory at once."""


def l1_weights(v: NDArray[Any], l1_weight: L1Weight) -> NDArray[Any]:
    """Weight of each sample's L1 norm at pacing variables v (n,)."""
    if l1_weight not in get_args(L1Weight):
        raise InputError(f"l1_weight={l1_weight!r} is not one of {get_args(L1Weight)}")
    return v * v if l1_weight == "v2" else np.ones_like(v)


def chunks(n: int) -> Iterator[slice]:
    """Consecutive slices of at most `ROWS_AT_ONCE` of n rows."""
    for first in range(0, n, ROWS_AT_ONCE):
        yield slice(first, min(first + ROWS_AT_ONCE, n))


def reconstruction_losses(
    features: NDArray[Any], codes: NDArray[Any], dictionary: NDArray[Any], device: str = "cpu"
) -> NDArray[Any]:
    """``|f_p - c_p D|^2`` for each row of features (n, m) and codes (n, N), (n,)."""
    losses = np.empty(len(features), dtype=features.dtype)
    D = placed(dictionary, device)
    for rows in chunks(len(features)):
        residual = placed(features[rows], device) - placed(codes[rows], device) @ D
        losses[rows] = to_numpy((residual * residual).sum(axis=1))
    return losses


@dataclass(frozen=True)
class CodeBlock:
    """One modality's part of the stacked codes.

    Parameters
    ----------
    rows : slice
        Rows of the modality in the stack.
    features : (n_k, m_k) array
        Its samples.
    dictionary : (N, m_k) array
        Its atoms.
    """

    rows: slice
    features: NDArray[Any]
    dictionary: NDArray[Any]
    gram: NDArray[Any] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "gram", self.dictionary @ self.dictionary.T)


@dataclass(frozen=True)
class CodeProblem:
    r"""The objective as a function of the codes alone.

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
        Whether ``w_p`` is ``v_p^2`` or 1.
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

    def value(self, X: NDArray[Any]) -> float:
        """Objective at codes X (n, N)."""
        v2 = self.v * self.v
        total = self.alpha * float(l1_weights(self.v, self.l1_weight) @ np.abs(X).sum(axis=1))
        for rows, features, dictionary in self._parts():
            total += float(v2[rows] @ reconstruction_losses(features, X[rows], dictionary))
        if self.graph is not None:
            total += self.beta * self.graph.quadratic_form(self.v[:, None] * X)
        return total

    def gradient(self, X: NDArray[Any]) -> NDArray[Any]:
        """Gradient of the smooth part at codes X (n, N)."""
        v = self.v[:, None]
        gradient: NDArray[Any] = np.empty_like(X)
        for rows, features, dictionary in self._parts():
            gradient[rows] = (X[rows] @ dictionary - features) @ dictionary.T
        gradient *= 2 * v * v
        if self.graph is not None:
            gradient += (2 * self.beta) * v * self.graph.apply(v * X)
        return gradient

    def curvature(self) -> NDArray[Any]:
        """Curvature of a separable majoriser of the smooth part, one value a sample, (n,).

        ``V L V <= 2 V diag(d) V`` gives every sample its own step: image and sketch degrees
        differ by orders of magnitude, and one global step would be as short as the worst.
        """
        v = np.maximum(self.v, SMALLEST_PACING)
        curvature: NDArray[Any] = np.empty_like(v)
        for block in self.blocks:
            curvature[block.rows] = 2 * largest_eigenvalue(block.gram)
        if self.graph is not None:
            curvature += (4 * self.beta) * self.graph.degree
        curvature = np.maximum(curvature, np.finfo(v.dtype).tiny ** 0.5) * v * v
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
        weights = (self.alpha * l1_weights(self.v, self.l1_weight))[:, None]
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

    def _parts(self) -> Iterator[tuple[slice, NDArray[Any], NDArray[Any]]]:
        for block in self.blocks:
            yield block.rows, block.features, block.dictionary


def largest_eigenvalue(gram: NDArray[Any]) -> float:
    """Largest eigenvalue of a symmetric positive semidefinite matrix, or slightly more.

    Of large matrices by Lanczos iterations, to which their residual is added.
    """
    margin = 1 + 10 * len(gram) * float(np.finfo(gram.dtype).eps)
    if len(gram) <= LARGEST_DENSE:
        return float(np.linalg.eigvalsh(gram)[-1]) * margin
    from scipy.sparse.linalg import eigsh

    if not gram.any():
        return 0.0
    start = np.random.default_rng(0).standard_normal(len(gram)).astype(gram.dtype)
    values, vectors = eigsh(gram, k=1, which="LA", v0=start, tol=1e-3)
    residual = gram @ vectors[:, 0] - values[0] * vectors[:, 0]
    return (float(values[0]) + float(np.linalg.norm(residual))) * margin
