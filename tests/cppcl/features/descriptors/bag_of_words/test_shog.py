import numpy as np
import pytest

from cppcl.features.descriptors.bag_of_words.shog import (
    Shog,
    describe_windows,
    orientation_responses,
    window_centres,
    window_side,
)


@pytest.fixture
def blot():
    """An asymmetric mark amid blank margins."""
    mask = np.zeros((56, 56), dtype=bool)
    mask[20:24, 14:40] = mask[20:45, 14:17] = True
    mask[np.arange(25, 40), np.arange(20, 35)] = True
    return mask


@pytest.mark.parametrize(("degrees", "orientation"), [(0, 2), (45, 3), (90, 0), (135, 1)])
def test_a_line_is_in_the_orientation_of_its_normal(degrees, orientation):
    y, x = np.mgrid[-40:41, -40:41]
    turn = np.radians(degrees)  # clockwise, as rows run downwards
    mask = np.abs(np.cos(turn) * y - np.sin(turn) * x) < 1.5
    shares = orientation_responses(mask)[:, 20:-20, 20:-20].sum(axis=(1, 2))
    assert shares.argmax() == orientation
    assert shares[orientation] > 0.9 * shares.sum()


def test_windows_without_a_contour_are_dropped(blot):
    centres = np.array([[4, 4], [28, 28], [31, 4], [28, 3]])
    descriptors, seen = describe_windows(blot, centres)
    # The window around column 4 ends at column 14, where strokes start.
    assert seen.tolist() == [False, True, False, False]
    assert not descriptors[~seen].any()
    assert describe_windows(blot, np.array([[31, 5]]))[1].tolist() == [True]
    np.testing.assert_allclose(np.linalg.norm(descriptors[seen], axis=1), 1, atol=1e-6)


@pytest.mark.parametrize("shape", [(1, 1), (1, 256), (2, 3), (256, 256)])
def test_windows_cover_an_eighth_of_the_picture(shape):
    side = window_side(shape)
    assert side % 4 == 0
    assert (side - 4) ** 2 < shape[0] * shape[1] / 8 <= side**2


def test_places_of_windows():
    grid = window_centres("grid", 625, 0)
    assert grid.shape == (625, 2)
    np.testing.assert_allclose(
        grid[[0, 1, 25, -1]], [[0.02, 0.02], [0.02, 0.06], [0.06, 0.02], [0.98, 0.98]]
    )
    assert window_centres("grid", 30, 0).shape == (25, 2)
    places = window_centres("random", 500, 0)
    assert places.shape == (500, 2)
    assert not np.array_equal(places, window_centres("random", 500, 1))
    np.testing.assert_allclose(places.mean(axis=0), 0.5, atol=0.05)


def test_the_grid_is_an_option(drawings):
    _, positions = Shog(sampling="grid", n_windows=16).local_descriptors(drawings[0])
    assert {*np.unique(positions)} <= {0.125, 0.375, 0.625, 0.875}
    _, positions = Shog(n_windows=7).local_descriptors(drawings[0])
    assert len(positions) <= 7
