"""The pacing step: how much each training sample counts, under graph and curricula."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.optim.pacing.binary import check_binary, solve_binary
from cppcl.optim.pacing.certificate import kkt_residual
from cppcl.optim.pacing.fista import SMOOTHING, Effort, solve_by_fista
from cppcl.optim.pacing.options import PacingSolver, Selection
from cppcl.optim.pacing.problem import PacingProblem
from cppcl.optim.pacing.programs import solve_by_cvxpy, solve_by_osqp
from cppcl.validation import check_choice

PACING_SOLVERS = {"fista": solve_by_fista, "osqp": solve_by_osqp, "cvxpy": solve_by_cvxpy}
"""Solvers by name: from a problem, a start and an effort to a `Solution`."""


@dataclass(frozen=True)
class PacingResult:
    """Outcome of a pacing step.

    Attributes
    ----------
    v : (n,) array
        Pacing variables in [0, 1]; 0 or 1 where binary.
    objective : float
        Exact objective at v.
    n_iter : int
        Iterations taken; 0 for a closed form or an enumeration.
    converged : bool
        True if the solver met its own tolerance.
    kkt : float
        Residual of the optimality conditions at v, computed here and not by the solver; see
        `cppcl.optim.pacing.certificate.kkt_residual`. Of a binary result: the largest decrease
        of the objective by changing one sample, relative to the same scale.
    selection : {'relaxed', 'binary'}
        Over what the objective was minimised.
    multipliers : (P,) array or None
        Multiplier of each listed pair at v, from 0 to its weight, that the solver found.
    """

    v: NDArray[Any]
    objective: float
    n_iter: int
    converged: bool
    kkt: float
    selection: Selection = "relaxed"
    multipliers: NDArray[np.float64] | None = None


def update_pacing(
    problem: PacingProblem,
    *,
    start: NDArray[Any],
    solver: PacingSolver = "fista",
    selection: Selection = "relaxed",
    smoothing: Sequence[float] = SMOOTHING,
    max_iter: int = 1000,
    tol: float = 1e-6,
) -> PacingResult:
    """Lower the objective over the pacing variables, warm-started.

    Closed form where samples are independent. The better of start and result on the exact
    objective is returned.

    Parameters
    ----------
    problem : PacingProblem
        What to minimise.
    start : (n,) array
        Pacing variables to start from, in [0, 1].
    solver : {'fista', 'osqp', 'cvxpy'}, default 'fista'
        Accelerated proximal gradient with exact order of the pairs: matrix-free, for any number
        of samples. The others solve the quadratic program with slack variables, by OSQP or by
        cvxpy's Clarabel.
    selection : {'relaxed', 'binary'}, default 'relaxed'
        'binary' is the mixed-integer form of regulariser A: exact without graph and curricula
        and up to 20 samples, else a heuristic; see `cppcl.optim.pacing.binary.solve_binary`.
    smoothing : sequence of float
        For 'fista' alone: widths, decreasing, of the Huberised hinge of curricula that do not
        list their pairs.
    max_iter : int, default 1000
        Iterations of 'fista' at most.
    tol : float, default 1e-6
        Largest residual of the optimality conditions that ends 'fista'.

    Raises
    ------
    InputError
        For a solver that is unknown or cannot take the problem.
    """
    check_choice("qp_solver", solver, PacingSolver)
    check_choice("selection", selection, Selection)
    if selection == "binary":
        check_binary(problem)
    exact, dtype = problem.in_float64(), start.dtype
    multipliers: NDArray[np.float64] | None = None
    if problem.separable:
        v, n_iter, converged = exact.separable_solution(), 0, True
    else:
        effort = Effort(smoothing, max_iter, tol)
        begin = start.astype(np.float64)
        v, n_iter, converged, multipliers = PACING_SOLVERS[solver](exact, begin, effort)
        if exact.value(v.astype(dtype)) > exact.value(start):
            v, multipliers = start, None
    v = v.astype(dtype, copy=False)
    if selection == "binary":
        v, n_iter, residual = solve_binary(exact, v, start)
        return PacingResult(v, exact.value(v), n_iter, True, residual, selection)
    # Better multipliers are not sought than what was asked for.
    residual = kkt_residual(exact, v, multipliers, tol=max(tol, 1e-6))
    return PacingResult(v, exact.value(v), n_iter, converged, residual, multipliers=multipliers)
