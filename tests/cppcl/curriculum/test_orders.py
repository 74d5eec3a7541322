import tracemalloc

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cppcl.curriculum import AllPairs, ChainedPairs, ExplicitPairs
from cppcl.curriculum.semiorder import Semiorder, order_by_scores
from cppcl.errors import InputError
from cppcl.optim.pacing.problem import CurriculumTerm, PacingProblem
from cppcl.optim.pacing.step import update_pacing


def random_order(seed: int, n: int = 14) -> tuple[Semiorder, np.ndarray]:
    """Scores with ties and gaps in up to three classes; variables with ties."""
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 8, n).astype(float)
    scores[rng.random(n) < 0.1] = np.nan
    order = order_by_scores(
        scores,
        rng.integers(0, 3, n),
        delta=float(rng.choice([0, 1.5, 3])),
        delta_unit="absolute",
        scope=str(rng.choice(["global", "within_class"])),
    )
    v = rng.random(n)
    v[: n // 3] = np.round(v[: n // 3] * 4) / 4
    return order, rng.permutation(v)


def listed(order: Semiorder) -> ExplicitPairs:
    return ExplicitPairs(order.pairs(), order.n_samples)


seeds = st.integers(0, 2**20)


@given(seed=seeds, eps=st.sampled_from([1.0, 0.3, 1e-2, 1e-4]))
@settings(max_examples=80, deadline=None)
def test_all_pairs_equal_the_explicit_list(seed, eps):
    order, v = random_order(seed)
    whole, explicit = AllPairs(order), listed(order)
    assert whole.n_pairs == len(explicit) == explicit.n_pairs
    assert whole.value(v) == pytest.approx(explicit.value(v), rel=1e-12, abs=1e-12)
    value, gradient = whole.smoothed_gradient(v, eps)
    expected = explicit.smoothed_gradient(v, eps)
    assert value == pytest.approx(expected[0], rel=1e-9, abs=1e-11)
    np.testing.assert_allclose(gradient, expected[1], atol=1e-9)
    np.testing.assert_array_equal(whole.degree(), explicit.degree())
    np.testing.assert_allclose(whole.curvature(eps), explicit.curvature(eps))


@given(seed=seeds)
@settings(max_examples=60, deadline=None)
def test_the_chain_is_the_worst_violation_of_each_easier_sample(seed):
    order, v = random_order(seed)
    chain, pairs = ChainedPairs(order), order.pairs()
    worst = np.zeros(order.n_samples)
    for harder, easier in pairs:
        worst[easier] = max(worst[easier], v[harder] - v[easier])
    assert chain.value(v) == pytest.approx(worst.sum(), abs=1e-12)
    assert chain.n_pairs == len({int(easier) for _, easier in pairs})
    # In order where the explicit list is, and there alone.
    assert (chain.value(v) == 0) == (listed(order).value(v) == 0)


@given(seed=seeds, eps=st.sampled_from([1.0, 0.1, 1e-3]))
@settings(max_examples=60, deadline=None)
def test_the_smooth_chain_is_near_and_its_gradient_right(seed, eps):
    order, v = random_order(seed)
    chain = ChainedPairs(order)
    value, gradient = chain.smoothed_gradient(v, eps)
    assert abs(value - chain.value(v)) <= eps * chain.n_pairs + 1e-12
    h = 1e-6 * eps
    numeric = [
        (chain.smoothed_gradient(v + d, eps)[0] - chain.smoothed_gradient(v - d, eps)[0]) / (2 * h)
        for d in h * np.eye(len(v))
    ]
    # The second derivative jumps where the hinge begins and ends.
    np.testing.assert_allclose(gradient, numeric, atol=2e-4)
    assert gradient.sum() == pytest.approx(0, abs=1e-9)


@given(
    seed=seeds, kind=st.sampled_from([AllPairs, ChainedPairs]), eps=st.sampled_from([1.0, 0.05])
)
@settings(max_examples=60, deadline=None)
def test_curvature_bounds_the_change_of_the_gradient(seed, kind, eps):
    order, v = random_order(seed)
    curriculum = kind(order)
    step = 0.3 * eps * np.random.default_rng(seed).standard_normal(len(v))
    value, gradient = curriculum.smoothed_gradient(v, eps)
    moved, _ = curriculum.smoothed_gradient(v + step, eps)
    bound = value + gradient @ step + 0.5 * (curriculum.curvature(eps) * step) @ step
    assert moved <= bound + 1e-9
    assert moved >= value + gradient @ step - 1e-9, "not convex"


@pytest.mark.parametrize("kind", [AllPairs, ChainedPairs])
@pytest.mark.parametrize("seed", range(8))
def test_restriction_equals_restricting_the_list(kind, seed):
    order, v = random_order(seed)
    rows = np.random.default_rng(seed).permutation(order.n_samples)[:9]
    restricted = kind(order).restrict(rows)
    assert restricted.n_samples == 9
    found = {tuple(pair) for pair in restricted.admissible.pairs().tolist()}
    expected = {tuple(pair) for pair in listed(order).restrict(rows).pairs.tolist()}
    assert found == expected
    if kind is AllPairs:
        explicit = listed(order).restrict(rows)
        assert restricted.value(v[rows]) == pytest.approx(explicit.value(v[rows]))


@pytest.mark.parametrize("kind", [AllPairs, ChainedPairs, listed])
def test_single_precision_is_kept_and_wrong_arguments_are_named(kind):
    curriculum = kind(random_order(1)[0])
    assert curriculum.smoothed_gradient(np.ones(14, np.float32), 0.1)[1].dtype == np.float32
    with pytest.raises(InputError, match="eps=0"):
        curriculum.smoothed_gradient(np.ones(14), 0)
    with pytest.raises(InputError, match=r"must be an array of floating point of shape \(14,\)"):
        curriculum.value(np.ones(2))


@pytest.mark.parametrize("kind", [AllPairs, ChainedPairs, listed])
def test_without_admissible_pairs(kind):
    for scores in (np.ones(4), np.full(4, np.nan), np.zeros(0)):
        order = order_by_scores(scores, np.zeros(len(scores)), delta=0, scope="global")
        curriculum = kind(order)
        v = np.linspace(0, 1, len(scores))
        assert curriculum.n_pairs == 0
        assert curriculum.value(v) == 0
        assert not curriculum.smoothed_gradient(v, 0.1)[1].any()
        assert not curriculum.degree().any()
        assert not curriculum.curvature(0.1).any() or kind is ChainedPairs


def pacing(curriculum, losses, mu):
    return PacingProblem(
        losses, "B", 1.0, curricula=[CurriculumTerm(slice(0, len(losses)), curriculum, mu)]
    )


@pytest.mark.parametrize("seed", range(3))
def test_the_pacing_step_solves_all_pairs_as_it_solves_their_list(seed):
    order, _ = random_order(seed, n=30)
    losses = np.random.default_rng(seed).exponential(1, 30)
    smoothing = (1e-1, 1e-2, 1e-3, 1e-4)
    start = np.full(30, 0.5)
    whole = update_pacing(
        pacing(AllPairs(order), losses, 0.05), start=start, smoothing=smoothing, max_iter=5000
    )
    exact = update_pacing(pacing(listed(order), losses, 0.05), start=start, tol=1e-9)
    assert exact.kkt < 1e-7
    assert whole.objective == pytest.approx(exact.objective, abs=1e-4)
    np.testing.assert_allclose(whole.v, exact.v, atol=5e-3)
    # The pairs matter here.
    free = update_pacing(pacing(listed(order), losses, 1e-9), start=start)
    assert np.abs(free.v - exact.v).max() > 0.05


@pytest.mark.parametrize("mu", [0.1, 10.0])
def test_the_pacing_step_solves_the_chain_as_a_program_with_a_slack_a_sample(mu):
    order, _ = random_order(5, n=16)
    losses = np.random.default_rng(5).exponential(1, 16)
    v, slack = cp.Variable(16), cp.Variable(16)
    constraints = [v >= 0, v <= 1, slack >= 0]
    constraints += [v[int(i)] - v[int(j)] <= slack[int(j)] for i, j in order.pairs()]
    separable = cp.sum(cp.multiply(losses + 0.5, cp.square(v))) - cp.sum(v)
    program = cp.Problem(cp.Minimize(separable + mu * cp.sum(slack)), constraints)
    program.solve(solver="CLARABEL")
    found = update_pacing(
        pacing(ChainedPairs(order), losses, mu),
        start=np.full(16, 0.5),
        smoothing=(1e-1, 1e-2, 1e-3, 1e-4),
        max_iter=20_000,
    )
    assert found.objective == pytest.approx(program.value, abs=2e-3)
    np.testing.assert_allclose(found.v, v.value, atol=2e-2)
    free = update_pacing(pacing(ChainedPairs(order), losses, 1e-9), start=np.full(16, 0.5))
    assert np.abs(free.v - found.v).max() > 0.05


def test_two_hundred_thousand_samples_need_memory_for_the_samples_only():
    n = 200_000
    rng = np.random.default_rng(0)
    order = order_by_scores(rng.random(n), np.zeros(n, int), scope="global")
    assert order.n_pairs > 1e10
    AllPairs(order).smoothed_gradient(rng.random(n), 0.1)  # compiles
    v = rng.random(n)
    tracemalloc.start()
    for kind in (AllPairs, ChainedPairs):
        value, gradient = kind(order).smoothed_gradient(v, 0.1)
        assert value > 0
        assert gradient.sum() == pytest.approx(0, abs=1e-3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40e6
