import numpy as np
import pytest

from cppcl.features.descriptors.daisy import daisy, gaussian_taps


def test_an_upright_line():
    mask = np.zeros((121, 121), dtype=bool)
    mask[:, 60] = True
    cells = daisy(mask, np.array([60]), np.array([60]))[0].reshape(17, 8)
    # On the line the picture rises and falls by the same amounts, sideways.
    assert 0.95 < np.linalg.norm(cells[0]) < 1
    np.testing.assert_allclose(cells[0, :5], cells[0, [4, 3, 2, 1, 0]], atol=1e-6)
    assert cells[0].argmax() in (0, 4)
    np.testing.assert_allclose(cells[0, [2, 6]], 0, atol=1e-6)
    # To the right of it (t = 0), its left flank is nearer: values fall to the right.
    assert cells[1].argmax() == 4
    assert cells[5].argmax() == 0
    # Along it (t = 2, 6), cells are like the centre.
    np.testing.assert_allclose(cells[[3, 7]], np.stack([cells[0]] * 2), atol=1e-4)


def test_without_marks_or_pixels():
    empty, none = np.zeros((30, 40), dtype=bool), np.zeros(0, dtype=np.int64)
    np.testing.assert_array_equal(daisy(empty, np.array([3]), np.array([4])), np.zeros((1, 136)))
    assert daisy(~empty, none, none).shape == (0, 136)


@pytest.mark.parametrize(("sigma", "length"), [(0.1, 3), (1.52, 7), (3.75, 19), (6.495, 33)])
def test_filters_are_as_long_as_published(sigma, length):
    taps = gaussian_taps(sigma)
    assert len(taps) == length
    assert taps.sum() == pytest.approx(1, abs=1e-6)
    np.testing.assert_array_equal(taps, taps[::-1])
    middle = length // 2
    assert taps[middle + 1] / taps[middle] == pytest.approx(np.exp(-1 / (2 * sigma**2)), rel=1e-5)
