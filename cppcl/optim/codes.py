"""The code step: sparse codes of all samples under the graph, by accelerated proximal gradient."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import ConvergenceWarning, InputError
from cppcl.graph import Laplacian

L1Weight = Literal["v2", "none"]
"""Weight of a sample's L1 norm: its squared pacing variable, or 1 as printed in the paper."""

SMALLEST_PACING = 1e-4
"""Pacing variables below this take steps as if they had this value (a valid majoriser)."""


class CodeBlock(NamedTuple):
    """One modality's part of the stacked codes."""

    rows: slice
    """Rows of the modality in the stack."""
    gram: NDArray[Any]
    """Inner products of its atoms, (N, N)."""


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
        Whether the relative change fell below the tolerance.
    """

    codes: NDArray[Any]
    n_iter: int
    converged: bool


def soft_threshold(X: NDArray[Any], threshold: NDArray[Any] | float) -> NDArray[Any]:
    """Shrink entries towards zero by ``threshold``, the proximal operator of the L1 norm."""
    shrunk: NDArray[Any] = X - np.clip(X, -threshold, threshold)
    return shrunk


def l1_weights(v: NDArray[Any], l1_weight: L1Weight) -> NDArray[Any]:
    """Weight of each sample's L1 norm at pacing variables v (n,)."""
    if l1_weight not in get_args(L1Weight):
        raise InputError(f"l1_weight={l1_weight!r} is not one of {get_args(L1Weight)}")
    return v * v if l1_weight == "v2" else np.ones_like(v)


@dataclass(frozen=True)
class CodeProblem:
    r"""The objective as a function of the codes alone, up to a constant.

    ``sum_p v_p^2 |f_p - c_p D|^2 + beta Tr((VC)^T L (VC)) + alpha sum_p w_p |c_p|_1``

    Parameters
    ----------
    correlations : (n, N) array
        Inner products of features and atoms, stacked.
    blocks : sequence of CodeBlock
        Rows and Gram matrix of each modality.
    v : (n,) array
        Pacing variables in [0, 1].
    alpha, beta : float
        Weights of sparsity and of the graph.
    laplacian : Laplacian or None
        The graph; None where ``beta`` is zero.
    l1_weight : {'v2', 'none'}
        Whether ``w_p`` is ``v_p^2`` or 1.
    """

    correlations: NDArray[Any]
    blocks: Sequence[CodeBlock]
    v: NDArray[Any]
    alpha: float
    beta: float = 0.0
    laplacian: Laplacian | None = None
    l1_weight: L1Weight = "v2"

    def times_gram(self, X: NDArray[Any]) -> NDArray[Any]:
        """Codes times the Gram matrix of their own modality."""
        return np.concatenate([X[rows] @ gram for rows, gram in self.blocks])

    def value(self, X: NDArray[Any]) -> float:
        """Objective, less the constant ``sum v_p^2 |f_p|^2``."""
        v2 = self.v * self.v
        data = np.einsum("pn,pn->p", X, self.times_gram(X) - 2 * self.correlations)
        total = float(v2 @ data)
        total += self.alpha * float(l1_weights(self.v, self.l1_weight) @ np.abs(X).sum(axis=1))
        if self.beta and self.laplacian is not None:
            total += self.beta * self.laplacian.quadratic_form(self.v[:, None] * X)
        return total

    def gradient(self, X: NDArray[Any]) -> NDArray[Any]:
        """Gradient of the smooth part, (n, N)."""
        v = self.v[:, None]
        gradient: NDArray[Any] = (2 * v * v) * (self.times_gram(X) - self.correlations)
        if self.beta and self.laplacian is not None:
            gradient += (2 * self.beta) * v * self.laplacian.apply(v * X)
        return gradient

    def curvature(self) -> NDArray[Any]:
        """Curvature of a separable majoriser of the smooth part, one value a sample, (n,).

        ``V L V <= 2 V diag(d) V`` gives every sample its own step: image and sketch degrees
        differ by orders of magnitude, and one global step would be as short as the worst.
        """
        v = np.maximum(self.v, SMALLEST_PACING)
        spectral = np.empty_like(v)
        for rows, gram in self.blocks:
            spectral[rows] = 2 * largest_eigenvalue(gram)
        if self.beta and self.laplacian is not None:
            spectral += (4 * self.beta) * self.laplacian.degree
        curvature: NDArray[Any] = np.maximum(spectral, np.finfo(v.dtype).tiny ** 0.5) * v * v
        return curvature


def largest_eigenvalue(gram: NDArray[Any]) -> float:
    """Largest eigenvalue of a symmetric positive semidefinite matrix, never below it."""
    margin = 1 + 10 * len(gram) * float(np.finfo(gram.dtype).eps)
    return float(np.linalg.eigvalsh(gram)[-1]) * margin


def update_codes(
    problem: CodeProblem, *, start: NDArray[Any], max_iter: int = 25, tol: float = 1e-4
) -> CodeResult:
    """Lower the objective over the codes of all samples, warm-started.

    FISTA with one step length a sample and gradient restart (O'Donoghue and Candes 2015). The
    objective never ends above its start: should momentum have raised it, plain proximal
    gradient steps, which cannot, are taken instead.

    Parameters
    ----------
    problem : CodeProblem
        What to minimise.
    start : (n, N) array
        Codes to start from.
    max_iter : int, default 25
        Iterations; a step of an alternation need not converge.
    tol : float, default 1e-4
        Relative change of the codes, in Frobenius norm, that ends the step.

    Returns
    -------
    CodeResult
        Codes, iterations and convergence.
    """
    curvature = problem.curvature()[:, None]
    weights = l1_weights(problem.v, problem.l1_weight)[:, None]
    threshold = (problem.alpha * weights / curvature).astype(start.dtype)

    def accelerate(momentum: bool) -> CodeResult:
        X, Y, t = start, start, 1.0
        for iteration in range(1, max_iter + 1):
            X_new = soft_threshold(Y - problem.gradient(Y) / curvature, threshold)
            change = X_new - X
            if momentum and float(np.vdot((Y - X_new) * curvature, change)) > 0:
                t = 1.0
            t_new = (1 + (1 + 4 * t * t) ** 0.5) / 2
            Y = X_new + ((t - 1) / t_new) * change if momentum else X_new
            X, t = X_new, t_new
            if np.linalg.norm(change) <= tol * np.linalg.norm(X):
                return CodeResult(X, iteration, True)
        return CodeResult(X, max_iter, False)

    result = accelerate(momentum=True)
    if problem.value(result.codes) <= problem.value(start):
        return result
    return accelerate(momentum=False)


def encode(
    features: NDArray[Any],
    dictionary: NDArray[Any],
    alpha: float,
    *,
    ridge: float = 0.0,
    max_iter: int = 5000,
    tol: float = 1e-4,
) -> CodeResult:
    """Code new samples, each alone: ``min |f - c D|^2 + alpha |c|_1 + ridge |c|_2^2``.

    Every row has its own momentum, restart and stopping, so that how samples are batched does
    not matter. With ``alpha`` zero codes are (ridge) least squares, the shortest ones where many
    fit equally.

    Parameters
    ----------
    features : (n, m) array
        One sample a row.
    dictionary : (N, m) array
        One atom a row.
    alpha : float
        Weight of the L1 norm (twice that of `sklearn.decomposition.sparse_encode`).
    ridge : float, default 0
        Weight of the squared norm.
    max_iter : int, default 5000
        Iterations before giving up with a `ConvergenceWarning`.
    tol : float, default 1e-4
        Largest entry of a proximal gradient residual, relative to the sample's largest
        correlation with an atom.

    Returns
    -------
    CodeResult
        Codes (n, N) of the features' dtype.
    """
    dictionary = dictionary.astype(features.dtype, copy=False)
    gram = dictionary @ dictionary.T
    gram[np.diag_indices_from(gram)] += ridge
    correlations = features @ dictionary.T
    if alpha == 0:
        codes = (
            np.linalg.solve(gram, correlations.T).T
            if ridge
            else features @ np.linalg.pinv(dictionary)
        )
        return CodeResult(codes.astype(features.dtype, copy=False), 0, True)
    curvature = max(2 * largest_eigenvalue(gram), float(np.finfo(gram.dtype).tiny))
    codes = np.zeros_like(correlations)
    scale = tol * 2 * np.abs(correlations).max(axis=1, initial=0.0)
    active = np.flatnonzero(scale > 0)
    X = Y = codes[active]
    t = np.ones((len(active), 1), dtype=codes.dtype)
    n_iter = 0
    while len(active) and n_iter < max_iter:
        n_iter += 1
        gradient = 2 * (Y @ gram - correlations[active])
        X_new = soft_threshold(Y - gradient / curvature, alpha / curvature)
        residual, change = Y - X_new, X_new - X
        t[np.einsum("pn,pn->p", residual, change) > 0] = 1
        t_new = (1 + np.sqrt(1 + 4 * t * t)) / 2
        Y = X_new + ((t - 1) / t_new) * change
        X, t = X_new, t_new
        done = curvature * np.abs(residual).max(axis=1) <= scale[active]
        if done.any():
            codes[active[done]] = X[done]
            keep = ~done
            active, X, Y, t = active[keep], X[keep], Y[keep], t[keep]
    codes[active] = X
    if len(active):
        warnings.warn(
            f"{len(active)} of {len(codes)} samples were not coded to tolerance {tol} within "
            f"{max_iter} iterations; raise max_iter or alpha={alpha}",
            ConvergenceWarning,
            stacklevel=2,
        )
    return CodeResult(codes, n_iter, not len(active))
