import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.decomposition import PCA

from cppcl.errors import InputError
from cppcl.features.principal import principal_components


def rows_of(n, m, seed=0):
    """Correlated columns of falling variance around a mean that is not zero."""
    generator = np.random.default_rng(seed)
    mixing = generator.standard_normal((m, m)) * 0.8 ** np.arange(m)[:, None]
    return (generator.standard_normal((n, m)) @ mixing + 3).astype(np.float32)


@pytest.mark.parametrize(("n", "m"), [(300, 12), (9, 40), (20, 20), (2100, 7)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equals_scikit_learn(n, m, dtype):
    rows = rows_of(n, m).astype(dtype)
    k = 5
    mean, components = principal_components(rows, k)
    reference = PCA(k, svd_solver="full").fit(rows.astype(np.float64))
    assert mean.dtype == components.dtype == np.float32
    np.testing.assert_allclose(mean, reference.mean_, rtol=1e-6, atol=1e-6)
    # Directions are the same up to their sign.
    signs = np.sign(np.einsum("ij,ij->i", components, reference.components_))
    np.testing.assert_allclose(components, signs[:, None] * reference.components_, atol=1e-5)
    projected = (rows - mean) @ components.T
    np.testing.assert_allclose(
        projected.var(axis=0, ddof=1), reference.explained_variance_, rtol=1e-4
    )


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(3, 30), m=st.integers(2, 30), seed=st.integers(0, 99), fraction=st.floats(0, 1)
)
def test_rows_are_orthonormal_ordered_and_of_one_sign(n, m, seed, fraction):
    rows = np.random.default_rng(seed).standard_normal((n, m)).astype(np.float32)
    k = 1 + int(fraction * (min(n - 1, m) - 1))
    mean, components = principal_components(rows, k)
    np.testing.assert_allclose(components @ components.T, np.eye(k), atol=1e-5)
    variances = ((rows - mean) @ components.T).var(axis=0)
    assert (np.diff(variances) <= 1e-5 * variances[0]).all()
    strongest = np.abs(components).argmax(axis=1)
    assert (components[np.arange(k), strongest] > 0).all()


def test_the_sign_does_not_depend_on_the_order_of_rows():
    rows = rows_of(50, 8)
    mean, components = principal_components(rows, 4)
    again = principal_components(rows[::-1].copy(), 4)
    np.testing.assert_allclose(again[0], mean, rtol=1e-6)
    np.testing.assert_allclose(again[1], components, atol=1e-5)


@pytest.mark.parametrize(
    ("rows", "k", "directions"),
    [
        (np.empty((0, 5), np.float32), 1, 0),
        (rows_of(4, 9), 4, 3),
        (rows_of(40, 9), 10, 9),
        (np.repeat(rows_of(1, 9), 6, axis=0), 1, 0),
        (np.repeat(rows_of(3, 9), 4, axis=0), 3, 2),
        (np.repeat(rows_of(3, 9), 400, axis=0), 3, 2),
    ],
    ids=["none", "few rows", "few values", "all equal", "copies", "many copies"],
)
def test_too_few_directions_are_counted(rows, k, directions):
    words = rf"{len(rows)} training pictures vary in {directions} directions.*n_components={k}"
    with pytest.raises(InputError, match=words):
        principal_components(rows, k)
    if directions:
        assert principal_components(rows, directions)[1].shape[0] == directions
