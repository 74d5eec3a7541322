"""The mixed-integer pacing step against all selections tried one by one."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cppcl.curriculum.pairs import ExplicitPairs
from cppcl.errors import InputError
from cppcl.learning.graph import Laplacian
from cppcl.optim.pacing import binary as pacing_binary
from cppcl.optim.pacing.coupling import GraphCoupling, PrintedCoupling
from cppcl.optim.pacing.problem import CurriculumTerm, PacingProblem
from cppcl.optim.pacing.step import update_pacing


def problem(seed, n_sketches, n_images, *, beta=0.3, mu=0.2, coupling=GraphCoupling, gamma=0.6):
    rng = np.random.default_rng(seed)
    n = n_sketches + n_images
    graph = Laplacian.from_labels(
        np.r_[0, rng.integers(0, 3, n_sketches - 1)], np.r_[0, rng.integers(0, 3, n_images - 1)]
    )
    pairs = rng.integers(0, n_images, (8, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    term = CurriculumTerm(slice(n_sketches, n), ExplicitPairs(pairs, n_images), mu)
    return PacingProblem(
        losses=rng.random(n),
        regularizer="A",
        gamma=gamma,
        group_scale=rng.random(n) + 0.5,
        coupling=coupling(graph, rng.standard_normal((n, 3))),
        beta=beta,
        curricula=[term] if mu else [],
    )


def brute_force(paced):
    selections = itertools.product([0.0, 1.0], repeat=len(paced.losses))
    return min(paced.value(np.array(v)) for v in selections)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 999),
    beta=st.sampled_from([0.0, 0.1, 1.0]),
    mu=st.sampled_from([0.0, 0.05, 0.5]),
    coupling=st.sampled_from([GraphCoupling, PrintedCoupling]),
    sizes=st.sampled_from([(1, 3), (3, 6)]),
)
def test_selections_of_few_samples_are_optimal(seed, beta, mu, coupling, sizes):
    paced = problem(seed, *sizes, beta=beta, mu=mu, coupling=coupling)
    result = update_pacing(paced, start=np.ones(sum(sizes)), selection="binary")
    assert result.selection == "binary"
    assert set(result.v.tolist()) <= {0.0, 1.0}
    assert result.objective == pytest.approx(paced.value(result.v))
    assert result.objective == pytest.approx(brute_force(paced))
    assert result.kkt == 0
    assert (result.n_iter, result.converged) == (0, True)


def test_enumeration_in_chunks_is_optimal_at_fifteen_samples(monkeypatch):
    monkeypatch.setattr(pacing_binary, "CHUNK", 1000)
    paced = problem(1, 5, 10)
    result = update_pacing(paced, start=np.ones(15), selection="binary")
    assert 0 < result.v.sum() < 15
    assert result.objective == pytest.approx(brute_force(paced))


def test_without_graph_and_curricula_samples_below_a_threshold_are_selected():
    losses, E = np.array([0.1, 0.5, 0.9, 0.3]), np.array([1.0, 1.0, 1.0, 4.0])
    paced = PacingProblem(losses, "A", 0.6, group_scale=E)
    result = update_pacing(paced, start=np.ones(4, np.float32), selection="binary")
    # The rule of the paper: select where the loss is below gamma / E.
    np.testing.assert_array_equal(result.v, [1, 1, 0, 0])
    assert result.v.dtype == np.float32
    relaxed = update_pacing(paced, start=np.ones(4))
    assert relaxed.selection == "relaxed"
    np.testing.assert_allclose(relaxed.v, [1, 0.6, 1 / 3, 0.25])


def test_the_heuristic_is_near_the_optimum_and_no_single_change_improves_it(monkeypatch):
    monkeypatch.setattr(pacing_binary, "ENUMERATED", 0)
    optimal = 0
    for seed in range(30):
        paced = problem(seed, 4, 6, beta=0.5)
        start = np.random.default_rng(seed).integers(0, 2, 10).astype(float)
        result = update_pacing(paced, start=start, selection="binary")
        least = brute_force(paced)
        assert result.objective <= paced.value(start) + 1e-12
        for p in range(10):
            changed = result.v.copy()
            changed[p] = 1 - changed[p]
            assert paced.value(changed) >= result.objective - 1e-10
        assert result.kkt == pytest.approx(0, abs=1e-10)
        assert result.objective <= least + 0.1 * abs(least) + 1e-12
        optimal += bool(np.isclose(result.objective, least))
    assert optimal >= 27


def test_the_best_threshold_is_found():
    paced = problem(3, 4, 8)
    Q, c = pacing_binary._binary_form(paced)
    relaxed = np.random.default_rng(0).random(12)
    v = pacing_binary._best_threshold(Q, c, relaxed)
    by_threshold = [paced.value((relaxed > t).astype(float)) for t in [-1, *relaxed]]
    assert paced.value(v) == pytest.approx(min(by_threshold))


def test_the_residual_tells_what_one_change_would_bring():
    losses = np.array([0.1, 0.5])
    paced = PacingProblem(losses, "A", 0.6)
    Q, c = pacing_binary._binary_form(paced)
    changes = pacing_binary._changes(Q.diagonal(), c, Q @ np.array([0.0, 1.0]), np.array([0.0, 1]))
    np.testing.assert_allclose(changes, [0.1 - 0.6, 0.6 - 0.5])


@pytest.mark.parametrize("regularizer", ["B", "none"])
def test_other_regularisers_have_no_binary_form(regularizer):
    with pytest.raises(InputError, match="use regularizer='A'"):
        update_pacing(
            PacingProblem(np.ones(2), regularizer, 1.0), start=np.ones(2), selection="binary"
        )


def test_too_many_coupled_samples_are_refused(monkeypatch):
    monkeypatch.setattr(pacing_binary, "LARGEST", 8)
    with pytest.raises(InputError, match="at most 8 samples with a graph or curricula, not 9"):
        update_pacing(problem(0, 3, 6), start=np.ones(9), selection="binary")
    free = PacingProblem(np.linspace(0, 1, 9), "A", 0.5)
    assert update_pacing(free, start=np.ones(9), selection="binary").v.sum() == 4


def test_an_unknown_selection_is_named():
    with pytest.raises(InputError, match="selection='hard' is not one of"):
        update_pacing(PacingProblem(np.ones(2), "A", 1.0), start=np.ones(2), selection="hard")
