import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cppcl.features.scores.windows import (
    areas,
    highest,
    integral,
    random_windows,
    rim_densities,
    rims,
    to_pixels,
    window_sums,
)


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
    marked = np.random.default_rng(0).random((17, 23)) < 0.3
    windows = to_pixels(random_windows(50, 1), 23, 17)
    counted = [marked[top:bottom, left:right].sum() for left, top, right, bottom in windows]
    np.testing.assert_array_equal(window_sums(integral(marked), windows), counted)
    ones = np.ones((17, 23), dtype=bool)
    np.testing.assert_array_equal(window_sums(integral(ones), windows), areas(windows))


def test_rim_densities_equal_counting():
    marked = np.random.default_rng(1).random((90, 120)) < 0.2
    outer = to_pixels(random_windows(60, 2), 120, 90)
    outer[0] = 3, 4, 4, 5  # one pixel: no inner window
    inner = rims(outer)
    expected = []
    for (l0, t0, r0, b0), (l1, t1, r1, b1) in zip(outer, inner, strict=True):
        rim = np.zeros(marked.shape, dtype=bool)
        rim[t0:b0, l0:r0] = True
        rim[t1 : max(b1, t1), l1 : max(r1, l1)] = False
        thickness = (r0 - max(r1, l1) + b0 - max(b1, t1)) / 2
        expected.append(thickness * marked[rim].mean())
    np.testing.assert_allclose(rim_densities(marked, outer, inner), expected, atol=1e-12)
    assert (inner[1:, 2:] > inner[1:, :2]).mean() > 0.9
    width = (inner[:, 2:] - inner[:, :2]) / (outer[:, 2:] - outer[:, :2])
    large = (outer[:, 2:] - outer[:, :2]).min(axis=1) > 30
    np.testing.assert_allclose(width[large], 100 / 117, atol=0.04)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 200), overlap=st.sampled_from([0.2, 0.5, 0.8]))
def test_highest_windows_equal_greedy_suppression(seed, overlap):
    rng = np.random.default_rng(seed)
    windows = to_pixels(random_windows(40, seed, scale=(0.3, 0.9)), 60, 50)
    scores = rng.integers(0, 10, 40) / 10.0
    kept: list[int] = []
    for k in sorted(range(40), key=lambda k: (-scores[k], k)):
        if all(intersection_over_union(windows[k], windows[e]) <= overlap for e in kept):
            kept.append(k)
    np.testing.assert_array_equal(highest(windows, scores, overlap, 7), kept[:7])
    ordered = sorted(range(40), key=lambda k: (-scores[k], k))
    np.testing.assert_array_equal(highest(windows, scores, 1.0, 7), ordered[:7])


def intersection_over_union(a, b) -> float:
    pixels = [
        {(x, y) for x in range(box[0], box[2]) for y in range(box[1], box[3])} for box in (a, b)
    ]
    return len(pixels[0] & pixels[1]) / len(pixels[0] | pixels[1])
