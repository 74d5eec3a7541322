import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cppcl.curriculum.pairs import ExplicitPairs
from cppcl.errors import InputError
from cppcl.learning.graph import Laplacian
from cppcl.optim.pacing.certificate import kkt_residual
from cppcl.optim.pacing.coupling import GraphCoupling, PrintedCoupling
from cppcl.optim.pacing.problem import CurriculumTerm, PacingProblem, group_sizes
from cppcl.optim.pacing.step import update_pacing

K, L = 6, 9
ROWS = (slice(0, K), slice(K, K + L))


def small_problem(
    seed, regularizer="B", *, beta=0.4, mu=0.3, n_pairs=8, gamma=0.8, N=4, printed=False
):
    rng = np.random.default_rng(seed)
    graph = Laplacian.from_labels(rng.integers(0, 3, K), np.arange(L) % 3)
    terms = []
    for rows in ROWS:
        n = rows.stop - rows.start
        pairs = rng.integers(0, n, (n_pairs, 2))
        pairs = pairs[pairs[:, 0] != pairs[:, 1]]
        terms.append(CurriculumTerm(rows, ExplicitPairs(pairs, n), mu))
    return PacingProblem(
        losses=rng.random(K + L),
        regularizer=regularizer,
        gamma=gamma,
        group_scale=rng.random(K + L) + 0.5,
        coupling=(PrintedCoupling if printed else GraphCoupling)(
            graph, rng.standard_normal((K + L, N))
        ),
        beta=beta,
        curricula=terms if n_pairs else (),
    )


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 999), beta=st.sampled_from([0.05, 1.0, 20.0]), mu=st.floats(0, 2))
def test_printed_coupling_never_increases_its_own_objective(seed, beta, mu):
    paced = small_problem(seed, beta=beta, mu=mu, printed=True)
    start = np.random.default_rng(seed).random(K + L)
    result = update_pacing(paced, start=start, max_iter=50)
    assert result.objective <= paced.value(start)
    assert result.objective == pytest.approx(paced.value(result.v))
    # Neither do single iterations, where there is no hinge to smooth.
    free = small_problem(seed, beta=beta, n_pairs=0, printed=True)
    v = start
    for _ in range(5):
        after = update_pacing(free, start=v, max_iter=1)
        assert after.objective < free.value(v)
        v = after.v


def test_printed_coupling_ends_at_a_stationary_point():
    paced = small_problem(3, beta=0.3, n_pairs=0, printed=True)
    result = update_pacing(paced, start=np.ones(K + L), tol=1e-9)
    assert result.converged
    assert result.kkt < 1e-6
    assert result.v.std() > 0.05


@pytest.mark.parametrize("solver", ["osqp", "cvxpy"])
def test_printed_coupling_is_refused_by_convex_solvers(solver):
    with pytest.raises(InputError, match="not convex"):
        update_pacing(small_problem(0, printed=True), start=np.ones(K + L), solver=solver)


@settings(deadline=None)
@given(
    losses=st.lists(st.floats(0, 50), min_size=1, max_size=8),
    gamma=st.floats(1e-3, 1e3),
)
def test_closed_form_of_regularizer_b(losses, gamma):
    losses = np.array(losses)
    v = update_pacing(PacingProblem(losses, "B", gamma), start=np.zeros_like(losses)).v
    np.testing.assert_allclose(v, gamma / (gamma + 2 * losses))


@settings(deadline=None)
@given(
    losses=st.lists(st.floats(0, 50), min_size=2, max_size=8),
    gamma=st.floats(1e-3, 1e3),
)
def test_closed_form_of_regularizer_a(losses, gamma):
    losses = np.array(losses)
    E = 0.5 + np.arange(len(losses))
    problem = PacingProblem(losses, "A", gamma, group_scale=E)
    v = update_pacing(problem, start=np.zeros_like(losses)).v
    np.testing.assert_allclose(v, np.minimum(1, gamma / np.maximum(2 * losses * E, 1e-6)))


@pytest.mark.parametrize("regularizer", ["B", "A"])
def test_closed_forms_agree_with_a_grid_search(regularizer):
    grid = np.linspace(0, 1, 100_001)
    for loss in (0.01, 0.3, 2.0):
        problem = PacingProblem(np.array([loss]), regularizer, 0.5)
        best = grid[np.argmin([problem.value(np.array([v])) for v in grid[::100]]) * 100]
        assert update_pacing(problem, start=np.zeros(1)).v[0] == pytest.approx(best, abs=2e-3)


def test_no_regularizer_selects_every_sample():
    problem = PacingProblem(np.ones(3), "none", 1.0)
    np.testing.assert_array_equal(update_pacing(problem, start=np.zeros(3)).v, 1)


@settings(max_examples=200, deadline=None)
@given(
    seed=st.integers(0, 9999),
    regularizer=st.sampled_from(["A", "B"]),
    beta=st.sampled_from([0.0, 0.5, 20.0]),
    mu=st.sampled_from([0.0, 0.02, 0.5, 20.0]),
    gamma=st.sampled_from([0.01, 1.0, 100.0]),
    zero_losses=st.booleans(),
)
def test_a_pacing_step_descends_in_the_box_to_a_certified_solution(
    seed, regularizer, beta, mu, gamma, zero_losses
):
    problem = small_problem(seed, regularizer, beta=beta, mu=mu, gamma=gamma)
    if zero_losses:
        problem = dataclasses.replace(problem, losses=problem.losses * (np.arange(K + L) % 3 > 0))
    start = np.random.default_rng(seed).random(K + L)
    result = update_pacing(problem, start=start, tol=1e-9)
    assert result.objective <= problem.value(start)
    assert result.objective == pytest.approx(problem.value(result.v))
    assert result.v.min() >= 0
    assert result.v.max() <= 1
    assert result.converged
    assert result.kkt < 1e-8
    # Multipliers and variables prove each other, without a search for better ones.
    if not problem.separable:
        _, weights = problem.listed_pairs
        assert (result.multipliers >= 0).all()
        assert (result.multipliers <= weights).all()
        certified = kkt_residual(problem, result.v, result.multipliers, tie=2e-9, max_iter=0)
        assert certified < 1e-8


class Unlisted:
    """A curriculum that does not list its pairs."""

    def __init__(self, pairs):
        self.n_samples, self.value, self.degree = pairs.n_samples, pairs.value, pairs.degree
        self.smoothed_gradient, self.curvature = pairs.smoothed_gradient, pairs.curvature


def unlisted(problem):
    terms = [CurriculumTerm(rows, Unlisted(pairs), mu) for rows, pairs, mu in problem.curricula]
    return dataclasses.replace(problem, curricula=terms)


def test_curricula_that_do_not_list_their_pairs_are_smoothed_as_finely_as_asked():
    problem = small_problem(1)
    exact = update_pacing(problem, start=np.full(K + L, 0.5), tol=1e-9)
    errors = []
    for smoothing in [(1e-1,), (1e-1, 1e-2), (1e-1, 1e-2, 1e-3, 1e-4)]:
        result = update_pacing(
            unlisted(problem), start=np.full(K + L, 0.5), smoothing=smoothing, max_iter=10_000
        )
        assert result.converged
        assert result.multipliers.size == 0
        errors.append(result.objective - exact.objective)
    # A smoothed hinge lies up to mu eps / 2 a pair below.
    n_pairs = sum(len(pairs) for _, pairs, _ in problem.curricula)
    assert errors[0] > 1e-4
    assert -1e-9 < errors[1] < 0.3 * n_pairs * 1e-2 / 2
    assert -1e-9 < errors[2] < 0.3 * n_pairs * 1e-4 / 2


def test_the_start_is_kept_where_smoothing_only_loses():
    problem = unlisted(small_problem(1))
    best = update_pacing(problem, start=np.full(K + L, 0.5), smoothing=(1e-2, 1e-4, 1e-5))
    coarse = update_pacing(problem, start=best.v, smoothing=(1.0,))
    np.testing.assert_array_equal(coarse.v, best.v)


def test_gradient_agrees_with_finite_differences_away_from_kinks():
    problem = unlisted(small_problem(2))
    v = np.random.default_rng(5).random(K + L)

    def smoothed(v):
        exact = dataclasses.replace(problem, curricula=()).value(v)
        return exact + sum(
            mu * pairs.smoothed_gradient(v[rows], 0.2)[0] for rows, pairs, mu in problem.curricula
        )

    gradient = problem.smoothed_gradient(v, 0.2)
    listed = small_problem(2).smoothed_gradient(v, 0.2)
    assert np.abs(gradient - listed).max() > 0.1
    for p in range(K + L):
        e = np.eye(K + L)[p] * 1e-6
        numeric = (smoothed(v + e) - smoothed(v - e)) / 2e-6
        assert gradient[p] == pytest.approx(numeric, rel=1e-5, abs=1e-7)
        # The curvature bounds that of the smoothed objective along every direction.
        assert problem.smoothed_gradient(v + e, 0.2)[p] - gradient[p] <= (
            1e-6 * problem.curvature(0.2)[p] + 1e-12
        )


def test_curriculum_orders_pacing_variables():
    # Sample 0 fits better, but the curriculum says that sample 1 is the easier one.
    losses = np.array([0.1, 1.0])
    pairs = ExplicitPairs(np.array([[0, 1]]), 2)
    free = update_pacing(PacingProblem(losses, "B", 1.0), start=np.zeros(2)).v
    assert free[0] > free[1] + 0.2
    term = CurriculumTerm(slice(0, 2), pairs, 10.0)
    ordered = PacingProblem(losses, "B", 1.0, curricula=[term])
    v = update_pacing(ordered, start=np.zeros(2)).v
    # Equal pacing of the pair: v = gamma / (gamma + 2 * mean loss).
    assert v == pytest.approx([1 / 2.1, 1 / 2.1], abs=1e-6)


def test_group_sizes_have_sample_mean_one():
    np.testing.assert_allclose(group_sizes(np.array([0, 0, 0, 1])), [1.2, 1.2, 1.2, 0.4])


def test_gamma_zero_is_refused_with_the_mend():
    with pytest.raises(InputError, match="regularizer='none'"):
        PacingProblem(np.ones(2), "B", 0.0)


def test_unknown_regularizer_is_refused():
    with pytest.raises(InputError, match="regularizer='C' is not one of"):
        PacingProblem(np.ones(2), "C", 1.0)
