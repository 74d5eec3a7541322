import numpy as np
import pytest

from cppcl.errors import InputError
from cppcl.features.descriptors.daisy import daisy
from cppcl.features.descriptors.keyshapes import (
    describe_members,
    learn_keyshapes,
    sample_strokes,
    squared_distances,
    vote_scales,
)


@pytest.fixture
def masks():
    rng = np.random.default_rng(0)
    masks = [np.zeros((80, 90), dtype=bool) for _ in range(4)]
    for mask in masks[:3]:
        mask[rng.integers(80, size=30), rng.integers(90, size=30)] = True
    masks[2][:] = False
    masks[2][0, 0] = masks[2][79, 40] = True
    return masks


def test_drawn_pixels_are_described_with_their_surroundings(masks):
    descriptors, patches = sample_strokes(masks, 1000, 10_000, seed=0)
    expected = [daisy(mask, *np.nonzero(mask)) for mask in masks]
    np.testing.assert_array_equal(descriptors, np.concatenate(expected))
    flags = np.unpackbits(patches, axis=1, count=961).reshape(-1, 31, 31)
    places = [(mask, *place) for mask in masks for place in np.argwhere(mask)]
    for look, (mask, row, column) in zip(flags, places, strict=True):
        for dy, dx in ((0, 0), (-15, -15), (15, -15), (3, -7), (-1, 12)):
            y, x = row + dy, column + dx
            inside = 0 <= y < 80 and 0 <= x < 90
            assert look[15 + dy, 15 + dx] == (inside and mask[y, x])


def test_limits_and_seed_of_the_draw(masks):
    few, _ = sample_strokes(masks, 5, 10_000, seed=0)
    assert len(few) == 12
    again, _ = sample_strokes(masks, 5, 10_000, seed=0)
    np.testing.assert_array_equal(few, again)
    other, _ = sample_strokes(masks, 5, 10_000, seed=1)
    assert not np.array_equal(few, other)
    fewest, patches = sample_strokes(masks, 5, 7, seed=0)
    assert len(fewest) == len(patches) == 7


def test_separate_clusters_are_found():
    rng = np.random.default_rng(0)
    centres = rng.random((6, 136)).astype(np.float32)
    which = rng.integers(6, size=3000)
    noise = 0.01 * rng.standard_normal((3000, 136), dtype=np.float32)
    found = learn_keyshapes(centres[which] + noise, 6, seed=0)
    assert found.dtype == np.float32
    nearest = squared_distances(centres, found)
    assert sorted(nearest.argmin(axis=1)) == list(range(6))
    assert np.sqrt(nearest.min(axis=1)).max() < 0.02


def test_too_few_different_descriptors():
    descriptors = np.repeat(np.eye(4, 136, dtype=np.float32), 50, axis=0)
    assert learn_keyshapes(descriptors, 4, seed=0).shape == (4, 136)
    with pytest.raises(InputError, match=r"4 different stroke descriptors.*n_keyshapes=5"):
        learn_keyshapes(descriptors, 5, seed=0)


def test_members_are_described_one_by_one():
    rng = np.random.default_rng(0)
    descriptors = rng.random((300, 136), dtype=np.float32)
    keyshapes = np.concatenate([descriptors[:4], np.full((1, 136), 9, dtype=np.float32)])
    looks = rng.random((300, 31, 31)) < 0.3
    patches = np.packbits(looks.reshape(300, -1), axis=1)
    statistics, shapes = describe_members(descriptors, patches, keyshapes)
    distances = np.linalg.norm(descriptors[:, None].astype(float) - keyshapes, axis=2)
    for k in range(4):
        members = distances.argmin(axis=1) == k
        own = distances[members, k]
        expected = [own.min(), own.max(), own.mean(), own.std(), members.sum()]
        # A distance of 0 is a difference of squares that are 45.
        np.testing.assert_allclose(statistics[k], expected, atol=0.01)
        np.testing.assert_allclose(shapes[k], looks[members].mean(axis=0), atol=1e-6)
    np.testing.assert_array_equal(statistics[4], 0)
    np.testing.assert_array_equal(shapes[4], 0)


def test_scales_of_votes():
    statistics = np.zeros((4, 5), dtype=np.float32)
    statistics[:, 1] = [2, 0, 4, 0]
    statistics[:, 4] = [10, 1, 10, 0]
    # The median over those with members is 2, squared 4; one member at no distance has nearly 0.
    np.testing.assert_allclose(vote_scales(statistics, False), [2, 0.002, 4, 2])
    np.testing.assert_allclose(vote_scales(statistics, True), [4, 0.004, 16, 4])
    assert (vote_scales(np.zeros((3, 5), dtype=np.float32), True) > 0).all()


def test_squared_distances():
    rng = np.random.default_rng(0)
    a, b = rng.random((40, 136), dtype=np.float32), rng.random((7, 136), dtype=np.float32)
    expected = ((a[:, None].astype(np.float64) - b) ** 2).sum(axis=2)
    np.testing.assert_allclose(squared_distances(a, b), expected, rtol=1e-5)
    assert (squared_distances(a, a) >= 0).all()
    assert squared_distances(a, a).diagonal().max() < 1e-4
