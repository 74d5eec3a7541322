import numpy as np
import pytest
from PIL import Image, ImageDraw

from cppcl.features.descriptors.grids import cell_of, nearest_cells
from cppcl.features.descriptors.shelo import Helo, Shelo, cell_angles, sobel
from tests.cppcl.features.scenes import cosine, drawing


def _rgb(image: Image.Image) -> np.ndarray:
    return np.asarray(image.convert("RGB"))


def line(degrees: float, width: int = 3, side: int = 256) -> np.ndarray:
    """A line through the middle, clockwise from the right."""
    image = Image.new("L", (side, side), 255)
    step = 0.45 * side * np.array([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))])
    middle = np.array([side / 2, side / 2])
    ends = [tuple(middle - step), tuple(middle + step)]
    ImageDraw.Draw(image).line(ends, 0, width)
    return _rgb(image)


@pytest.mark.parametrize("degrees", [10, 45, 80, 90, 120, 170])
def test_a_line_is_in_the_bin_of_its_direction(degrees):
    picture = line(degrees)
    row = Helo().transform([picture])[0]
    away = np.abs((np.arange(72) + 0.5) * 2.5 - degrees)
    away = np.minimum(away, 180 - away)
    assert row[away < 12].sum() > 0.75
    assert away[row.argmax()] < 10
    histograms = Shelo(root=False).transform([picture])[0].reshape(6, 6, 36)
    away = np.abs((np.arange(36) + 0.5) * 5 - degrees)
    away = np.minimum(away, 180 - away)
    middle = histograms[2:4, 2:4].sum(axis=(0, 1))
    assert middle[away < 15].sum() > 0.8 * middle.sum()


def test_dimensions_as_printed():
    picture = drawing(0)
    assert Helo().transform([picture]).shape == (1, 72)
    assert Shelo().transform([picture]).shape == (1, 1296)
    assert Helo(bins=36).dimension == 36
    assert Shelo(bins=8, blocks=3).dimension == 72


def test_cells_of_little_magnitude_are_left_out():
    picture = line(0, width=4).copy()
    # A faint crossing of one pixel, in one cell of the grid alone.
    picture[60:64, 128] = 0
    few = Shelo(least_magnitude=0.3, root=False).transform([picture])[0]
    many = Shelo(least_magnitude=0, root=False).transform([picture])[0]
    assert np.count_nonzero(few) < np.count_nonzero(many)


@pytest.mark.parametrize("extractor", [Helo(), Shelo()])
def test_no_contours_give_zeros(extractor):
    flat = [np.full((40, 60, 3), value, dtype=np.uint8) for value in (0, 128, 255)]
    np.testing.assert_array_equal(extractor.transform(flat), 0)


def test_smoothing_cells_turns_them_towards_their_neighbours():
    s, c = np.zeros((5, 5), dtype=np.float32), np.ones((5, 5), dtype=np.float32)
    c[2, 2] = -0.2
    plain, smooth = cell_angles(s, c, False), cell_angles(s, c, True)
    assert plain[2, 2] == pytest.approx(0)
    assert smooth[2, 2] == pytest.approx(np.pi / 2)
    rows = [Shelo(smooth_cells=flag).transform([drawing(3)])[0] for flag in (False, True)]
    assert 0.5 < cosine(*rows) < 0.999


def test_sobel_of_ramps():
    y, x = np.mgrid[:6, :7].astype(np.float32)
    gx, gy = sobel(3 * x - 2 * y)
    np.testing.assert_allclose(gx[:, 1:-1], 24)
    np.testing.assert_allclose(gy[1:-1], -16)


def test_matrices_of_cells_are_shared_and_cannot_be_written():
    assert cell_of(10, 3) is cell_of(10, 3)
    for matrix in (cell_of(10, 3), *nearest_cells(10, 3)):
        with pytest.raises(ValueError, match="read-only"):
            matrix[0, 0] = 5
