"""The terms of the objective that codes take part in: value, gradient or prox, and step bound.

Each is a function of the stacked codes C (n, N), one sample a row, and of the pacing variables
v (n,). The self-paced regulariser and the curricula, functions of v alone, are those of
`cppcl.optim.pacing.problem`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import InputError
from cppcl.learning.graph import Laplacian
from cppcl.optim.devices import placed, to_numpy

L1Weight = Literal["v2", "none"]
"""Weight of a sample's L1 norm: its squared pacing variable, or 1 as printed in the paper."""

ROWS_AT_ONCE = 4096
"""Samples whose residuals are in memory at once."""
LARGEST_DENSE = 256
"""Size of a matrix up to which all of its eigenvalues are computed."""


class Term(Protocol):
    """A term of the objective."""

    def value(self, C: NDArray[Any], v: NDArray[Any]) -> float:
        """Value at codes and pacing variables."""
        ...


class SmoothTerm(Term, Protocol):
    """A differentiable term."""

    def gradient(self, C: NDArray[Any], v: NDArray[Any]) -> NDArray[Any]:
        """Gradient with respect to the codes, (n, N)."""
        ...

    def curvature(self) -> NDArray[Any] | float:
        """Bound c (n,): with ``c_p v_p^2`` a sample's curvature, the term is majorised."""
        ...


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

    @cached_property
    def gram(self) -> NDArray[Any]:
        """Inner products of the atoms, (N, N)."""
        gram: NDArray[Any] = self.dictionary @ self.dictionary.T
        return gram


@dataclass
class Reconstruction:
    """Coupled reconstruction, ``sum_p v_p^2 |f_p - c_p D|^2`` over all modalities.

    Parameters
    ----------
    blocks : sequence of CodeBlock
        Samples and atoms of each modality.
    device : str, default 'cpu'
        Where losses are computed.
    """

    blocks: Sequence[CodeBlock]
    device: str = "cpu"
    _known: tuple[NDArray[Any], NDArray[Any]] | None = field(default=None, init=False)

    def losses(self, C: NDArray[Any]) -> NDArray[Any]:
        """``|f_p - c_p D|^2`` for each sample, (n,).

        Codes are not to be changed in place: those of the same array are not computed again.
        """
        if self._known is not None and self._known[0] is C:
            return self._known[1].copy()
        losses = np.empty(len(C), dtype=C.dtype)
        for block in self.blocks:
            own, codes = losses[block.rows], C[block.rows]
            D = placed(block.dictionary, self.device)
            for rows in chunks(len(own)):
                residual = placed(block.features[rows], self.device)
                residual = residual - placed(codes[rows], self.device) @ D
                own[rows] = to_numpy((residual * residual).sum(axis=1))
        self._known = C, losses
        return losses.copy()

    def value(self, C: NDArray[Any], v: NDArray[Any]) -> float:
        """Value at codes and pacing variables."""
        return float((v * v) @ self.losses(C))

    def gradient(self, C: NDArray[Any], v: NDArray[Any]) -> NDArray[Any]:
        """Gradient with respect to the codes, (n, N)."""
        gradient: NDArray[Any] = np.empty_like(C)
        for block in self.blocks:
            residual = C[block.rows] @ block.dictionary - block.features
            gradient[block.rows] = residual @ block.dictionary.T
        gradient *= (2 * v * v)[:, None]
        return gradient

    def curvature(self) -> NDArray[Any]:
        """Twice the largest eigenvalue of the modality's Gram matrix, (n,)."""
        dtype = self.blocks[0].dictionary.dtype
        curvature = np.empty(max(block.rows.stop for block in self.blocks), dtype=dtype)
        for block in self.blocks:
            curvature[block.rows] = 2 * largest_eigenvalue(block.gram)
        return curvature


@dataclass(frozen=True)
class GraphTerm:
    """Agreement of linked samples, ``beta Tr((VC)^T L (VC))``.

    Parameters
    ----------
    laplacian : Laplacian
        The graph.
    beta : float
        Weight.
    """

    laplacian: Laplacian
    beta: float

    def value(self, C: NDArray[Any], v: NDArray[Any]) -> float:
        """Value at codes and pacing variables."""
        return self.beta * self.laplacian.quadratic_form(v[:, None] * C)

    def gradient(self, C: NDArray[Any], v: NDArray[Any]) -> NDArray[Any]:
        """Gradient with respect to the codes, (n, N)."""
        gradient: NDArray[Any] = v[:, None] * self.laplacian.apply(v[:, None] * C)
        gradient *= 2 * self.beta
        return gradient

    def curvature(self) -> NDArray[Any]:
        """Four times beta times the degree, (n,): ``V L V`` lies below ``2 V diag(d) V``.

        Every sample has its own step so: image and sketch degrees differ by orders of magnitude,
        and one global step would be as short as the worst.
        """
        return (4 * self.beta) * self.laplacian.degree


@dataclass(frozen=True)
class Sparsity:
    """L1 norm of codes, ``alpha sum_p w_p |c_p|_1`` with ``w_p`` either ``v_p^2`` or 1.

    Parameters
    ----------
    alpha : float
        Weight.
    weight : {'v2', 'none'}
        'none', as printed in the paper, makes the L1 norm of a sample that hardly counts outweigh
        its loss.
    """

    alpha: float
    weight: L1Weight = "v2"

    def weights(self, v: NDArray[Any]) -> NDArray[Any]:
        """Weight of each sample's L1 norm, (n,)."""
        if self.weight not in get_args(L1Weight):
            raise InputError(f"l1_weight={self.weight!r} is not one of {get_args(L1Weight)}")
        return self.alpha * (v * v if self.weight == "v2" else np.ones_like(v))

    def value(self, C: NDArray[Any], v: NDArray[Any]) -> float:
        """Value at codes and pacing variables."""
        return float(self.weights(v) @ np.abs(C).sum(axis=1))

    def prox(self, C: NDArray[Any], v: NDArray[Any], steps: NDArray[Any]) -> NDArray[Any]:
        """Proximal operator at codes C with a step for each sample: shrink towards zero."""
        threshold = (self.weights(v) * steps)[:, None]
        shrunk: NDArray[Any] = C - np.clip(C, -threshold, threshold)
        return shrunk


def chunks(n: int) -> Iterator[slice]:
    """Consecutive slices of at most `ROWS_AT_ONCE` of n rows."""
    for first in range(0, n, ROWS_AT_ONCE):
        yield slice(first, min(first + ROWS_AT_ONCE, n))


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
