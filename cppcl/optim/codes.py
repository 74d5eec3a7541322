"""The code step: sparse codes of all samples under the graph, and codes of new samples."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import ConvergenceWarning, InputError
from cppcl.optim.code_problem import SMALLEST_PACING, CodeProblem, CodeResult
from cppcl.optim.coordinate_descent import descend
from cppcl.optim.devices import check_device, check_device_name
from cppcl.optim.terms import chunks
from cppcl.validation import check_choice

CODE_TOLERANCE = 3e-4
"""Accuracy of a step of an alternation; the next round changes codes by more."""

CodeSolver = Literal["coordinate", "gradient"]
"""Coordinate descent on active sets, or accelerated proximal gradient (also on a GPU)."""


def update_codes(
    problem: CodeProblem,
    *,
    start: NDArray[Any],
    solver: CodeSolver = "coordinate",
    device: str = "cpu",
    max_iter: int | None = None,
    tol: float = 1e-4,
) -> CodeResult:
    """Lower the objective over the codes of all samples, warm-started.

    Given the codes of one modality, the samples of the other are independent of each other:
    'coordinate' solves them exactly, one modality after the other
    (`cppcl.optim.coordinate_descent`), and repeats. Weights within a modality are majorised, which
    keeps its samples independent. 'gradient' moves all codes at once by FISTA with one step
    length a sample (`cppcl.optim.code_gradient`), and is what runs on a GPU. The objective never
    ends above its start.

    Parameters
    ----------
    problem : CodeProblem
        What to minimise.
    start : (n, N) array
        Codes to start from; not changed. Samples whose pacing variable is below 1e-4 keep theirs
        where pacing weighs the L1 norm too, and lose them where not.
    solver : {'coordinate', 'gradient'}, default 'coordinate'
        How. Without sparsity (``alpha`` zero) active sets are no help and 'gradient' is used.
    device : str, default 'cpu'
        A torch device; others than 'cpu' need 'gradient'.
    max_iter : int, optional
        Iterations: by default 2 for 'coordinate' and 25 for 'gradient'. A step of an
        alternation need not converge.
    tol : float, default 1e-4
        Relative change of the codes, in Frobenius norm, that ends the step; for 'coordinate'
        also the largest violation of a sample's optimality conditions.

    Returns
    -------
    CodeResult
        Codes, iterations and convergence.
    """
    check_solver(solver, device)
    check_device(device)
    if solver == "gradient" or problem.alpha == 0:
        from cppcl.optim.code_gradient import update_codes_by_gradient

        return update_codes_by_gradient(
            problem,
            start=start,
            device=device,
            max_iter=25 if max_iter is None else max_iter,
            tol=tol,
        )
    codes = np.array(start, order="C")
    active = problem.v >= SMALLEST_PACING
    if problem.l1_weight == "none":
        codes[~active] = 0
    changes: list[float] = []
    coupled = problem.graph is not None and len(problem.blocks) > 1
    for _ in range(2 if max_iter is None else max_iter):
        before = codes.copy() if coupled else start
        for modality in range(len(problem.blocks)):
            _solve_modality(problem, modality, codes, active, tol)
        scale = float(np.linalg.norm(codes))
        changes.append(float(np.linalg.norm(codes - before)) / scale if scale else 0.0)
        if not coupled or changes[-1] <= tol:
            return CodeResult(codes, len(changes), True, tuple(changes))
    return CodeResult(codes, len(changes), False, tuple(changes))


def check_solver(solver: str, device: str) -> None:
    """Refuse an unknown solver, or a device that it cannot use."""
    check_choice("code_solver", solver, CodeSolver)
    check_device_name(device)
    if solver == "coordinate" and device != "cpu":
        raise InputError(
            f"device={device!r} needs code_solver='gradient': coordinate descent runs on the "
            "processor only"
        )


def _solve_modality(
    problem: CodeProblem, modality: int, codes: NDArray[Any], active: NDArray[np.bool_], tol: float
) -> None:
    """Solve every sample of one modality given the other one's codes, in place.

    Divided by ``v_p^2``, a sample's part of the objective is a lasso with a ridge,
    ``|f - c D|^2 + beta d |c|^2 - (2 beta / v) c . pull + alpha (w / v^2) |c|_1``, where `pull`
    sums the weighted codes of its neighbours.
    """
    block, graph, v = problem.blocks[modality], problem.graph, problem.v
    own, dtype = v[block.rows], codes.dtype
    weights = problem.sparsity.weights(own)
    safe = np.where(active[block.rows], own, 1)
    thresholds = np.where(active[block.rows], weights / safe**2 / 2, np.inf)
    ridges = np.zeros_like(own)
    pull = None
    if graph is not None:
        weighted = [v[b.rows, None] * codes[b.rows] for b in problem.blocks]
        pull = graph.cross(weighted[1 - modality], modality)
        ridges += problem.beta * graph.cross_degree[block.rows]
        within = graph.within(weighted[modality], modality)
        if within is not None:
            # The Laplacian of a graph lies below twice its degrees.
            degree = graph.within_degree[block.rows]
            pull += within + degree[:, None] * weighted[modality]
            ridges += 2 * problem.beta * degree
        pull *= (problem.beta / safe)[:, None].astype(dtype)
    codes = codes[block.rows]
    for rows in chunks(len(own)):
        correlations = block.features[rows] @ block.dictionary.T
        if pull is not None:
            correlations += pull[rows]
        descend(block.gram, correlations, codes[rows], thresholds[rows], ridges[rows], tol=tol)


def encode(
    features: NDArray[Any],
    dictionary: NDArray[Any],
    alpha: float,
    *,
    ridge: float = 0.0,
    target: NDArray[Any] | None = None,
    max_iter: int = 5000,
    tol: float = 1e-4,
) -> CodeResult:
    """Code new samples, each alone: ``min |f - c D|^2 + alpha |c|_1 + ridge |c - target|_2^2``.

    With ``alpha`` zero codes are (ridge) least squares, the shortest ones where many fit
    equally.

    Parameters
    ----------
    features : (n, m) array
        One sample a row.
    dictionary : (N, m) array
        One atom a row.
    alpha : float
        Weight of the L1 norm (twice that of `sklearn.decomposition.sparse_encode`).
    ridge : float, default 0
        Weight of the squared distance from the target.
    target : (n, N) array, optional
        Codes to stay near; zero where None.
    max_iter : int, default 5000
        Sweeps over a sample's atoms before giving up with a `ConvergenceWarning`.
    tol : float, default 1e-4
        Largest violation of the optimality conditions, relative to the sample's largest
        correlation with an atom.

    Returns
    -------
    CodeResult
        Codes (n, N) of the features' dtype.
    """
    dictionary = dictionary.astype(features.dtype, copy=False)
    gram = dictionary @ dictionary.T
    n, N = len(features), len(dictionary)
    if alpha == 0:
        if ridge:
            gram[np.diag_indices(N)] += ridge
            pull = 0 if target is None else ridge * target.T
            codes = np.linalg.solve(gram, dictionary @ features.T + pull).T
        else:
            codes = features @ np.linalg.pinv(dictionary)
        return CodeResult(np.ascontiguousarray(codes, dtype=features.dtype), 0, True)
    codes = np.zeros((n, N), dtype=features.dtype)
    sweeps, converged = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.bool_)
    thresholds, ridges = np.full(n, alpha / 2), np.full(n, ridge)
    for rows in chunks(n):
        correlations = features[rows] @ dictionary.T
        if target is not None:
            correlations += ridge * target[rows]
        sweeps[rows], converged[rows] = descend(
            gram,
            correlations,
            codes[rows],
            thresholds[rows],
            ridges[rows],
            tol=tol,
            max_iter=max_iter,
        )
    if not converged.all():
        warnings.warn(
            f"{int((~converged).sum())} of {n} samples were not coded to tolerance {tol} within "
            f"{max_iter} sweeps; raise max_iter, or the weights alpha={alpha} and ridge={ridge} "
            "(code_ridge of CPRL)",
            ConvergenceWarning,
            stacklevel=2,
        )
    return CodeResult(codes, int(sweeps.max(initial=0)), bool(converged.all()))
