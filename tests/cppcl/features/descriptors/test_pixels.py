import numpy as np
import pytest

from cppcl.errors import InputError
from cppcl.features.descriptors.pixels import Pixels

LUMA = np.array([0.299, 0.587, 0.114])


def _triangle(n_in: int, n_out: int) -> np.ndarray:
    """Resampling matrix: a triangle as wide as two output pixels, cut at the borders."""
    scale = max(n_in / n_out, 1.0)
    centres = (np.arange(n_out) + 0.5) * n_in / n_out
    distances = np.abs(np.arange(n_in) + 0.5 - centres[:, None]) / scale
    weights = np.maximum(1 - distances, 0)
    return weights / weights.sum(axis=1, keepdims=True)


@pytest.fixture
def picture():
    return np.random.default_rng(1).integers(0, 256, (25, 20, 3), dtype=np.uint8)


def test_own_size_gives_the_grey_values_row_by_row(picture):
    row = Pixels(size=(20, 25)).transform([picture])[0]
    np.testing.assert_allclose(row.reshape(25, 20), picture @ LUMA / 255, atol=1e-6)


@pytest.mark.parametrize("size", [(10, 5), (7, 11), (40, 50)])
def test_resizing_is_an_antialiased_triangle_filter(picture, size):
    gray = picture @ LUMA / 255
    expected = _triangle(25, size[1]) @ gray @ _triangle(20, size[0]).T
    row = Pixels(size=size).transform([picture])[0]
    np.testing.assert_allclose(row.reshape(size[::-1]), expected, atol=1e-5)


def test_crop_sees_nothing_outside_its_box(picture):
    crop = (3, 5, 15, 21)
    row = Pixels(crop=crop, size=(6, 8)).transform([picture])[0]
    np.testing.assert_array_equal(row, Pixels(size=(6, 8)).transform([picture[5:21, 3:15]])[0])
    outside = picture.copy()
    outside[:5] = outside[21:] = outside[:, :3] = outside[:, 15:] = 0
    np.testing.assert_array_equal(row, Pixels(crop=crop, size=(6, 8)).transform([outside])[0])


def test_colours(picture):
    row = Pixels(size=(20, 25), color="rgb").transform([picture])[0]
    np.testing.assert_allclose(row.reshape(25, 20, 3), picture / 255, atol=1e-6)


def test_normalisation(picture):
    plain = Pixels(size=(8, 8)).transform([picture])[0].astype(np.float64)
    row = Pixels(size=(8, 8), normalisation="zero_mean_unit_variance").transform([picture])[0]
    np.testing.assert_allclose(row, (plain - plain.mean()) / plain.std(), atol=1e-5)
    assert row.mean() == pytest.approx(0, abs=1e-6)
    assert row.std() == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("value", [0, 77, 255])
def test_normalisation_of_one_value_gives_zeros(value):
    flat = np.full((30, 30, 3), value, dtype=np.uint8)
    row = Pixels(normalisation="zero_mean_unit_variance").transform([flat])[0]
    np.testing.assert_array_equal(row, 0)


@pytest.mark.parametrize("crop", [(0, 0, 21, 25), (0, 0, 20, 26)])
def test_crop_outside_the_picture_names_both(picture, crop):
    with pytest.raises(InputError, match=r"crop=\(0, 0, 2.*width 20 and height 25"):
        Pixels(crop=crop).transform([picture])


def test_crop_up_to_the_border_is_inside(picture):
    assert Pixels(crop=(0, 0, 20, 25)).transform([picture]).shape == (1, 1280)
