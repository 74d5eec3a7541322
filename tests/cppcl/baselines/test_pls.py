import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cross_decomposition import PLSSVD

from cppcl.baselines import PLS

PLAIN = {"preparation": {"center": False, "unit_norm": False}}


def two_views(n=80, m_s=6, m_i=9, seed=0):
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=(n, 4))
    sketches = shared @ rng.normal(size=(4, m_s)) + rng.normal(size=(n, m_s)) + 2
    images = shared @ rng.normal(size=(4, m_i)) + rng.normal(size=(n, m_i)) - 1
    return sketches, images


def aligned(codes, like):
    """Codes with the signs of another's columns."""
    return codes * np.sign(np.einsum("nd,nd->d", codes, like))


@pytest.mark.parametrize("n", [80, 5])
def test_scores_are_those_of_scikit_learn(n):
    sketches, images = two_views(n)
    d = min(5, n - 1)
    method = PLS(n_directions=d, **PLAIN).fit(sketches, images, range(n), range(n))
    expected = PLSSVD(d, scale=False).fit(sketches, images).transform(sketches, images)
    for codes, reference in zip(
        (method.encode_sketches(sketches), method.encode_images(images)), expected, strict=True
    ):
        np.testing.assert_allclose(aligned(codes, reference), reference, atol=1e-9)


def test_classes_are_the_list_of_linked_pairs():
    rng = np.random.default_rng(1)
    sketches, images = two_views(40)
    sketch_labels, image_labels = rng.integers(0, 6, 40), rng.integers(1, 7, 40)
    rows = np.array(
        [(k, i) for k in range(40) for i in range(40) if sketch_labels[k] == image_labels[i]]
    )
    listed = sketches[rows[:, 0]], images[rows[:, 1]]
    oracle = PLSSVD(4, scale=False).fit(*listed)
    method = PLS(n_directions=4, class_weight="links", **PLAIN).fit(
        sketches, images, sketch_labels, image_labels
    )
    for codes, reference in zip(
        (method.encode_sketches(sketches), method.encode_images(images)),
        oracle.transform(sketches, images),
        strict=True,
    ):
        np.testing.assert_allclose(aligned(codes, reference), reference, atol=1e-9)


@settings(max_examples=25)
@given(st.integers(0, 1000))
def test_no_direction_covaries_more_than_the_first(seed):
    rng = np.random.default_rng(seed)
    sketches, images = two_views(30, seed=seed)
    arrays = PLS(**PLAIN).fit(sketches, images, range(30), range(30)).to_arrays()
    a, b = rng.normal(size=(50, 6)), rng.normal(size=(50, 9))
    a /= np.linalg.norm(a, axis=1, keepdims=True)
    b /= np.linalg.norm(b, axis=1, keepdims=True)
    cross = np.cov(sketches.T, images.T, bias=True)[:6, 6:]
    covariances = arrays["covariances"]
    assert np.abs(a @ cross @ b.T).max() <= covariances[0]
    assert (np.diff(covariances) <= 0).all()
    A, B = arrays["sketch_projection"], arrays["image_projection"]
    np.testing.assert_allclose(A.T @ cross @ B, np.diag(covariances), atol=1e-9)
    np.testing.assert_allclose(A.T @ A, np.eye(6), atol=1e-9)
    np.testing.assert_allclose(B.T @ B, np.eye(6), atol=1e-9)
