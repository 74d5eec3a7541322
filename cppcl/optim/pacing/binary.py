"""The mixed-integer pacing step of the paper: every sample is selected or not."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import InputError
from cppcl.optim.pacing.options import check_selection
from cppcl.optim.pacing.problem import PacingProblem, check_listed

ENUMERATED = 20
"""Most samples of which all selections are tried."""
LARGEST = 5000
"""Most coupled samples; their couplings are listed, and samples change one at a time."""
CHUNK = 1 << 14
"""Selections evaluated at once."""


def check_binary(problem: PacingProblem) -> None:
    """Refuse problems that have no binary form here, with a hint."""
    check_selection("binary", problem.regularizer)
    check_listed(problem, "selection='binary'")
    n = len(problem.losses)
    if n > LARGEST and not problem.separable:
        raise InputError(
            f"selection='binary' takes at most {LARGEST} samples with a graph or curricula, not "
            f"{n}; use selection='relaxed', or coupling='none' without curricula"
        )


def solve_binary(
    problem: PacingProblem, relaxed: NDArray[Any], start: NDArray[Any]
) -> tuple[NDArray[Any], int, float]:
    """Select samples: v in {0, 1}.

    Independent samples have a closed form, and up to 20 coupled ones are enumerated: both exact.
    Beyond that a heuristic is used: of all thresholds of the relaxed solution the best one, and
    `start` rounded, each improved by a local search that changes the most profitable sample
    until none is left; the better of the two is returned.

    Parameters
    ----------
    problem : PacingProblem
        What to minimise, with regulariser A.
    relaxed : (n,) array
        Solution over [0, 1].
    start : (n,) array
        Selection of the last round; gives the dtype.

    Returns
    -------
    v : (n,) array
        Zeros and ones.
    n_iter : int
        Samples that local search changed; 0 where the solution is exact.
    residual : float
        Largest decrease of the objective that changing one sample would bring, relative to the
        largest entry of any one term of the gradient; zero to rounding.
    """
    Q, c = _binary_form(problem)
    scale = problem.gradient_scale(start)
    if problem.separable:
        v, n_iter = (Q.diagonal() + c < 0).astype(np.float64), 0
    elif len(c) <= ENUMERATED:
        v, n_iter = _enumerate(Q.toarray(), c), 0
    else:
        searched = [
            _local_search(Q, c, candidate, 1e-12 * scale)
            for candidate in (_best_threshold(Q, c, relaxed), (start > 0.5).astype(np.float64))
        ]
        v, n_iter = min(searched, key=lambda found: _value(Q, c, found[0]))
    gain = -float(_changes(Q.diagonal(), c, Q @ v, v).min(initial=0.0))
    return v.astype(start.dtype), n_iter, gain / scale


def _binary_form(problem: PacingProblem) -> tuple[Any, NDArray[np.float64]]:
    """Sparse symmetric Q and c: the objective is ``v^T Q v + c^T v`` at binary v.

    There, ``max(0, v_i - v_j) = v_i - v_i v_j``.
    """
    from scipy import sparse

    n = len(problem.losses)
    pairs, weights = problem.listed_pairs
    c = np.bincount(pairs[:, 0], weights, n) - problem.linear
    products = sparse.coo_array((weights / 2, (pairs[:, 0], pairs[:, 1])), shape=(n, n)).tocsr()
    return sparse.csr_array(problem.matrix() - products - products.T), c


def _value(Q: Any, c: NDArray[np.float64], v: NDArray[np.float64]) -> float:
    return float(v @ (Q @ v) + c @ v)


def _changes(
    diagonal: NDArray[np.float64],
    c: NDArray[np.float64],
    Qv: NDArray[np.float64],
    v: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Change of the objective by changing each sample alone."""
    changes: NDArray[np.float64] = (1 - 2 * v) * (c + 2 * Qv) + diagonal
    return changes


def _enumerate(Q: NDArray[np.float64], c: NDArray[np.float64]) -> NDArray[np.float64]:
    n = len(c)
    best, least = np.zeros(n), 0.0
    for first in range(0, 1 << n, CHUNK):
        numbers = np.arange(first, min(first + CHUNK, 1 << n))
        V = (numbers[:, None] >> np.arange(n) & 1).astype(np.float64)
        values = np.einsum("kn,kn->k", V @ Q + c, V)
        k = int(values.argmin())
        if values[k] < least:
            best, least = V[k], float(values[k])
    return best


def _best_threshold(Q: Any, c: NDArray[np.float64], relaxed: NDArray[Any]) -> NDArray[np.float64]:
    """Select the samples that the relaxed solution weighs most, as many as are best."""
    from scipy import sparse

    order = np.argsort(-relaxed, kind="stable")
    added = 2 * sparse.tril(Q[order][:, order], -1).sum(axis=1) + Q.diagonal()[order] + c[order]
    n_selected = int(np.argmin(np.concatenate([[0.0], np.cumsum(added)])))
    v = np.zeros(len(c))
    v[order[:n_selected]] = 1
    return v


def _local_search(
    Q: Any, c: NDArray[np.float64], v: NDArray[np.float64], tol: float
) -> tuple[NDArray[np.float64], int]:
    v, diagonal, n_iter = v.copy(), Q.diagonal(), 0
    Qv = Q @ v
    while True:
        changes = _changes(diagonal, c, Qv, v)
        p = int(changes.argmin())
        if changes[p] >= -tol:
            return v, n_iter
        step = 1 - 2 * v[p]
        v[p] += step
        entries = slice(Q.indptr[p], Q.indptr[p + 1])
        Qv[Q.indices[entries]] += step * Q.data[entries]
        n_iter += 1
