import numpy as np
import pytest
from skimage.color import rgb2lab

from cppcl.features.scores.colour_contrast import (
    ColourContrast,
    colour_bins,
    colour_contrasts,
    shrink,
)
from cppcl.features.scores.windows import random_windows, to_pixels


def _contrast(lab: np.ndarray, window: np.ndarray) -> float:
    """Histogram by histogram, pixel by pixel."""
    height, width = lab.shape[:2]
    left, top, right, bottom = window
    dx, dy = round((right - left) / 2), round((bottom - top) / 2)
    inside, around = np.zeros(256), np.zeros(256)
    for y in range(max(0, top - dy), min(height, bottom + dy)):
        for x in range(max(0, left - dx), min(width, right + dx)):
            lightness, a, b = lab[y, x]
            place = (min(int(lightness // 25), 3), int((a + 120) // 30), int((b + 120) // 30))
            histogram = inside if left <= x < right and top <= y < bottom else around
            histogram[np.ravel_multi_index(place, (4, 8, 8))] += 1
    if around.sum() == 0:
        return 0.0
    p, q = inside / inside.sum(), around / around.sum()
    return sum((s - t) ** 2 / (s + t) for s, t in zip(p, q, strict=True) if s + t > 0)


@pytest.fixture
def picture():
    rng = np.random.default_rng(0)
    picture = np.full((30, 40, 3), 255, dtype=np.uint8)
    picture[8:22, 10:25] = (200, 30, 40)
    picture[18:28, 20:38] = rng.integers(0, 256, (10, 18, 3))
    return picture


def test_equals_counting_histograms(picture):
    windows = to_pixels(random_windows(25, 3), 40, 30)
    windows = np.vstack([windows, [[0, 0, 40, 30], [0, 0, 1, 1], [0, 0, 40, 15]]])
    lab = rgb2lab(picture)
    expected = [_contrast(lab, window) for window in windows]
    contrasts = colour_contrasts(colour_bins(picture), windows)
    np.testing.assert_allclose(contrasts, expected, atol=1e-12)
    assert contrasts[-3] == 0
    assert (contrasts <= 2).all()


def test_score_is_the_median_of_the_30_highest(picture):
    for n_windows in (200, 12):
        windows = to_pixels(random_windows(n_windows, 5), 40, 30)
        contrasts = np.sort(colour_contrasts(colour_bins(picture), windows))
        score = ColourContrast(n_windows=n_windows, seed=5).transform([picture])[0, 0]
        assert score == pytest.approx(np.median(contrasts[-30:]), rel=1e-6)


def test_large_pictures_score_like_small_ones():
    picture = np.full((120, 160, 3), 250, dtype=np.uint8)
    picture[40:80, 30:100] = (30, 60, 200)
    large = picture.repeat(3, axis=0).repeat(3, axis=1)
    small, big = ColourContrast().transform([picture, large])[:, 0]
    assert big == pytest.approx(small, rel=0.05)


def test_shrinking_keeps_the_aspect_and_small_pictures():
    assert shrink(np.zeros((320, 200, 3), np.uint8), 160).shape == (160, 100, 3)
    assert shrink(np.zeros((1, 900, 3), np.uint8), 160).shape == (1, 160, 3)
    small = np.zeros((160, 3, 3), np.uint8)
    assert shrink(small, 160) is small


def test_bins_of_the_corners_of_the_colour_cube_are_valid():
    corners = np.array(np.meshgrid([0, 255], [0, 255], [0, 255])).reshape(3, 1, 8)
    bins = colour_bins(corners.transpose(1, 2, 0).astype(np.uint8))
    assert bins.min() >= 0
    assert bins.max() < 256
    assert len(np.unique(bins)) == 8
