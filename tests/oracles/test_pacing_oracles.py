"""The pacing step against quadratic programs solved by cvxpy."""

import cvxpy as cp
import numpy as np
import pytest

from cppcl.curriculum.pairs import ExplicitPairs
from cppcl.learning.graph import Laplacian
from cppcl.optim.pacing.coupling import GraphCoupling
from cppcl.optim.pacing.problem import CurriculumTerm, PacingProblem
from cppcl.optim.pacing.step import PACING_SOLVERS, update_pacing

K, L, N = 12, 20, 6


def solve(losses, regularizer, gamma, E, M, beta, terms):
    """The pacing problem as written in the paper, with slack variables, by an interior point."""
    v = cp.Variable(K + L)
    objective = cp.sum(cp.multiply(losses, cp.square(v))) + beta * cp.quad_form(v, cp.psd_wrap(M))
    if regularizer == "B":
        objective += gamma * cp.sum(cp.square(v) / 2 - v)
    else:
        objective -= gamma * cp.sum(cp.multiply(1 / E, v))
    constraints = [v >= 0, v <= 1]
    for rows, pairs, mu in terms:
        slack = cp.Variable(len(pairs))
        harder, easier = (v[rows][pairs[:, side]] for side in (0, 1))
        constraints += [harder - easier <= slack, slack >= 0]
        objective += mu * cp.sum(slack)
    problem = cp.Problem(cp.Minimize(objective), constraints)
    accuracy = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-11)
    value = problem.solve(solver=cp.CLARABEL, **accuracy)
    return v.value, value


# Largest errors of the variables and of the objective, and residual; ours can be asked for more.
TOLERANCES = {"fista": (1e-5, 1e-9, 1e-8), "osqp": (1e-4, 1e-6, 1e-4), "cvxpy": (1e-4, 1e-6, 1e-4)}


@pytest.mark.parametrize("solver", PACING_SOLVERS)
@pytest.mark.parametrize("regularizer", ["A", "B"])
@pytest.mark.parametrize("beta", [0.0, 0.5])
@pytest.mark.parametrize("mu", [0.0, 0.05, 2.0])
@pytest.mark.parametrize("gamma", [0.3, 3.0])
def test_pacing_agrees_with_an_interior_point_solver(solver, regularizer, beta, mu, gamma):
    rng = np.random.default_rng(7)
    labels = rng.integers(0, 4, K), rng.integers(0, 4, L)
    graph = Laplacian.from_labels(*labels)
    C = rng.standard_normal((K + L, N)) * 0.5
    losses, E = rng.random(K + L) + 0.05, rng.random(K + L) + 0.5
    terms, exact = [], []
    for rows in (slice(0, K), slice(K, K + L)):
        n = rows.stop - rows.start
        pairs = np.array([rng.permutation(n)[:2] for _ in range(15)])
        if mu:
            terms.append(CurriculumTerm(rows, ExplicitPairs(pairs, n), mu))
            exact.append((rows, pairs, mu))
    problem = PacingProblem(losses, regularizer, gamma, E, GraphCoupling(graph, C), beta, terms)
    result = update_pacing(problem, start=np.ones(K + L), solver=solver, tol=1e-9)
    M = graph.apply(np.eye(K + L)) * (C @ C.T)
    expected, value = solve(losses, regularizer, gamma, E, M, beta, exact)
    assert result.converged
    of_variables, of_objective, of_conditions = TOLERANCES[solver]
    assert np.abs(result.v - expected).max() < of_variables
    assert result.objective == pytest.approx(value, rel=of_objective)
    assert result.kkt < of_conditions
    if gamma < 1:  # at a large gamma every v is near 1 and agreement is empty
        assert expected.std() > 0.02
