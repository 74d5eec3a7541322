import dataclasses

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cppcl.curriculum.pairs import ExplicitPairs
from cppcl.learning.graph import Laplacian
from cppcl.optim.pacing.certificate import kkt_residual
from cppcl.optim.pacing.coupling import GraphCoupling
from cppcl.optim.pacing.problem import CurriculumTerm, PacingProblem
from cppcl.optim.pacing.step import update_pacing

K, L = 5, 8


def problem_and_exact_solution(seed, regularizer, beta, mu, gamma):
    """A problem, and its solution by an interior point on the program with slack variables."""
    rng = np.random.default_rng(seed)
    graph = Laplacian.from_labels(rng.integers(0, 3, K), np.arange(L) % 3)
    C = rng.standard_normal((K + L, 4))
    losses, E = rng.random(K + L) + 0.05, rng.random(K + L) + 0.5
    v = cp.Variable(K + L)
    M = graph.apply(np.eye(K + L)) * (C @ C.T)
    a, b = (losses + gamma / 2, np.ones_like(E)) if regularizer == "B" else (losses, 1 / E)
    objective = cp.quad_form(v, cp.psd_wrap(np.diag(a) + beta * M)) - gamma * b @ v
    terms = []
    for rows in (slice(0, K), slice(K, K + L)):
        n = rows.stop - rows.start
        pairs = np.array([rng.permutation(n)[:2] for _ in range(10)])
        terms.append(CurriculumTerm(rows, ExplicitPairs(pairs, n), mu))
        objective += mu * cp.sum(cp.pos(v[rows][pairs[:, 0]] - v[rows][pairs[:, 1]]))
    accuracy = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-11)
    program = cp.Problem(cp.Minimize(objective), [v >= 0, v <= 1])
    program.solve(solver=cp.CLARABEL, **accuracy)
    problem = PacingProblem(losses, regularizer, gamma, E, GraphCoupling(graph, C), beta, terms)
    return problem, np.clip(v.value, 0, 1)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 999),
    regularizer=st.sampled_from(["A", "B"]),
    beta=st.sampled_from([0.0, 0.3]),
    mu=st.sampled_from([0.02, 0.3, 5.0]),
    gamma=st.sampled_from([0.3, 1.0]),
    sample=st.integers(0, K + L - 1),
    sign=st.sampled_from([-1, 1]),
)
def test_zero_at_the_solution_and_positive_away_from_it(
    seed, regularizer, beta, mu, gamma, sample, sign
):
    problem, v = problem_and_exact_solution(seed, regularizer, beta, mu, gamma)
    assert kkt_residual(problem, v) < 1e-5
    away = v.copy()
    away[sample] = np.clip(v[sample] + 0.1 * sign, 0, 1)
    assume(abs(away[sample] - v[sample]) > 0.05)
    assert kkt_residual(problem, away) > 2e-2


def test_multipliers_between_their_bounds_are_found_by_search():
    # Five equal variables tied in a chain: only multipliers strictly inside [0, mu] certify it.
    losses = np.array([0.1, 0.4, 0.2, 0.8, 1.0])
    pairs = ExplicitPairs(np.column_stack([np.arange(4), np.arange(1, 5)]), 5)
    problem = PacingProblem(losses, "B", 1.0, curricula=[CurriculumTerm(slice(0, 5), pairs, 3.0)])
    v = np.full(5, 1 / (1 + 2 * losses.mean()))
    assert kkt_residual(problem, v) < 1e-6
    # No iterations: the multipliers that the smoothed hinge suggests are not those.
    assert kkt_residual(problem, v, max_iter=0) > 0.1
    # The exact ones balance each sample's gradient, 2 (l + 1/2) v - 1, along the chain.
    exact = np.cumsum(1 - (2 * losses + 1) * v)[:-1]
    assert 0 < exact.min() < exact.max() < 3
    assert kkt_residual(problem, v, exact, max_iter=0) < 1e-12
    assert kkt_residual(problem, v, 0.5 * exact, max_iter=0) > 0.1
    weak = [CurriculumTerm(slice(0, 5), pairs, 0.1)]
    assert kkt_residual(dataclasses.replace(problem, curricula=weak), v) > 0.1


def test_hand_computed_residual():
    # Gradient 2 (l + gamma / 2) v - gamma = 2.4 - 1 at v = 0.8; its largest term is 2.4.
    problem = PacingProblem(np.array([1.0]), "B", 1.0)
    assert kkt_residual(problem, np.array([0.8])) == pytest.approx(1.4 / 2.4)
    assert kkt_residual(problem, np.array([1 / 3])) == pytest.approx(0, abs=1e-12)
    # At v = 0 the box lets only the decrease through.
    assert kkt_residual(problem, np.array([0.0])) == pytest.approx(1.0)


def test_the_normal_cone_of_the_box_counts():
    # Regulariser A at a small loss: the gradient is negative, and v = 1 is optimal.
    problem = PacingProblem(np.array([0.1]), "A", 1.0)
    assert kkt_residual(problem, np.array([1.0])) == 0
    assert kkt_residual(problem, np.array([0.9])) == pytest.approx(0.1)


def test_a_violated_and_a_kept_pair_have_no_freedom():
    losses = np.array([0.1, 1.0])
    pairs = ExplicitPairs(np.array([[0, 1]]), 2)
    problem = PacingProblem(losses, "B", 1.0, curricula=[CurriculumTerm(slice(0, 2), pairs, 0.05)])
    # 2 (l + 1/2) v = 1 - mu for the violating one, 1 + mu for the other.
    v = np.array([0.95 / 1.2, 1.05 / 3.0])
    assert kkt_residual(problem, v) < 1e-12
    free = problem.separable_solution()
    assert kkt_residual(problem, free) == pytest.approx(0.05)
    kept = dataclasses.replace(
        problem,
        curricula=[CurriculumTerm(slice(0, 2), ExplicitPairs(np.array([[1, 0]]), 2), 0.05)],
    )
    assert kkt_residual(kept, free) < 1e-12


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 999), power=st.integers(-20, 20))
def test_scale_of_the_objective_does_not_matter(seed, power):
    rng = np.random.default_rng(seed)
    losses, v, factor = rng.random(6), rng.random(6), 2.0**power
    v[1] = v[0]
    pairs = ExplicitPairs(np.array([[0, 1], [2, 3]]), 6)

    def residual(factor):
        term = CurriculumTerm(slice(0, 6), pairs, 0.2 * factor)
        problem = PacingProblem(losses * factor, "B", 0.7 * factor, curricula=[term])
        return kkt_residual(problem, v)

    assert residual(factor) == pytest.approx(residual(1.0), rel=1e-9)


def test_curricula_that_do_not_list_their_pairs_are_certified_by_their_smoothed_hinge():
    losses = np.array([0.1, 1.0, 0.5])
    pairs = ExplicitPairs(np.array([[0, 1], [2, 1]]), 3)

    class Unlisted:
        n_samples, value, degree = 3, pairs.value, pairs.degree
        smoothed_gradient, curvature = pairs.smoothed_gradient, pairs.curvature

    def solved(curriculum):
        term = CurriculumTerm(slice(0, 3), curriculum, 2.0)
        problem = PacingProblem(losses, "B", 1.0, curricula=[term])
        return update_pacing(problem, start=np.ones(3), tol=1e-8)

    unlisted = solved(Unlisted())
    np.testing.assert_allclose(unlisted.v, solved(pairs).v, atol=1e-3)
    assert unlisted.kkt < 1e-6
    term = CurriculumTerm(slice(0, 3), Unlisted(), 2.0)
    problem = PacingProblem(losses, "B", 1.0, curricula=[term])
    assert kkt_residual(problem, np.array([0.9, 0.3, 0.6])) > 0.1


def test_without_pacing_there_is_nothing_to_certify():
    assert kkt_residual(PacingProblem(np.ones(3), "none", 1.0), np.ones(3)) == 0
    assert kkt_residual(PacingProblem(np.zeros(0), "B", 1.0), np.zeros(0)) == 0
