"""The pacing step as a quadratic program with slack variables, by solvers made for those."""

from __future__ import annotations

import ctypes
import importlib
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import ConvergenceWarning, InputError
from cppcl.optim.pacing.fista import Effort, Solution
from cppcl.optim.pacing.options import check_convex
from cppcl.optim.pacing.problem import PacingProblem, check_listed

LARGEST = 5000
"""Most samples of a quadratic program; factorisations take minutes from here on."""


class SlackProgram(NamedTuple):
    """Minimise ``x^T P x / 2 + q^T x`` over ``lower <= A x <= upper``; x stacks v and slacks."""

    quadratic: Any
    """Upper triangle of P, sparse."""
    linear: NDArray[np.float64]
    """The vector q."""
    rows: Any
    """A, sparse: the n variables, the P differences of pairs less slacks, the P slacks."""
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]


def slack_program(problem: PacingProblem, scale: float = 1.0) -> SlackProgram:
    """Write the pacing problem, divided by `scale`, as the paper does: a slack a pair."""
    from scipy import sparse

    pairs, weights = problem.listed_pairs
    n, P = len(problem.losses), len(pairs)
    signs, numbers = np.repeat([1.0, -1.0], P), np.tile(np.arange(P), 2)
    difference = sparse.csc_array((signs, (numbers, pairs.T.ravel())), shape=(P, n))
    # Half of the quadratic form is what OSQP minimises; it silently misreads a lower triangle.
    quadratic = sparse.block_diag(
        [sparse.triu(2 * problem.matrix() / scale), sparse.csc_array((P, P))], format="csc"
    )
    one_a_pair = sparse.eye_array(P)
    rows = sparse.block_array(
        [[sparse.eye_array(n), None], [difference, -one_a_pair], [None, one_a_pair]]
        if P
        else [[sparse.eye_array(n)]],
        format="csc",
    )
    return SlackProgram(
        sparse.csc_matrix(quadratic),
        np.concatenate([-problem.linear.astype(np.float64), weights]) / scale,
        sparse.csc_matrix(rows),
        np.concatenate([np.zeros(n), np.full(P, -np.inf), np.zeros(P)]),
        np.concatenate([np.ones(n), np.zeros(P), np.full(P, np.inf)]),
    )


def solve_by_osqp(problem: PacingProblem, start: NDArray[Any], effort: Effort) -> Solution:
    """Solve by OSQP (operator splitting) to 1e-7, warm-started, reproducibly.

    A `ConvergenceWarning` is given where it says that it did not solve the problem.
    """
    import osqp

    _check(problem, "osqp")
    scale = problem.gradient_scale(start)
    program = slack_program(problem, scale)
    n, P = len(start), len(program.linear) - len(start)
    solver = osqp.OSQP()
    try:
        with _words_to_stderr():
            solver.setup(
                *program,
                eps_abs=1e-7,
                eps_rel=1e-7,
                max_iter=50_000,
                # By default its step adapts to the time that iterations take: not reproducible.
                adaptive_rho_interval=50,
                polishing=True,
                verbose=False,
            )
    except (osqp.OSQPException, ValueError) as error:  # such as of matrices that rounding bent
        return _finish(None, None, scale, start, 0, False, str(error))
    violation = np.maximum(program.rows[n : n + P, :n] @ start.astype(np.float64), 0)
    solver.warm_start(x=np.concatenate([start, violation]))
    solution = solver.solve(raise_error=False)
    solved = solution.info.status_val == 1
    iterations, status = int(solution.info.iter), str(solution.info.status)
    duals = solution.y[n : n + P]
    return _finish(solution.x[:n], duals, scale, start, iterations, solved, status)


@contextmanager
def _words_to_stderr() -> Iterator[None]:
    """Send what compiled code writes to standard output, which may be JSON, to standard error."""
    library = ctypes.CDLL(None)
    kept = os.dup(1)
    try:
        library.fflush(None)
        os.dup2(2, 1)
        yield
    finally:
        library.fflush(None)
        os.dup2(kept, 1)
        os.close(kept)


def solve_by_cvxpy(problem: PacingProblem, start: NDArray[Any], effort: Effort) -> Solution:
    """Solve by cvxpy's Clarabel (interior point); `start` only gives the dtype.

    A `ConvergenceWarning` is given where it says that it did not solve the problem.
    """
    cvxpy: Any = importlib.import_module("cvxpy")  # its types are incomplete
    _check(problem, "cvxpy")
    scale = problem.gradient_scale(start)
    pairs, weights = problem.listed_pairs
    v = cvxpy.Variable(len(start))
    # Positive semidefinite by construction, which rounding may hide from a test.
    matrix = cvxpy.psd_wrap(problem.matrix() / scale)
    objective = cvxpy.quad_form(v, matrix) - (problem.linear / scale).astype(np.float64) @ v
    constraints = [v >= 0, v <= 1]
    if len(pairs):
        slack = cvxpy.Variable(len(pairs), nonneg=True)
        constraints.append(v[pairs[:, 0]] - v[pairs[:, 1]] <= slack)
        objective += (weights / scale) @ slack
    program = cvxpy.Problem(cvxpy.Minimize(objective), constraints)
    with warnings.catch_warnings():
        # Its own warning of an inaccurate solution is replaced by ours.
        warnings.simplefilter("ignore", UserWarning)
        program.solve(solver=cvxpy.CLARABEL)
    iterations = int(program.solver_stats.num_iters or 0)
    solved = program.status == cvxpy.OPTIMAL
    duals = constraints[-1].dual_value if len(pairs) else np.zeros(0)
    return _finish(v.value, duals, scale, start, iterations, solved, program.status)


def _check(problem: PacingProblem, solver: str) -> None:
    check_convex(solver, problem.convex)
    check_listed(problem, f"qp_solver={solver!r}")
    n = len(problem.losses)
    if n > LARGEST:
        raise InputError(
            f"qp_solver={solver!r} takes at most {LARGEST} samples, not {n}; use "
            "qp_solver='fista', which has no limit"
        )


def _finish(
    v: NDArray[np.float64] | None,
    duals: NDArray[np.float64] | None,
    scale: float,
    start: NDArray[Any],
    n_iter: int,
    solved: bool,
    status: str,
) -> Solution:
    if not solved:
        warnings.warn(
            f"the solver of the pacing step stopped with status {status!r}; what it returned is "
            "used where it is better than the start; use qp_solver='fista'",
            ConvergenceWarning,
            stacklevel=4,
        )
    if v is None or duals is None or not np.isfinite(v).all():
        return Solution(start, n_iter, False, None)
    return Solution(np.clip(v, 0, 1).astype(start.dtype), n_iter, solved, scale * duals)
