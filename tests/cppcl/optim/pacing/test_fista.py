"""The proximal solver of the pacing step against isotonic regression, and its own promises."""

import dataclasses

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

from cppcl.curriculum.pairs import ExplicitPairs
from cppcl.learning.graph import Laplacian
from cppcl.optim.pacing.coupling import GraphCoupling
from cppcl.optim.pacing.kernels import disorder
from cppcl.optim.pacing.problem import CurriculumTerm, PacingProblem
from cppcl.optim.pacing.step import update_pacing


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
    curvature = problem.quadratic
    target = problem.linear / (2 * curvature)
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
    np.testing.assert_allclose(result.v, free - gradient / (2 * problem.quadratic), atol=1e-9)


def large(beta=1.0, regularizer="B", seed=0):
    """Classes of similar codes, and most pairs within them."""
    rng = np.random.default_rng(seed)
    sizes, n_classes, n_pairs = (100, 400), 5, 9000
    labels = [np.arange(sizes[0]) % n_classes, rng.integers(0, n_classes, sizes[1])]
    rows = slice(0, 100), slice(100, 500)
    terms, losses = [], []
    for of_side, y in zip(rows, labels, strict=True):
        scores = rng.random(len(y))
        losses.append(np.exp(0.7 * rng.standard_normal(len(y)) - 1 - 0.8 * scores))
        harder, easier = np.nonzero((y[:, None] == y) & (scores[:, None] < scores))
        chosen = rng.permutation(len(harder))[: n_pairs * len(y) // 500]
        pairs = ExplicitPairs(np.column_stack([harder, easier])[chosen], len(y))
        terms.append(CurriculumTerm(of_side, pairs, 0.08 * len(y) / len(pairs)))
    centres = rng.standard_normal((n_classes, 30)) * (rng.random((n_classes, 30)) < 0.2)
    noise = rng.standard_normal((500, 30)) * (rng.random((500, 30)) < 0.2)
    codes = centres[np.concatenate(labels)] + 0.5 * noise
    codes /= 2 * np.maximum(np.linalg.norm(codes, axis=1, keepdims=True), 1e-9)
    coupling = GraphCoupling(Laplacian.from_labels(*labels), codes)
    return PacingProblem(np.concatenate(losses), regularizer, 0.16, None, coupling, beta, terms)


@pytest.mark.parametrize("regularizer", ["A", "B"])
@pytest.mark.parametrize(("beta", "iterations"), [(0.0, 20), (1.0, 40), (20.0, 100)])
def test_momentum_survives_inexact_proximal_steps(beta, iterations, regularizer):
    for seed in range(6):
        problem = large(beta, regularizer, seed)
        for tol in (1e-3, 1e-6, 1e-9):
            result = update_pacing(problem, start=np.ones(500), tol=tol)
            assert result.converged
            assert result.kkt <= tol
            assert result.n_iter < iterations


def test_disorder_is_what_multipliers_do_not_account_for():
    pairs = np.array([[0, 1], [1, 2], [0, 2], [2, 1]])
    caps, v = np.full(4, 0.5), np.array([0.3, 0.2, 0.6])
    # 0 is above 1 and its multiplier at the cap; 1 and 0 are below 2 with none; 2 is above 1.
    assert disorder(pairs, caps, np.array([0.5, 0, 0, 0.5]), v) == 0
    assert disorder(pairs, caps, np.array([0.4, 0, 0, 0.5]), v) == pytest.approx(0.1)
    assert disorder(pairs, caps, np.array([0.4, 0, 0.1, 0.5]), v) == pytest.approx(0.3)
    assert disorder(pairs, caps, np.array([0.5, 0, 0, 0.0]), v) == pytest.approx(0.4)


def test_a_solver_that_is_stopped_says_so_and_does_not_worsen_the_start():
    problem = large()
    start = np.full(500, 0.3)
    stopped = update_pacing(problem, start=start, max_iter=2)
    assert not stopped.converged
    assert stopped.n_iter == 2
    assert stopped.objective < problem.value(start)
    assert stopped.kkt > 1e-6


def test_float32_is_solved_as_exactly_as_it_can_tell():
    problem = large()
    double = update_pacing(problem, start=np.ones(500), tol=1e-9)
    coupling = GraphCoupling(
        problem.coupling._laplacian, problem.coupling._codes.astype(np.float32)
    )
    single = dataclasses.replace(
        problem, losses=problem.losses.astype(np.float32), coupling=coupling
    )
    result = update_pacing(single, start=np.ones(500, np.float32))
    assert result.v.dtype == np.float32
    assert result.converged
    np.testing.assert_allclose(result.v, double.v, atol=1e-5)
