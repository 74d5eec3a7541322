"""The pacing step: how much each training sample counts, under graph and curricula."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from numpy.typing import NDArray

from cppcl.errors import InputError
from cppcl.optim.pacing_certificate import kkt_residual
from cppcl.optim.pacing_coupling import GraphCoupling
from cppcl.optim.pacing_fista import SMOOTHING, Effort, solve_by_fista
from cppcl.optim.pacing_problem import CurriculumTerm, PacingProblem, Regularizer, group_sizes
from cppcl.optim.pacing_programs import solve_by_cvxpy, solve_by_osqp

__all__ = [
    "PACING_SOLVERS",
    "SMOOTHING",
    "CurriculumTerm",
    "GraphCoupling",
    "PacingProblem",
    "PacingResult",
    "PacingSolver",
    "Regularizer",
    "group_sizes",
    "update_pacing",
]

PacingSolver = Literal["fista", "osqp", "cvxpy"]
"""Name of a solver of the pacing step."""

PACING_SOLVERS = {"fista": solve_by_fista, "osqp": solve_by_osqp, "cvxpy": solve_by_cvxpy}
"""Solvers by name: from problem, start and effort to v in [0, 1], iterations, converged."""


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
        Whether the solver met its own tolerance.
    kkt : float
        Residual of the optimality conditions at v, computed here and not by the solver; see
        `cppcl.optim.pacing_certificate.kkt_residual`.
    """

    v: NDArray[Any]
    objective: float
    n_iter: int
    converged: bool
    kkt: float


def update_pacing(
    problem: PacingProblem,
    *,
    start: NDArray[Any],
    solver: PacingSolver = "fista",
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
        FISTA on a Huberised hinge: matrix-free, for any number of samples. The others solve the
        quadratic program with slack variables, by OSQP or by cvxpy's Clarabel.
    smoothing : sequence of float
        Widths of the Huberised hinge, decreasing; for 'fista' alone.
    max_iter : int, default 1000
        Iterations at each width; for 'fista' alone.
    tol : float, default 1e-6
        Largest change of a pacing variable that ends a width; for 'fista' alone.

    Raises
    ------
    InputError
        For a solver that is unknown or cannot take the problem.
    """
    if solver not in get_args(PacingSolver):
        raise InputError(f"qp_solver={solver!r} is not one of {get_args(PacingSolver)}")
    if problem.regularizer == "none" or problem.separable:
        v, n_iter, converged = problem.separable_solution(), 0, True
    else:
        effort = Effort(smoothing, max_iter, tol)
        v, n_iter, converged = PACING_SOLVERS[solver](problem, start, effort)
        if problem.value(v) > problem.value(start):
            v = start
    return PacingResult(v, problem.value(v), n_iter, converged, kkt_residual(problem, v))
