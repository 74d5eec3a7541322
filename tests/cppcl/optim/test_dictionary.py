import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cppcl.optim import dictionary as module
from cppcl.optim.dictionary import (
    project_atoms,
    replace_unused_atoms,
    unused_atoms,
    update_dictionary,
)


def small_problem(seed, n=15, m=8, N=6, dtype=np.float64):
    rng = np.random.default_rng(seed)
    codes = rng.standard_normal((n, N)) * (rng.random((n, N)) < 0.5)
    features = codes @ rng.standard_normal((N, m)) + 0.1 * rng.standard_normal((n, m))
    start = project_atoms(rng.standard_normal((N, m)))
    arrays = (features, codes, rng.random(n), start)
    return tuple(array.astype(dtype) for array in arrays)


def loss(features, codes, v, D):
    return float(v**2 @ ((features - codes @ D) ** 2).sum(axis=1))


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 999), N=st.integers(1, 30), max_iter=st.integers(1, 40))
def test_a_dictionary_step_descends_within_the_ball(seed, N, max_iter):
    features, codes, v, start = small_problem(seed, N=N)
    D = update_dictionary(features, codes, v, start=start, max_iter=max_iter).dictionary
    before = loss(features, codes, v, start)
    assert loss(features, codes, v, D) <= before * (1 + 1e-9)
    assert np.linalg.norm(D, axis=1).max() <= 1 + 1e-9


def test_an_interior_solution_is_least_squares():
    features, codes, v, start = small_problem(1, n=40)
    features = features * 0.05
    D = update_dictionary(features, codes, v, start=start, max_iter=2000, tol=1e-12).dictionary
    expected = np.linalg.lstsq(v[:, None] * codes, v[:, None] * features)[0]
    assert np.linalg.norm(expected, axis=1).max() < 1
    np.testing.assert_allclose(D, expected, atol=1e-8)


def test_no_codes_leave_the_dictionary_alone():
    features, codes, v, start = small_problem(2)
    result = update_dictionary(features, codes * 0, v, start=start)
    assert result.converged
    np.testing.assert_array_equal(result.dictionary, start)


def test_momentum_that_overshoots_is_replaced_by_plain_steps(monkeypatch):
    features, codes, v, start = small_problem(4)
    honest = module._Moments.value
    tried = []

    def first_result_looks_worse(self, D):
        tried.append(D)
        return np.inf if len(tried) == 2 else honest(self, D)

    monkeypatch.setattr(module._Moments, "value", first_result_looks_worse)
    D = update_dictionary(features, codes, v, start=start, max_iter=3, device="cpu:0").dictionary
    assert len(tried) == 3
    assert not np.array_equal(D, tried[1].numpy())
    assert loss(features, codes, v, D) < loss(features, codes, v, start)
    monkeypatch.setattr(module._Moments, "value", lambda self, D: tried.append(D) or len(tried))
    np.testing.assert_array_equal(
        update_dictionary(features, codes, v, start=start, device="cpu:0").dictionary, start
    )


def test_few_samples_and_their_moments_give_one_dictionary(monkeypatch):
    features, codes, v, start = small_problem(5, N=40, n=12)
    few = update_dictionary(features, codes, v, start=start, max_iter=2000, tol=1e-12)
    monkeypatch.setattr(module, "_Samples", module._Moments)
    many = update_dictionary(features, codes, v, start=start, max_iter=2000, tol=1e-12)
    assert loss(features, codes, v, few.dictionary) == pytest.approx(
        loss(features, codes, v, many.dictionary), abs=1e-9
    )
    np.testing.assert_allclose(few.dictionary, many.dictionary, atol=1e-6)


def test_sweeps_over_several_blocks_reach_the_minimum_that_gradient_steps_reach():
    features, codes, v, start = small_problem(4, n=300, N=150)
    swept, stepped = (
        update_dictionary(features, codes, v, start=start, device=where, max_iter=9000, tol=1e-12)
        for where in ("cpu", "cpu:0")
    )
    assert swept.converged
    assert swept.n_iter < stepped.n_iter
    np.testing.assert_allclose(swept.dictionary, stepped.dictionary, atol=1e-7)
    few = update_dictionary(features, codes, v, start=start)
    assert few.n_iter <= 10
    before, after, least = (
        loss(features, codes, v, D) for D in (start, few.dictionary, swept.dictionary)
    )
    assert after - least < 0.01 * (before - least)


def test_unused_atoms_are_those_without_codes():
    codes = np.array([[1.0, 0, 1e-9], [0.5, 0, 0]])
    assert unused_atoms(codes).tolist() == [1, 2]


def test_replacement_takes_the_worst_samples_and_changes_no_loss():
    features, codes, v, start = small_problem(5, N=40, n=30)
    codes[:, [3, 7, 8]] = 0
    losses = v * ((features - codes @ start) ** 2).sum(axis=1)
    rng = np.random.default_rng(0)
    D = replace_unused_atoms(start, codes, features, losses, rng=rng)
    # 5 % of 40 atoms may be replaced at once.
    assert np.flatnonzero((start != D).any(axis=1)).tolist() == [3, 7]
    assert loss(features, codes, v, D) == pytest.approx(loss(features, codes, v, start))
    worst = features[np.argsort(-losses)[:2]]
    worst /= np.linalg.norm(worst, axis=1, keepdims=True)
    np.testing.assert_allclose(np.linalg.norm(D[[3, 7]], axis=1), 1)
    assert (np.einsum("nm,nm->n", D[[3, 7]], worst) > 0.999).all()


def test_replacement_skips_empty_samples():
    features = np.array([[0.0, 0.0], [1.0, 0.0]])
    codes = np.array([[0.0, 0.0], [1.0, 0.0]])
    start = np.eye(2)
    rng = np.random.default_rng(0)
    D = replace_unused_atoms(start, codes, features, np.array([2.0, 1.0]), rng=rng)
    np.testing.assert_array_equal(D, start)
