import numpy as np
import pytest

from cppcl.features.descriptors.bag_of_words.sift import (
    CELL_SIDES,
    Sift,
    cell_taps,
    direction_layers,
    sift,
    smoothed,
)


@pytest.fixture
def image():
    """An asymmetric mark around the middle pixel of 81 x 81."""
    mask = np.zeros((81, 81), dtype=np.float32)
    mask[30:33, 30:55] = mask[30:50, 30:33] = mask[44:52, 48:50] = 1
    return smoothed(mask, 2.0)


MIDDLE = np.array([[40, 40]])


@pytest.mark.parametrize(
    ("angle", "layer"), [(0, 0), (45, 1), (90, 2), (135, 3), (180, 4), (270, 6), (315, 7)]
)
def test_directions_run_anticlockwise_from_the_right(angle, layer):
    y, x = np.mgrid[0:20, 0:20]
    turn = np.radians(angle)
    slope = (np.cos(turn) * x - np.sin(turn) * y).astype(np.float32)
    inner = direction_layers(slope)[1:-1, 1:-1]
    np.testing.assert_allclose(inner[..., layer], 2, atol=1e-4)
    np.testing.assert_allclose(inner.sum(axis=-1), 2, atol=1e-4)


@pytest.mark.parametrize("side", CELL_SIDES)
def test_white_on_black_turns_directions_around(image, side):
    (dark,), (light,) = sift(image, MIDDLE, side), sift(1 - image, MIDDLE, side)
    turned = np.roll(dark.reshape(16, 8), 4, axis=1).ravel()
    np.testing.assert_allclose(light, turned, atol=1e-5)
    assert np.abs(light - dark).max() > 0.1


@pytest.mark.parametrize("side", CELL_SIDES)
def test_a_quarter_turn_moves_cells_and_directions(image, side):
    (upright,), (turned,) = (
        sift(np.ascontiguousarray(i), MIDDLE, side) for i in (image, np.rot90(image))
    )
    expected = np.roll(np.rot90(upright.reshape(4, 4, 8)), 2, axis=-1)
    np.testing.assert_allclose(turned.reshape(4, 4, 8), expected, atol=1e-5)
    assert np.abs(expected.ravel() - upright).max() > 0.1


def test_contrast_does_not_matter(image):
    np.testing.assert_allclose(sift(3 * image + 2, MIDDLE, 8), sift(image, MIDDLE, 8), atol=1e-5)


def test_norm_and_clipping(image):
    pixels = np.argwhere(image > 0.3)
    descriptors = sift(image, pixels, 8)
    np.testing.assert_allclose(np.linalg.norm(descriptors, axis=1), 1, atol=1e-6)
    assert descriptors.min() >= 0
    # Values that were clipped are the largest ones, and alike.
    largest = descriptors.max(axis=1, keepdims=True)
    assert (np.isclose(descriptors, largest).sum(axis=1) > 1).any()


def test_nothing_around_is_zero(image):
    assert not sift(np.zeros_like(image), MIDDLE, 4).any()
    assert sift(image, np.empty((0, 2), int), 4).shape == (0, 128)


@pytest.mark.parametrize("side", [4, 5, 12])
def test_cells_share_every_pixel_near_the_middle(side):
    firsts, taps = cell_taps(side)
    weights = np.zeros(8 * side)
    for first, cell in zip(firsts, taps, strict=True):
        weights[4 * side + first : 4 * side + first + 2 * side] += cell
    offsets = np.arange(8 * side) - 4 * side
    inner = np.abs(offsets) <= 1.5 * side
    np.testing.assert_allclose(
        weights[inner], np.exp(-((offsets[inner] / side) ** 2) / 8), atol=1e-6
    )
    assert not weights[np.abs(offsets) >= 2.5 * side].any()


def test_every_contour_pixel_has_three_sizes(drawings):
    _, positions = Sift().local_descriptors(drawings[1])
    _, counts = np.unique(positions, axis=0, return_counts=True)
    assert counts.max() == len(CELL_SIDES)
    assert (counts == 3).mean() > 0.5
