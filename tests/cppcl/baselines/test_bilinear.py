import numpy as np
import pytest

from cppcl.baselines import Bilinear
from cppcl.baselines.bilinear import ridge_inverse
from cppcl.errors import InputError

PLAIN = {"preparation": {"center": False, "unit_norm": False}}


def styled(n=40, noise=0.0, n_contents=None, seed=0):
    """Sketches and images of contents (n, 4) in two styles, and the contents' numbers."""
    rng = np.random.default_rng(seed)
    contents = rng.normal(size=(n_contents or n, 4))
    of_sample = np.arange(n) if n_contents is None else rng.integers(0, n_contents, n)
    views = [contents[of_sample] @ rng.normal(size=(4, m)) + rng.normal(size=m) for m in (9, 7)]
    return [*(view + noise * rng.normal(size=view.shape) for view in views), of_sample]


def test_content_is_the_same_in_both_styles():
    sketches, images, ids = styled()
    method = Bilinear(n_directions=4, ridge=0, **PLAIN).fit(
        sketches[:25], images[:25], ids[:25], ids[:25]
    )
    codes = method.encode_sketches(sketches[25:])
    np.testing.assert_allclose(codes, method.encode_images(images[25:]), atol=1e-9)
    assert np.linalg.matrix_rank(codes) == 4
    trained = method.encode_sketches(sketches[:25])
    np.testing.assert_allclose(np.cov(trained.T, bias=True), np.eye(4), atol=1e-9)


@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_codes_are_least_squares_on_the_factors_of_the_stacked_pairs(ridge):
    sketches, images, ids = styled(noise=0.5)
    method = Bilinear(n_directions=3, ridge=ridge, **PLAIN).fit(sketches, images, ids, ids)
    deviations = [view - view.mean(axis=0) for view in (sketches, images)]
    _, values, right = np.linalg.svd(np.hstack(deviations), full_matrices=False)
    # Y = A B with unit-variance contents B: Tenenbaum and Freeman's U S and V.
    styles = np.split((right[:3].T * values[:3]) / 40**0.5, [9])
    for codes, A, Y in zip(
        (method.encode_sketches(sketches), method.encode_images(images)),
        styles,
        deviations,
        strict=True,
    ):
        weight = ridge * np.linalg.norm(A, 2) ** 2
        rows, targets = np.vstack([A, weight**0.5 * np.eye(3)]), np.hstack([Y, np.zeros((40, 3))])
        expected = np.linalg.lstsq(rows, targets.T)[0].T
        np.testing.assert_allclose(
            codes * np.sign(np.einsum("nd,nd->d", codes, expected)), expected, atol=1e-9
        )


def test_a_class_is_one_content():
    sketches, images, of_sample = styled(n=60, n_contents=8, noise=0.3)
    method = Bilinear(n_directions=4, class_weight="equal", **PLAIN).fit(
        sketches, images, of_sample, of_sample
    )
    means = [
        np.array([view[of_sample == c].mean(axis=0) for c in range(8)])
        for view in (sketches, images)
    ]
    of_means = Bilinear(n_directions=4, **PLAIN).fit(*means, range(8), range(8))
    np.testing.assert_allclose(
        method.encode_images(images), of_means.encode_images(images), atol=1e-9
    )
    assert Bilinear(n_directions=50).fit(*means, range(8), range(8)).encode_images(
        images
    ).shape == (60, 7)


def test_heavier_contents_are_fitted_better():
    rng = np.random.default_rng(4)
    views = rng.normal(size=(6, 5)), rng.normal(size=(6, 4))

    def residual(weights):
        method = Bilinear(n_directions=2, ridge=0, **PLAIN).fit(
            *views, range(6), range(6), links=np.diag(weights)
        )
        arrays = method.to_arrays()
        np.testing.assert_allclose(
            arrays["image_offset"], np.average(views[1], axis=0, weights=weights), atol=1e-12
        )
        A = np.linalg.pinv(arrays["sketch_projection"])
        deviations = views[0] - arrays["sketch_offset"]
        return np.linalg.norm(deviations - method.encode_sketches(views[0]) @ A, axis=1)

    even, heavy = residual(np.ones(6)), residual([50.0, 50.0, 1, 1, 1, 1])
    assert heavy[:2].max() < 0.5 * even[:2].max()


def test_ridge_inverse_of_a_singular_matrix():
    A = np.array([[3.0, 0.0], [4.0, 0.0]])
    np.testing.assert_allclose(ridge_inverse(A, 0), np.linalg.pinv(A.T), atol=1e-12)
    np.testing.assert_allclose(ridge_inverse(A, 1), A / 50, atol=1e-12)


def test_contents_that_are_alike_are_named():
    with pytest.raises(InputError, match="all alike"):
        Bilinear().fit(np.ones((6, 3)), np.ones((6, 3)), range(6), range(6))
