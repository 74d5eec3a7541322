import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cppcl.errors import InputError
from cppcl.optim.dictionary import project_atoms, update_dictionary
from cppcl.optim.dictionary_dual import update_dictionary_dual


def small_problem(seed, n=40, m=8, N=6, size=1.0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    codes = rng.standard_normal((n, N)) * (rng.random((n, N)) < 0.5)
    # Atoms of different lengths: some constraints bind at the solution and others do not.
    truth = rng.standard_normal((N, m)) * np.linspace(0.05, 0.8, N)[:, None] * size
    features = codes @ truth + 0.1 * rng.standard_normal((n, m))
    start = project_atoms(rng.standard_normal((N, m)))
    arrays = (features, codes, rng.random(n) + 0.05, start)
    return tuple(array.astype(dtype) for array in arrays)


def loss(features, codes, v, D):
    return float(v**2 @ ((features - codes @ D) ** 2).sum(axis=1))


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 999),
    N=st.integers(1, 20),
    size=st.sampled_from([0.05, 1.0, 5.0, 100.0]),
)
def test_dual_equals_accelerated_projected_gradient(seed, N, size):
    features, codes, v, start = small_problem(seed, N=N, size=size, n=60)
    dual = update_dictionary_dual(features, codes, v, start=start)
    gradient = update_dictionary(features, codes, v, start=start, max_iter=50_000, tol=1e-13)
    assert dual.converged
    assert np.linalg.norm(dual.dictionary, axis=1).max() <= 1 + 1e-12
    assert np.abs(dual.dictionary - gradient.dictionary).max() < 1e-5
    of_dual, of_gradient = (loss(features, codes, v, r.dictionary) for r in (dual, gradient))
    assert of_dual == pytest.approx(of_gradient, rel=1e-7)
    assert of_dual <= loss(features, codes, v, start) * (1 + 1e-12)


def test_both_kinds_of_atoms_occur_and_an_interior_point_agrees():
    features, codes, v, start = small_problem(1)
    D = update_dictionary_dual(features, codes, v, start=start).dictionary
    norms = np.linalg.norm(D, axis=1)
    assert norms.min() < 0.9
    assert norms.max() == pytest.approx(1, abs=1e-9)
    X = cp.Variable(D.shape)
    error = cp.sum_squares(cp.multiply(v[:, None], features - codes @ X))
    cp.Problem(cp.Minimize(error), [cp.norm(X, axis=1) <= 1]).solve(solver=cp.CLARABEL)
    np.testing.assert_allclose(D, X.value, atol=1e-4)


def test_few_newton_steps_suffice():
    features, codes, v, start = small_problem(2, n=100, N=20)
    assert update_dictionary_dual(features, codes, v, start=start).n_iter <= 10
    stopped = update_dictionary_dual(features, codes, v, start=start, max_iter=1)
    assert not stopped.converged
    assert loss(features, codes, v, stopped.dictionary) <= loss(features, codes, v, start)


def test_a_solution_is_kept():
    features, codes, v, start = small_problem(3)
    D = update_dictionary_dual(features, codes, v, start=start).dictionary
    again = update_dictionary_dual(features, codes, v, start=D).dictionary
    np.testing.assert_allclose(again, D, atol=1e-12)
    worse = update_dictionary_dual(features, codes, v, start=D, max_iter=0).dictionary
    np.testing.assert_array_equal(worse, D)


def test_unused_atoms_stay_and_the_others_are_optimal():
    features, codes, v, start = small_problem(4)
    codes[:, [1, 4]] = 0
    D = update_dictionary_dual(features, codes, v, start=start).dictionary
    np.testing.assert_array_equal(D[[1, 4]], start[[1, 4]])
    rest = [0, 2, 3, 5]
    expected = update_dictionary(
        features, codes[:, rest], v, start=start[rest], max_iter=50_000, tol=1e-13
    ).dictionary
    np.testing.assert_allclose(D[rest], expected, atol=1e-6)


def test_float32_is_kept():
    features, codes, v, start = small_problem(5, dtype=np.float32)
    D = update_dictionary_dual(features, codes, v, start=start).dictionary
    assert D.dtype == np.float32
    expected = update_dictionary(
        features, codes, v, start=start, max_iter=5000, tol=1e-6
    ).dictionary
    np.testing.assert_allclose(D, expected, atol=1e-3)


@pytest.mark.parametrize("spoil", ["few", "unselected", "uncoded"])
def test_too_few_samples_for_the_atoms_are_refused(spoil):
    features, codes, v, start = small_problem(6)
    if spoil == "few":
        features, codes, v = features[:7], codes[:7], v[:7]
        codes[:] = np.abs(codes) + 0.1
    elif spoil == "unselected":
        codes[:7] += 0.1
        v[7:] = 0
    else:
        codes[:7] = np.abs(codes[:7]) + 0.1
        codes[7:] = 0
    with pytest.raises(InputError, match=r"sketch_features: .* each of 6 atoms, but there are 7"):
        update_dictionary_dual(features, codes, v, start=start, name="sketch_features")


def test_the_fewest_samples_are_accepted():
    features, codes, v, start = small_problem(7, n=8, N=6)
    codes[:] = np.random.default_rng(0).standard_normal(codes.shape)
    result = update_dictionary_dual(features, codes, v, start=start)
    assert result.converged
    assert np.linalg.norm(result.dictionary, axis=1).max() <= 1 + 1e-12


def test_atoms_that_always_occur_together_are_refused():
    features, codes, v, start = small_problem(8)
    codes[:, 2] = 3 * codes[:, 0]
    with pytest.raises(InputError, match=r"condition number below 1e\+10"):
        update_dictionary_dual(features, codes, v, start=start)
