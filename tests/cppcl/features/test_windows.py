import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cppcl.features.windows import areas, integral, random_windows, to_pixels, window_sums


def test_same_seed_same_windows():
    np.testing.assert_array_equal(random_windows(20, 3), random_windows(20, 3))
    assert not np.array_equal(random_windows(20, 3), random_windows(20, 4))


def test_windows_cover_the_stated_sizes():
    left, top, right, bottom = random_windows(20_000, 0).T
    assert min(left.min(), top.min()) >= 0
    assert max(right.max(), bottom.max()) <= 1
    width, height = right - left, bottom - top
    side, aspect = np.sqrt(width * height), width / height
    assert 0.1 <= side.min() < 0.101
    assert 0.79 < side.max() <= 0.8
    assert 0.5 - 1e-9 <= aspect.min() < 0.51
    assert 1.98 < aspect.max() <= 2 + 1e-9
    # Log-uniform: the median is the geometric mean of the limits.
    assert np.median(side) == pytest.approx(np.sqrt(0.1 * 0.8), rel=0.02)
    assert np.median(aspect) == pytest.approx(1, rel=0.02)
    # Uniformly placed where there is room.
    small = width < 0.2
    assert np.mean(left[small] / (1 - width[small])) == pytest.approx(0.5, abs=0.02)


@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 50))
def test_windows_in_pixels_are_inside_and_not_empty(width, height, seed):
    windows = to_pixels(random_windows(30, seed), width, height)
    left, top, right, bottom = windows.T
    assert (left >= 0).all()
    assert (top >= 0).all()
    assert (right <= width).all()
    assert (bottom <= height).all()
    assert (right > left).all()
    assert (bottom > top).all()


def test_sums_equal_counting():
    rng = np.random.default_rng(0)
    planes = rng.random((3, 17, 23)) < 0.3
    windows = to_pixels(random_windows(50, 1), 23, 17)
    counted = [
        [plane[top:bottom, left:right].sum() for left, top, right, bottom in windows]
        for plane in planes
    ]
    np.testing.assert_array_equal(window_sums(integral(planes), windows), counted)
    ones = np.ones((17, 23), dtype=bool)
    np.testing.assert_array_equal(window_sums(integral(ones), windows), areas(windows))
