from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cppcl.errors import ConvergenceWarning, InputError
from cppcl.learning.affinity import within_weights
from cppcl.learning.graph import Laplacian
from cppcl.optim.code_problem import CodeProblem
from cppcl.optim.codes import CodeSolver, encode, update_codes
from cppcl.optim.coordinate_kernels import admitted_above
from cppcl.optim.terms import CodeBlock, largest_eigenvalue

SOLVERS = get_args(CodeSolver)


def small_problem(
    seed, *, alpha=0.05, beta=0.7, l1_weight="v2", dtype=np.float64, v=None, within="none"
):
    """Two modalities of different width, classes of uneven size; returns problem and a start."""
    rng = np.random.default_rng(seed)
    labels = ([0, 0, 1, 2], [0, 1, 1, 1, 2, 3])
    N = 5
    rows = (slice(0, 4), slice(4, 10))
    blocks, weights = [], []
    for m, where, of_side in zip((7, 9), rows, labels, strict=True):
        F = rng.standard_normal((where.stop - where.start, m)).astype(dtype)
        D = rng.standard_normal((N, m)).astype(dtype) / m**0.5
        blocks.append(CodeBlock(where, F, D))
        weights.append(within_weights(F, of_side, within, n_neighbors=2))
    v = rng.random(10).astype(dtype) if v is None else np.asarray(v, dtype)
    graph = Laplacian.from_labels(*labels, within=tuple(weights), dtype=dtype)
    problem = CodeProblem(blocks, v, alpha, beta, graph, l1_weight)
    return problem, rng.standard_normal((10, N)).astype(dtype)


@settings(max_examples=200, deadline=None)
@given(
    seed=st.integers(0, 999),
    beta=st.sampled_from([0.0, 0.3, 25.0]),
    alpha=st.sampled_from([0.0, 0.05, 1.0]),
    l1_weight=st.sampled_from(["v2", "none"]),
    within=st.sampled_from(["none", "knn", "dense"]),
    solver=st.sampled_from(SOLVERS),
    max_iter=st.integers(1, 30),
)
def test_a_code_step_never_raises_the_objective(
    seed, beta, alpha, l1_weight, within, solver, max_iter
):
    problem, start = small_problem(
        seed, alpha=alpha, beta=beta, l1_weight=l1_weight, within=within
    )
    after = problem.value(
        update_codes(problem, start=start, solver=solver, max_iter=max_iter).codes
    )
    before = problem.value(start)
    assert after <= before + 1e-9 * abs(before)


@pytest.mark.parametrize("within", ["none", "knn", "dense"])
@pytest.mark.parametrize("l1_weight", ["v2", "none"])
def test_solvers_agree_and_their_duality_gap_closes(l1_weight, within):
    v = np.random.default_rng(8).random(10) * 0.7 + 0.3
    problem, start = small_problem(8, l1_weight=l1_weight, within=within, v=v)
    solved = {
        solver: update_codes(problem, start=start, solver=solver, max_iter=5000, tol=1e-12)
        for solver in SOLVERS
    }
    for result in solved.values():
        assert result.converged
        assert problem.relative_gap(result.codes) < 1e-9
        assert list(result.changes) != []
        assert result.changes[-1] <= 1e-12
    np.testing.assert_allclose(
        solved["gradient"].codes, solved["coordinate"].codes, atol=1e-7, rtol=1e-5
    )
    assert np.abs(solved["gradient"].codes).max() > 0.05
    assert problem.relative_gap(start) > 0.1


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 999), beta=st.sampled_from([0.0, 0.5]), scale=st.floats(0.0, 2.0))
def test_the_duality_gap_bounds_the_distance_to_the_minimum(seed, beta, scale):
    problem, start = small_problem(seed, beta=beta, v=np.ones(10))
    least = problem.value(update_codes(problem, start=start, max_iter=2000, tol=1e-12).codes)
    value = problem.value(scale * start)
    assert (value - least) / value <= problem.relative_gap(scale * start) + 1e-9


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_code_step_at_its_solution_stays_there(solver):
    problem, start = small_problem(3)
    solved = update_codes(problem, start=start, solver=solver, max_iter=5000, tol=1e-12)
    assert solved.converged
    again = update_codes(problem, start=solved.codes, solver=solver, max_iter=50)
    assert again.n_iter == 1
    np.testing.assert_allclose(again.codes, solved.codes, atol=1e-8)


def test_excluded_samples_keep_or_lose_their_codes():
    v = np.array([0.0, *[1.0] * 9])
    kept, start = small_problem(4, v=v)
    np.testing.assert_array_equal(update_codes(kept, start=start).codes[0], start[0])
    printed, start = small_problem(4, v=v, l1_weight="none")
    np.testing.assert_array_equal(update_codes(printed, start=start).codes[0], 0)


def test_unweighted_l1_zeroes_the_codes_of_slow_samples():
    low = np.full(10, 0.1)
    codes = {
        kind: update_codes(
            small_problem(5, v=low, l1_weight=kind, beta=0)[0], start=np.ones((10, 5))
        )
        for kind in ("v2", "none")
    }
    # With v = 0.1 the printed form acts like a hundred times the sparsity.
    assert np.count_nonzero(codes["none"].codes) < np.count_nonzero(codes["v2"].codes) / 4


def test_float32_is_kept_and_agrees_with_float64():
    single, start = small_problem(6, dtype=np.float32)
    double, start64 = small_problem(6, v=single.v)
    codes = update_codes(single, start=start, max_iter=300).codes
    assert codes.dtype == np.float32
    reference = update_codes(double, start=start64, max_iter=300).codes
    np.testing.assert_allclose(codes, reference, atol=2e-3)


@settings(deadline=None)
@given(seed=st.integers(0, 99))
def test_largest_eigenvalue_is_never_below(seed):
    D = np.random.default_rng(seed).standard_normal((6, 4)).astype(np.float32)
    exact = np.linalg.eigvalsh((D @ D.T).astype(float))[-1]
    assert exact <= largest_eigenvalue(D @ D.T) <= exact * 1.001


def test_largest_eigenvalue_of_a_large_matrix():
    D = np.random.default_rng(0).standard_normal((400, 300)).astype(np.float32)
    exact = np.linalg.eigvalsh((D @ D.T).astype(float))[-1]
    assert exact <= largest_eigenvalue(D @ D.T) <= exact * 1.05
    assert largest_eigenvalue(np.zeros((400, 400))) == 0


def test_options_that_cannot_be_are_refused():
    problem, start = small_problem(0, l1_weight="v")
    with pytest.raises(InputError, match="l1_weight='v'"):
        update_codes(problem, start=start)
    with pytest.raises(InputError, match="code_solver='newton'"):
        update_codes(problem, start=start, solver="newton")
    with pytest.raises(InputError, match="device='cuda' needs code_solver='gradient'"):
        update_codes(problem, start=start, device="cuda")
    with pytest.raises(InputError, match="device='abacus' is none that torch knows"):
        update_codes(problem, start=start, solver="gradient", device="abacus")


def lasso_problem(seed, n=20, m=12, N=30, dtype=np.float64):
    rng = np.random.default_rng(seed)
    F, D = rng.standard_normal((n, m)), rng.standard_normal((N, m))
    F /= np.linalg.norm(F, axis=1, keepdims=True)
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    return F.astype(dtype), D.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_encoding_satisfies_the_optimality_conditions(dtype):
    F, D = lasso_problem(0, dtype=dtype)
    alpha = 0.1
    result = encode(F, D, alpha)
    assert result.converged
    assert result.codes.dtype == dtype
    C = result.codes.astype(float)
    gradient = 2 * (C @ D.astype(float) - F) @ D.astype(float).T
    used = C != 0
    assert used.any()
    np.testing.assert_allclose(gradient[used], -alpha * np.sign(C[used]), atol=1e-3)
    assert (np.abs(gradient[~used]) <= alpha + 1e-3).all()


def test_encoding_does_not_depend_on_the_batch():
    F, D = lasso_problem(1)
    together = encode(F, D, 0.05).codes
    alone = np.vstack([encode(F[k : k + 1], D, 0.05).codes for k in range(len(F))])
    np.testing.assert_allclose(together, alone, atol=1e-12)


def test_large_alpha_and_zero_features_give_zero_codes():
    F, D = lasso_problem(2)
    assert not encode(F, D, 2.0).codes.any()
    assert not encode(np.zeros_like(F), D, 0.1).codes.any()


def test_without_sparsity_codes_are_least_squares_of_smallest_norm():
    F, D = lasso_problem(3, N=30)
    expected = np.linalg.lstsq(D.T, F.T)[0].T
    np.testing.assert_allclose(encode(F, D, 0.0).codes, expected, atol=1e-10)


def test_encoding_warns_when_it_runs_out_of_iterations():
    F, D = lasso_problem(4)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        result = encode(F, D, 0.01, max_iter=2)
    assert not result.converged
    assert result.codes.any()


@pytest.mark.parametrize("alpha", [0.0, 0.05])
def test_ridge_equals_atoms_extended_by_an_identity(alpha):
    F, D = lasso_problem(5, N=10)
    extended = np.hstack([D, 0.7**0.5 * np.eye(10)])
    padded = np.hstack([F, np.zeros((len(F), 10))])
    expected = encode(padded, extended, alpha, tol=1e-9).codes
    np.testing.assert_allclose(encode(F, D, alpha, ridge=0.7, tol=1e-9).codes, expected, atol=1e-7)


def test_nearly_equal_atoms_take_few_sweeps():
    F, D = lasso_problem(6, m=40, N=40)
    D = np.vstack([D, D + 1e-3 * np.random.default_rng(7).standard_normal(D.shape)])
    result = encode(F, D, 0.02, tol=1e-6)
    assert result.converged
    assert result.n_iter < 4500  # by sweeps alone four samples need over 100,000
    gradient = 2 * (result.codes @ D - F) @ D.T
    used = result.codes != 0
    np.testing.assert_allclose(gradient[used], -0.02 * np.sign(result.codes[used]), atol=1e-5)
    assert (np.abs(gradient[~used]) <= 0.02 + 1e-5).all()


def test_an_active_set_admits_about_as_many_atoms_as_are_wanted():
    excess = np.random.default_rng(8).random(1000).astype(np.float32)
    level = admitted_above(excess, np.float32(0.1), 32)
    assert 24 <= (excess > level).sum() <= 32
    assert admitted_above(excess, np.float32(0.1), 1000) == np.float32(0.1)
    equal = np.full(50, 0.5, dtype=np.float32)
    assert (equal > admitted_above(equal, np.float32(0.1), 16)).all()
