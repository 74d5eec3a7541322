"""The proximal solver of the pacing step against isotonic regression, and its own promises."""

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

from cppcl.curriculum.pairs import ExplicitPairs
from cppcl.graph import Laplacian
from cppcl.optim.pacing import CurriculumTerm, GraphCoupling, PacingProblem, update_pacing


def chained(n, mu, regularizer="B", seed=0):
    """Independent samples in one total order, and the losses that it contradicts at random."""
    rng = np.random.default_rng(seed)
    losses, order = rng.random(n) ** 2 * 3, rng.permutation(n)
    pairs = ExplicitPairs(np.column_stack([order[:-1], order[1:]]), n)
    term = CurriculumTerm(slice(0, n), pairs, mu)
    return PacingProblem(losses, regularizer, 1.0, curricula=[term]), order


@pytest.mark.parametrize("regularizer", ["A", "B"])
def test_a_total_order_that_outweighs_losses_is_isotonic_regression(regularizer):
    problem, order = chained(60, 1e3, regularizer)
    result = update_pacing(problem, start=np.ones(60), tol=1e-9)
    curvature = problem.quadratic()
    target = problem.linear() / (2 * curvature)
    isotonic = IsotonicRegression(y_min=0, y_max=1).fit(
        np.arange(60), target[order], sample_weight=curvature[order]
    )
    expected = isotonic.predict(np.arange(60))
    assert np.unique(expected.round(6)).size > 5
    np.testing.assert_allclose(result.v[order], expected, atol=1e-6)
    assert result.converged


def test_light_pairs_only_lean_on_their_samples():
    # Each sample's pairs are too light to make it equal to any other.
    problem, order = chained(60, 1e-4)
    result = update_pacing(problem, start=np.ones(60), tol=1e-9)
    free = problem.separable_solution()
    violated = np.flatnonzero(free[order[:-1]] > free[order[1:]])
    gradient = np.zeros(60)
    np.add.at(gradient, order[violated], 1e-4)
    np.add.at(gradient, order[violated + 1], -1e-4)
    np.testing.assert_allclose(result.v, free - gradient / (2 * problem.quadratic()), atol=1e-9)


def large(beta=1.0, n_atoms=20):
    rng = np.random.default_rng(3)
    sizes = 100, 300
    labels = [np.arange(n) % 10 for n in sizes]
    graph = Laplacian.from_labels(*labels)
    rows = slice(0, 100), slice(100, 400)
    terms = []
    for of_side, n in zip(rows, sizes, strict=True):
        pairs = rng.integers(0, n, (2000, 2))
        pairs = pairs[pairs[:, 0] != pairs[:, 1]]
        terms.append(CurriculumTerm(of_side, ExplicitPairs(pairs, n), 0.02))
    coupling = GraphCoupling(graph, rng.standard_normal((400, n_atoms)) / 4)
    return PacingProblem(rng.random(400), "B", 0.5, None, coupling, beta, terms)


@pytest.mark.parametrize("beta", [0.0, 1.0, 100.0])
def test_momentum_survives_inexact_proximal_steps(beta):
    problem = large(beta)
    for tol in (1e-3, 1e-6, 1e-9):
        result = update_pacing(problem, start=np.ones(400), tol=tol)
        assert result.converged
        assert result.kkt <= tol
        assert result.n_iter < 400


def test_the_same_problem_gives_the_same_bytes():
    once, again = (update_pacing(large(), start=np.ones(400)) for _ in range(2))
    assert once.v.tobytes() == again.v.tobytes()
    assert once.multipliers.tobytes() == again.multipliers.tobytes()


def test_a_solver_that_is_stopped_says_so_and_does_not_worsen_the_start():
    problem = large()
    start = np.full(400, 0.3)
    stopped = update_pacing(problem, start=start, max_iter=2)
    assert not stopped.converged
    assert stopped.n_iter == 2
    assert stopped.objective < problem.value(start)
    assert stopped.kkt > 1e-6


def test_float32_losses_are_solved_as_exactly_as_float32_can_tell():
    problem = large()
    double = update_pacing(problem, start=np.ones(400), tol=1e-9)
    codes = problem.coupling._codes.astype(np.float32)
    labels = np.arange(100) % 10, np.arange(300) % 10
    graph = Laplacian.from_labels(*labels, dtype=np.float32)
    single = PacingProblem(
        problem.losses.astype(np.float32),
        "B",
        0.5,
        None,
        GraphCoupling(graph, codes),
        1.0,
        problem.curricula,
    )
    result = update_pacing(single, start=np.ones(400, np.float32))
    assert result.v.dtype == np.float32
    assert result.converged
    np.testing.assert_allclose(result.v, double.v, atol=1e-5)
