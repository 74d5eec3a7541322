"""Code and dictionary steps against scikit-learn and cvxpy."""

from typing import get_args

import cvxpy as cp
import numpy as np
import pytest
from sklearn.decomposition import sparse_encode

from cppcl.learning.affinity import within_weights
from cppcl.learning.graph import Laplacian
from cppcl.optim.code_problem import CodeProblem
from cppcl.optim.codes import CodeSolver, encode, update_codes
from cppcl.optim.dictionary import project_atoms, update_dictionary
from cppcl.optim.terms import CodeBlock
from tests.oracles.feature_sign import feature_sign

SOLVERS = get_args(CodeSolver)


def unit(rng, *shape):
    X = rng.standard_normal(shape)
    return X / np.linalg.norm(X, axis=1, keepdims=True)


@pytest.mark.parametrize("n_atoms", [15, 60])
@pytest.mark.parametrize("alpha", [0.02, 0.2])
def test_encoding_agrees_with_coordinate_descent(n_atoms, alpha):
    rng = np.random.default_rng(0)
    F, D = unit(rng, 25, 30), unit(rng, n_atoms, 30)
    # scikit-learn halves the squared error, so its alpha is half of ours.
    expected = sparse_encode(F, D, algorithm="lasso_cd", alpha=alpha / 2, max_iter=100_000)
    np.testing.assert_allclose(
        encode(F, D, alpha, tol=1e-8, max_iter=20_000).codes, expected, atol=2e-4
    )


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("n_atoms", [15, 50])
def test_code_step_without_graph_agrees_with_two_other_solvers(solver, n_atoms):
    rng = np.random.default_rng(1)
    F, D, alpha = unit(rng, 40, 30), unit(rng, n_atoms, 30), 0.1
    problem = CodeProblem([CodeBlock(slice(0, 40), F, D)], rng.random(40) * 0.9 + 0.1, alpha)
    codes = update_codes(
        problem, start=np.zeros((40, n_atoms)), solver=solver, max_iter=20_000, tol=1e-10
    ).codes
    # Weighted by v^2 as a whole, each sample's problem does not depend on v.
    others = {
        "coordinate descent": sparse_encode(
            F, D, algorithm="lasso_cd", alpha=alpha / 2, max_iter=100_000
        ),
        "feature-sign search": np.vstack([feature_sign(f, D, alpha) for f in F]),
    }
    value = problem.value(codes)
    for name, other in others.items():
        assert value == pytest.approx(problem.value(other), rel=1e-6), name
        assert value <= problem.value(other) * (1 + 1e-9), name
        np.testing.assert_allclose(codes, other, atol=5e-4, err_msg=name)
    np.testing.assert_allclose(codes, others["feature-sign search"], atol=1e-6)
    assert (codes != 0).mean() > 0.05


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("within", ["none", "knn", "dense"])
@pytest.mark.parametrize("l1_weight", ["v2", "none"])
@pytest.mark.parametrize("beta", [0.3, 5.0])
def test_code_step_with_graph_agrees_with_an_interior_point_solver(
    l1_weight, beta, within, solver
):
    rng = np.random.default_rng(2)
    sizes, widths, N, alpha = (15, 25), (8, 7), 4, 0.1
    labels = [rng.integers(0, 5, n) for n in sizes]
    n = sum(sizes)
    v = rng.random(n) * 0.8 + 0.2
    rows = (slice(0, 15), slice(15, 40))
    features = [unit(rng, size, m) for size, m in zip(sizes, widths, strict=True)]
    atoms = [unit(rng, N, m) for m in widths]
    weights = tuple(
        within_weights(F, of_side, within, n_neighbors=2)
        for F, of_side in zip(features, labels, strict=True)
    )
    graph = Laplacian.from_labels(*labels, within=weights)
    blocks = [CodeBlock(*parts) for parts in zip(rows, features, atoms, strict=True)]
    problem = CodeProblem(blocks, v, alpha, beta, graph, l1_weight)
    codes = update_codes(
        problem, start=np.zeros((n, N)), solver=solver, max_iter=20_000, tol=1e-10
    ).codes

    C = cp.Variable((n, N))
    root = np.linalg.cholesky(graph.apply(np.eye(n)) + 1e-12 * np.eye(n)).T
    l1 = v**2 if l1_weight == "v2" else np.ones(n)
    objective = beta * cp.sum_squares(root @ np.diag(v) @ C)
    objective += alpha * cp.sum(l1 @ cp.abs(C))
    for F, D, r in zip(features, atoms, rows, strict=True):
        objective += cp.sum_squares(np.diag(v[r]) @ (F - C[r] @ D))
    value = cp.Problem(cp.Minimize(objective)).solve(solver=cp.CLARABEL)
    assert problem.value(codes) == pytest.approx(value, rel=1e-5)
    np.testing.assert_allclose(codes, C.value, atol=2e-3)
    assert np.abs(C.value).max() > 0.05


@pytest.mark.parametrize(("n", "N"), [(30, 5), (6, 9)])
def test_dictionary_step_agrees_with_an_interior_point_solver(n, N):
    rng = np.random.default_rng(3)
    F, codes, v = rng.standard_normal((n, 7)), rng.standard_normal((n, N)), rng.random(n)
    start = project_atoms(rng.standard_normal((N, 7)))
    D = update_dictionary(F, codes, v, start=start, max_iter=20_000, tol=1e-12).dictionary
    variable = cp.Variable((N, 7))
    residual = cp.multiply(v[:, None] @ np.ones((1, 7)), F - codes @ variable)
    ball = [cp.norm(variable, axis=1) <= 1]
    value = cp.Problem(cp.Minimize(cp.sum_squares(residual)), ball).solve(solver=cp.CLARABEL)
    ours = float(v**2 @ ((F - codes @ D) ** 2).sum(axis=1))
    assert ours == pytest.approx(value, rel=1e-5, abs=1e-6)
    assert np.linalg.norm(D, axis=1).max() <= 1 + 1e-9
