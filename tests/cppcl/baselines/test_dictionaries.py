"""Dictionary baselines against scikit-learn's lasso and ridge, and their descent."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.decomposition import sparse_encode
from sklearn.linear_model import Ridge

from cppcl.baselines import CDL, JDL, SCDL
from cppcl.baselines.cdl import common_space
from cppcl.baselines.dictionaries import lasso_losses, recode, refit, span
from cppcl.baselines.scdl import ridge_map
from cppcl.errors import InputError
from cppcl.optim.codes import encode

FEW = {"n_atoms": 12, "n_initial_rounds": 2}
PAIRS = np.arange(30)


def two_views(n=30, widths=(12, 9), seed=0):
    rng = np.random.default_rng(seed)
    content = rng.normal(size=(n, 5))
    return [content @ rng.normal(size=(5, m)) + 0.2 * rng.normal(size=(n, m)) for m in widths]


def unit(view):
    centred = view - view.mean(axis=0)
    return centred / np.linalg.norm(centred, axis=1, keepdims=True)


def lasso(features, dictionary, alpha):
    return sparse_encode(
        features, dictionary, algorithm="lasso_cd", alpha=alpha / 2, max_iter=1_000_000
    )


def loss(F, C, D, alpha):
    return np.square(F - C @ D).sum() + alpha * np.abs(C).sum()


@pytest.mark.parametrize("alpha", [0.003, 0.03, 0.3])
def test_recoding_solves_the_lasso_and_never_worsens_a_sample(alpha):
    rng = np.random.default_rng(1)
    F, D = unit(two_views()[0]), rng.normal(size=(12, 12))
    exact = lasso(F, D, alpha)
    codes = recode(F, np.zeros((30, 12)), D, alpha)
    assert loss(F, codes, D, alpha) <= loss(F, exact, D, alpha) * (1 + 1e-4)
    np.testing.assert_array_equal(recode(F, exact, np.zeros_like(D), alpha), np.zeros_like(codes))
    losses = lasso_losses(F, codes, D, alpha)
    assert losses.sum() == pytest.approx(loss(F, codes, D, alpha), rel=1e-12)
    perturbed = exact + 1e-9 * rng.normal(size=exact.shape)
    assert (
        lasso_losses(F, recode(F, perturbed, D, alpha), D, alpha)
        <= 1e-15 + lasso_losses(F, perturbed, D, alpha)
    ).all()


@settings(max_examples=15, deadline=None)
@given(
    st.sampled_from([SCDL, CDL]),
    st.sampled_from([1e-3, 0.01, 0.1]),
    st.sampled_from([0.0, 0.1, 1.0, 10.0]),
    st.sampled_from([1e-4, 0.01, 1.0]),
    st.integers(0, 100),
)
def test_every_alternation_lowers_the_objective(method, alpha, coupling, map_ridge, seed):
    options = {"alpha": alpha, "coupling": coupling, "map_ridge": map_ridge, "seed": seed}
    fitted = method(n_rounds=6, **FEW, **options).fit(*two_views(seed=seed), PAIRS, PAIRS)
    objective = fitted.history_["objective"]
    assert len(objective) == 6
    assert (np.diff(objective) <= 1e-9 * objective[0]).all()
    assert objective[-1] < objective[0]


@settings(max_examples=10, deadline=None)
@given(
    st.sampled_from([1e-3, 0.01, 0.1]), st.sampled_from([(12, 9), (60, 40)]), st.integers(0, 100)
)
def test_rounds_of_joint_learning_lower_its_objective(alpha, widths, seed):
    views = two_views(widths=widths, seed=seed)
    stacked = np.hstack([unit(view) for view in views])
    objective = []
    for n_rounds in (1, 2, 4, 8):
        method = JDL(n_atoms=12, alpha=alpha, n_rounds=n_rounds, seed=seed)
        method.fit(*views, PAIRS, PAIRS)
        D = np.hstack([method.sketch_dictionary_, method.image_dictionary_])
        objective.append(loss(stacked, encode(stacked, D, 2 * alpha).codes, D, 2 * alpha))
    assert (np.diff(objective) <= 1e-3 * objective[0]).all()
    assert objective[-1] < objective[0]
    norms = np.linalg.norm(method.image_dictionary_, axis=1)
    assert norms.max() <= 1 + 1e-9


@settings(max_examples=20)
@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 6), st.integers(0, 1000))
def test_a_basis_holds_what_it_is_of(n, m, rank, seed):
    rng = np.random.default_rng(seed)
    samples = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, m))
    basis = span(samples)
    assert basis.shape[1] <= m
    np.testing.assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-9)
    np.testing.assert_allclose(samples @ basis @ basis.T, samples, atol=1e-9)
    if n < m:
        assert basis.shape[1] == min(n, rank)


@pytest.mark.parametrize("method", [JDL, SCDL, CDL])
def test_dictionaries_of_many_columns(method):
    """Atoms stay in the span of few samples, and codes do not depend on the columns."""
    views = two_views(widths=(80, 50))
    fitted = method(n_atoms=12, n_rounds=3).fit(*views, PAIRS, PAIRS)
    for view, atoms in zip(
        views, (fitted.sketch_dictionary_, fitted.image_dictionary_), strict=True
    ):
        basis = span(unit(view))
        assert basis.shape[1] < 30
        np.testing.assert_allclose(atoms @ basis @ basis.T, atoms, atol=1e-6)
        assert np.linalg.norm(atoms, axis=1).max() <= 1 + 1e-9
    # As with other columns of the same inner products.
    new = two_views(widths=(80, 50), seed=1)[1]
    columns = np.random.default_rng(2).permutation(60)
    images, queries = (np.hstack([F, np.zeros((30, 10))])[:, columns] for F in (views[1], new))
    other = method(n_atoms=12, n_rounds=3).fit(views[0], images, PAIRS, PAIRS)
    np.testing.assert_allclose(other.encode_images(queries), fitted.encode_images(new), atol=1e-4)


def test_pairs_share_a_code_by_joint_dictionaries():
    views = two_views()
    method = JDL(
        n_atoms=12, alpha=1e-3, n_rounds=40, preparation={"center": False, "unit_norm": False}
    )
    method.fit(*(unit(view) for view in views), PAIRS, PAIRS)
    D = np.hstack([method.sketch_dictionary_, method.image_dictionary_])
    stacked = np.hstack([unit(view) for view in views])
    shared = lasso(stacked, D, 2e-3)
    assert np.square(stacked - shared @ D).sum() < 0.1 * np.square(stacked).sum()
    # New samples are coded by one of the dictionaries alone.
    np.testing.assert_allclose(
        method.encode_images(unit(views[1])),
        encode(unit(views[1]), method.image_dictionary_, 1e-3).codes,
    )


@pytest.mark.parametrize("mapped", ["images", "sketches"])
def test_a_round_of_semi_coupled_learning(mapped):
    """One alternation by scikit-learn's lasso and ridge reaches the same objective."""
    views = two_views()
    alpha, coupling, map_ridge = 0.01, 0.7, 0.02
    options = {"alpha": alpha, "coupling": coupling, "map_ridge": map_ridge, "mapped": mapped}
    start = JDL(n_atoms=12, alpha=alpha, n_rounds=2).fit(*views, PAIRS, PAIRS)
    D = [start.sketch_dictionary_, start.image_dictionary_]
    F = [unit(view) for view in views]
    x = ["sketches", "images"].index(mapped)
    y = 1 - x
    C = [lasso(f, d, alpha) for f, d in zip(F, D, strict=True)]
    regression = Ridge(30 * map_ridge / coupling, fit_intercept=False)
    W = regression.fit(C[x], C[y]).coef_.T
    root = coupling**0.5
    C[x] = lasso(np.hstack([F[x], root * C[y]]), np.hstack([D[x], root * W]), alpha)
    C[y] = lasso(np.hstack([F[y], root * C[x] @ W]), np.hstack([D[y], root * np.eye(12)]), alpha)
    D = [refit(*of_side) for of_side in zip(F, C, D, strict=True)]
    expected = sum(loss(*of_side, alpha) for of_side in zip(F, C, D, strict=True))
    expected += coupling * np.square(C[y] - C[x] @ W).sum() + 30 * map_ridge * np.square(W).sum()
    method = SCDL(n_rounds=1, **FEW, **options).fit(*views, PAIRS, PAIRS)
    np.testing.assert_allclose(method.history_["objective"], [expected], rtol=2e-3)
    # Afterwards the map is fitted anew, and the modality that is mapped alone goes through it.
    W = regression.fit(C[x], C[y]).coef_.T
    side = ["sketch", "image"][x]
    np.testing.assert_allclose(method.to_arrays()[f"{side}_map"], W, atol=0.05)
    for k, encoded in enumerate((method.encode_sketches, method.encode_images)):
        learned = [method.sketch_dictionary_, method.image_dictionary_][k]
        own = encode(F[k], learned, alpha).codes
        expected_codes = own @ method.to_arrays()[f"{side}_map"] if k == x else own
        np.testing.assert_allclose(encoded(views[k]), expected_codes, atol=1e-9)


def test_a_round_of_coupled_learning():
    views = two_views()
    alpha, coupling, map_ridge = 0.01, 0.7, 0.02
    start = JDL(n_atoms=12, alpha=alpha, n_rounds=2).fit(*views, PAIRS, PAIRS)
    D = [start.sketch_dictionary_, start.image_dictionary_]
    F = [unit(view) for view in views]
    C = [lasso(f, d, alpha) for f, d in zip(F, D, strict=True)]
    P, _ = common_space(C, 8, coupling, 30 * map_ridge)
    regression = Ridge(30 * map_ridge / coupling, fit_intercept=False)
    U = [regression.fit(c, P).coef_.T for c in C]
    root = coupling**0.5
    C = [
        lasso(np.hstack([f, root * P]), np.hstack([d, root * u]), alpha)
        for f, d, u in zip(F, D, U, strict=True)
    ]
    D = [refit(*of_side) for of_side in zip(F, C, D, strict=True)]
    expected = sum(loss(*of_side, alpha) for of_side in zip(F, C, D, strict=True))
    for c, u in zip(C, U, strict=True):
        expected += coupling * np.square(P - c @ u).sum() + 30 * map_ridge * np.square(u).sum()
    method = CDL(
        n_rounds=1, n_directions=8, alpha=alpha, coupling=coupling, map_ridge=map_ridge, **FEW
    ).fit(*views, PAIRS, PAIRS)
    np.testing.assert_allclose(method.history_["objective"], [expected], rtol=2e-3)
    own = encode(F[1], method.image_dictionary_, alpha).codes
    np.testing.assert_allclose(
        method.encode_images(views[1]), own @ method.to_arrays()["image_map"], atol=1e-9
    )


@settings(max_examples=25)
@given(st.integers(0, 1000), st.sampled_from([0.1, 1.0]), st.sampled_from([1e-3, 0.3]))
def test_no_common_space_is_better(seed, coupling, ridge):
    rng = np.random.default_rng(seed)
    codes = [rng.normal(size=(15, 6)) * (rng.random((15, 6)) < 0.5) for _ in range(2)]

    def objective(P, maps):
        return sum(
            coupling * np.square(P - c @ u).sum() + ridge * np.square(u).sum()
            for c, u in zip(codes, maps, strict=True)
        )

    P, maps = common_space(codes, 4, coupling, ridge)
    np.testing.assert_allclose(P.T @ P, np.eye(4) * 15 / 4, atol=1e-9)
    regression = Ridge(ridge / coupling, fit_intercept=False)
    for c, u in zip(codes, maps, strict=True):
        np.testing.assert_allclose(u, regression.fit(c, P).coef_.T, atol=1e-8)
    for size in (1e-3, 0.1, 10.0):
        other = np.linalg.qr(P + size * rng.normal(size=P.shape))[0] * (15 / 4) ** 0.5
        of_other = [regression.fit(c, other).coef_.T for c in codes]
        assert objective(P, maps) <= objective(other, of_other) + 1e-9


def test_map_is_a_ridge_regression():
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(2, 20, 5))
    expected = Ridge(0.3 / 0.7, fit_intercept=False).fit(A, B).coef_.T
    np.testing.assert_allclose(ridge_map(A, B, 0.7, 0.3), expected, atol=1e-12)


def test_code_ridge_shortens_new_codes_alone():
    views = two_views()
    plain, ridged = (
        SCDL(n_rounds=2, code_ridge=ridge, **FEW).fit(*views, PAIRS, PAIRS) for ridge in (0.0, 1.0)
    )
    np.testing.assert_array_equal(plain.sketch_dictionary_, ridged.sketch_dictionary_)
    np.testing.assert_array_equal(plain.history_["objective"], ridged.history_["objective"])
    lengths = [np.abs(m.encode_sketches(views[0])).sum() for m in (plain, ridged)]
    assert lengths[1] < 0.9 * lengths[0]


def test_common_space_is_no_wider_than_atoms_and_pairs():
    views = two_views()
    wide = CDL(n_directions=50, n_rounds=1, **FEW).fit(*views, PAIRS, PAIRS)
    assert wide.encode_sketches(views[0]).shape == (30, 12)
    few = [view[:5] for view in views]
    narrow = CDL(n_directions=50, n_rounds=1, **FEW).fit(*few, PAIRS[:5], PAIRS[:5])
    assert narrow.encode_images(views[1]).shape == (30, 5)


def test_codes_that_vanish_do_no_harm():
    views = two_views()
    for method in (JDL(alpha=9.0), SCDL(alpha=9.0, **FEW), CDL(alpha=9.0, **FEW)):
        method.fit(*views, PAIRS, PAIRS)
        assert not method.encode_sketches(views[0]).any()


@pytest.mark.parametrize("method", [SCDL, CDL])
def test_a_map_without_ridge_is_refused(method):
    with pytest.raises(InputError, match="map_ridge=0 must be a number above 0"):
        method(map_ridge=0)
