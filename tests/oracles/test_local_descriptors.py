"""Local descriptors and word histograms against loops over pixels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import pairwise_distances_argmin

from cppcl.features.descriptors.bag_of_words.gf_hog import describe_pixels, gradient_field
from cppcl.features.descriptors.bag_of_words.laplace import harmonic
from cppcl.features.descriptors.bag_of_words.shog import (
    describe_windows,
    orientation_responses,
    window_side,
)
from cppcl.features.descriptors.bag_of_words.sift import sift, smoothed
from cppcl.features.descriptors.bag_of_words.ssim import similarities
from cppcl.features.descriptors.bag_of_words.structure_tensors import window_tensors
from cppcl.features.descriptors.bag_of_words.visual_words import (
    nearest_words,
    word_histogram,
)
from tests.oracles import local_descriptors as oracle


def curves(height, width, seed=0, n=3):
    """Ellipses and lines of one to three pixels."""
    from PIL import Image, ImageDraw

    rng = np.random.default_rng(seed)
    image = Image.new("1", (width, height), 0)
    pen = ImageDraw.Draw(image)
    for k in range(n):
        x, y = rng.integers(0, width), rng.integers(0, height)
        r, s = rng.integers(4, 2 + max(width, height) // 3, 2)
        pen.ellipse([int(v) for v in (x - r, y - s, x + r, y + s)], outline=1, width=1 + k % 2)
        pen.line([int(v) for v in rng.integers(0, min(height, width), 4)], 1, 1 + k % 3)
    return np.asarray(image, dtype=bool)


def test_shog_responses_and_tiles():
    mask = curves(26, 33)
    np.testing.assert_allclose(orientation_responses(mask), oracle.shog_responses(mask), atol=1e-5)
    assert window_side(mask.shape) == 12
    centres = np.array([[0, 0], [13, 16], [25, 32], [9, 24]])
    descriptors, seen = describe_windows(mask, centres)
    for (row, column), descriptor, found in zip(centres, descriptors, seen, strict=True):
        assert found == mask[max(row - 6, 0) : row + 6, max(column - 6, 0) : column + 6].any()
        if found:
            expected = oracle.shog_window(mask, row, column)
            np.testing.assert_allclose(descriptor, expected, atol=2e-6)
    assert seen.sum() >= 2


def test_structure_tensors_of_windows():
    mask = curves(26, 33)
    centres = np.array([[0, 0], [13, 16], [25, 32], [9, 24], [2, 30]])
    descriptors, seen = window_tensors(mask, centres)
    for (row, column), descriptor, found in zip(centres, descriptors, seen, strict=True):
        expected = oracle.window_tensors(mask, row, column, side=12)
        assert found == expected.any()
        np.testing.assert_allclose(descriptor, expected, atol=1e-6)
    assert seen.sum() >= 2
    assert not window_tensors(np.zeros((40, 40), bool), np.array([[20, 20]]))[1].any()


@settings(max_examples=40, deadline=None)
@given(
    shape=st.tuples(st.integers(1, 24), st.integers(1, 24)),
    share=st.floats(0, 1),
    seed=st.integers(0, 2**32 - 1),
)
def test_harmonic_functions_equal_dense_elimination(shape, share, seed):
    rng = np.random.default_rng(seed)
    known = rng.random(shape) < share
    known.flat[rng.integers(known.size)] = True
    values = rng.standard_normal((2, *shape))
    solved = harmonic(known, values, tolerance=1e-9)
    for field, given_values in zip(solved, values, strict=True):
        np.testing.assert_array_equal(field[known], given_values[known])
        np.testing.assert_allclose(field, oracle.harmonic(known, given_values), atol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_gradient_field_and_its_windows(seed):
    mask = curves(46, 50, seed, n=2)
    dilated, dy, dx = oracle.gradient_of_dilated(mask)
    dy, dx = oracle.harmonic(dilated, dy), oracle.harmonic(dilated, dx)
    expected = (np.cos(np.arctan2(dy, dx)) + 1) / 2
    field = gradient_field(mask, "laplace")
    # Where both parts vanish but for rounding there is no direction.
    defined = dilated | (np.hypot(dx, dy) > 1e-2)
    assert defined.mean() > 0.95
    np.testing.assert_allclose(field[defined], expected[defined], atol=1e-3)
    np.testing.assert_allclose(field[dilated], expected[dilated], atol=1e-12)

    descriptors, pixels = describe_pixels(field, mask)
    windows = []
    for side in (5, 10, 15):
        top, left = np.argwhere(mask).T - 3 * side // 2
        inside = (top >= 0) & (top + 3 * side <= 46) & (left >= 0) & (left + 3 * side <= 50)
        windows += [(row, column, side) for row, column in np.argwhere(mask)[inside]]
    assert len(windows) == len(descriptors) > 50
    np.testing.assert_array_equal(pixels, [window[:2] for window in windows])
    for window, descriptor in list(zip(windows, descriptors, strict=True))[::9]:
        np.testing.assert_allclose(descriptor, oracle.gf_hog_window(field, *window), atol=1e-5)


def test_nearest_field_is_that_of_the_nearest_contour():
    mask = curves(30, 40, 2)
    dilated, dy, dx = oracle.gradient_of_dilated(mask)
    known = np.argwhere(dilated)
    field = gradient_field(mask, "nearest")
    values = (np.cos(np.arctan2(dy, dx)) + 1) / 2
    for (row, column), found in np.ndenumerate(field):
        distances = ((known - (row, column)) ** 2).sum(axis=1)
        candidates = known[distances == distances.min()]
        assert np.isclose(found, values[tuple(candidates.T)]).any()


@pytest.mark.parametrize("side", [4, 8, 5])
def test_sift_patches(side):
    image = smoothed(curves(50, 60, 1).astype(np.float32), side / 3)
    pixels = np.array([[25, 30], [2, 3], [49, 50], [20, 11]])
    descriptors = sift(image, pixels, side)
    expected = [oracle.sift_patch(image, row, column, side) for row, column in pixels]
    np.testing.assert_allclose(descriptors, expected, atol=2e-5)


@pytest.mark.parametrize("side", [4, 8])
def test_sift_agrees_with_opencv(side):
    import cv2

    rng = np.random.default_rng(0)
    # OpenCV mirrors borders where it smooths; away from them nothing differs but its rounding.
    picture = np.pad(255 * curves(180, 200, 3, 5).astype(np.uint8), 40)
    pixels = rng.permutation(np.argwhere(picture))[:300]
    sigma = side / 3
    points = [cv2.KeyPoint(float(x), float(y), 2 * sigma, 0, 0, 0) for y, x in pixels]
    _, theirs = cv2.SIFT_create(sigma=sigma).compute(picture, points)
    theirs = theirs / np.linalg.norm(theirs, axis=1, keepdims=True)
    ours = sift(smoothed(picture.astype(np.float32) / 255, sigma), pixels, side)
    cosines = (ours * theirs).sum(axis=1)
    assert len(cosines) == 300
    assert cosines.min() > 0.9999


def test_self_similarities():
    mask = curves(60, 50, 4).copy()
    mask[30:50, 20:40] = True
    # Deep inside a filled square, and where its neighbours begin to differ.
    pixels = np.vstack([np.argwhere(mask)[::90], [[40, 30], [32, 30]]])
    assert len(pixels) >= 7
    for (row, column), found in zip(pixels, similarities(mask, pixels), strict=True):
        np.testing.assert_allclose(found, oracle.self_similarity(mask, row, column), rtol=1e-12)


@settings(max_examples=40, deadline=None)
@given(n=st.integers(0, 700), n_words=st.integers(1, 60), seed=st.integers(0, 2**32 - 1))
def test_words_are_the_nearest(n, n_words, seed):
    rng = np.random.default_rng(seed)
    descriptors = rng.random((n, 9), dtype=np.float32)
    words = rng.random((n_words, 9), dtype=np.float32)
    found = nearest_words(descriptors, words)
    assert found.dtype == np.int64
    distances = np.linalg.norm(descriptors[:, None].astype(float) - words, axis=2)
    reached = np.take_along_axis(distances, found[:, None], axis=1)[:, 0]
    np.testing.assert_allclose(reached, distances.min(axis=1), atol=1e-6)
    if n:
        agreement = (found == pairwise_distances_argmin(descriptors, words)).mean()
        assert agreement > 0.99


@settings(max_examples=40, deadline=None)
@given(n=st.integers(1, 80), n_words=st.integers(1, 12), seed=st.integers(0, 2**32 - 1))
def test_pyramid_of_words(n, n_words, seed):
    rng = np.random.default_rng(seed)
    words, positions = rng.integers(0, n_words, n), rng.integers(0, 9, (n, 2)) / 8
    expected = oracle.pyramid(words, positions, n_words)
    found = word_histogram(words, positions, n_words, pyramid=True)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    level = word_histogram(words, positions, n_words)
    np.testing.assert_allclose(level, expected[:n_words] * 4, atol=1e-12)
