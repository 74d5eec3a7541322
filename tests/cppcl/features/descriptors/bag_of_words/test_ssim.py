import numpy as np
import pytest

from cppcl.features.descriptors.bag_of_words.ssim import (
    RADIUS,
    SelfSimilarity,
    log_polar_bins,
    patch_codes,
    similarities,
)


def test_similar_along_a_line_only():
    mask = np.zeros((101, 101), dtype=bool)
    mask[50] = True
    (found,) = similarities(mask, np.array([[50, 50]]))
    steps, bounds = log_polar_bins()
    for step, value in zip(np.split(np.abs(steps), bounds[1:-1]), found, strict=True):
        # Elsewhere on the line nothing differs, in a blank patch one line of 5 pixels, else two,
        # as in the neighbours.
        differences = np.select([step[:, 0] == 0, step[:, 0] > 2], [0, 5], 10)
        assert value == pytest.approx(np.exp(-differences.min() / 10), abs=1e-12)
    assert len(np.unique(found)) == 3


def test_bins_cover_the_disc_once():
    steps, bounds = log_polar_bins()
    assert bounds[0] == 0
    assert len(bounds) == 81
    assert (np.diff(bounds) > 0).all()
    distances = np.hypot(*steps.T)
    assert (distances.min(), distances.max()) == (pytest.approx(np.sqrt(8)), RADIUS)
    grid = np.argwhere(np.ones((81, 81))) - 40
    inside = (np.hypot(*grid.T) >= 2.5) & (np.hypot(*grid.T) <= 40)
    assert {*map(tuple, steps)} == {*map(tuple, grid[inside])}
    assert len(steps) == bounds[-1] == inside.sum()


def test_patches_are_numbers_of_their_bits():
    mask = np.random.default_rng(0).random((9, 7)) < 0.5
    codes = patch_codes(mask)
    padded = np.pad(mask, 2)
    for (row, column), code in np.ndenumerate(codes):
        bits = padded[row : row + 5, column : column + 5].ravel()
        assert code == sum(int(bit) << k for k, bit in enumerate(bits))


def test_descriptors_span_zero_to_one(drawings):
    descriptors, positions = SelfSimilarity().local_descriptors(drawings[0])
    assert len(positions) > 100
    np.testing.assert_array_equal(descriptors.min(axis=1), 0)
    np.testing.assert_array_equal(descriptors.max(axis=1), 1)


def test_what_is_like_nothing_around_is_dropped():
    mask = np.zeros((200, 200), dtype=bool)
    mask[0, 0] = mask[-1, -1] = mask[98:103, 98:103] = mask[160, 20:180] = True
    (found,) = similarities(mask, np.array([[100, 100]]))
    # The square differs from itself a pixel away in 9 pixels, and three pixels away in 15.
    assert found.max() == pytest.approx(np.exp(-15 / 9))
    picture = np.repeat(np.where(mask, 0, 255).astype(np.uint8)[..., None], 3, axis=2)
    _, positions = SelfSimilarity().local_descriptors(picture)
    kept = {*map(tuple, np.floor(200 * positions).astype(int))}
    assert (100, 100) not in kept
    assert (160, 100) in kept
    # Around a pixel alone everything is alike.
    assert kept.isdisjoint({(0, 0), (199, 199)})
