"""The figure of layers shows what is in them: pixels are counted."""

import io

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from PIL import Image

from cppcl.features.layers import Numbers, Seen, Tiles
from cppcl.report.layers_figure import LINE, _folded, layers_png
from cppcl.report.style import COLOURS


def pixels(*layers):
    with Image.open(io.BytesIO(layers_png("a title of $x", list(layers)))) as image:
        return np.asarray(image.convert("RGB")).astype(int)


def share(drawn, colour, tolerance=12):
    wanted = 255 * np.array(to_rgb(colour))
    return float((np.abs(drawn - wanted) <= tolerance).all(axis=2).mean())


WHITE = np.full((40, 60, 3), 255, dtype=np.uint8)
MASK = np.zeros((40, 60), dtype=bool)
MASK[10:20, 10:30] = True


def test_marks_are_dark_and_pictures_as_they_are():
    assert 0.03 < share(pixels(Seen("marks", MASK)), "black") < 0.12
    red = WHITE.copy()
    red[:20] = (200, 30, 30)
    assert share(pixels(Seen("red", red)), (200 / 255, 30 / 255, 30 / 255)) > 0.15


def test_a_picture_fades_under_what_lies_over_it():
    points = np.argwhere(MASK)
    drawn = pixels(Seen("points", MASK, points=points, groups=np.full(len(points), 1)))
    assert share(drawn, COLOURS[1]) > 0.01
    bare = share(pixels(Seen("marks", MASK)), "black", 0)
    assert share(pixels(Seen("box", MASK, boxes=np.array([[1, 1, 5, 5]]))), "black", 0) < bare / 3


@pytest.mark.parametrize(
    "layer",
    [
        Seen("boxes", WHITE, boxes=np.array([[-20, 5, 30, 90], [2, 2, 8, 8]])),
        Seen("lines", WHITE, angles=np.zeros((4, 6, 1)), lengths=np.ones((4, 6, 1))),
    ],
    ids=lambda layer: layer.title,
)
def test_boxes_and_lines_are_drawn(layer):
    assert share(pixels(Seen("nothing", WHITE)), LINE, 40) == 0
    assert share(pixels(layer), LINE, 40) > 0.0005


def test_lines_have_the_angle_that_they_are_given():
    """Angle 0 is to the right, a quarter turn is down."""
    extents = []
    for angle in (0, np.pi / 2):
        lengths = np.array([[[1.0]]])
        drawn = pixels(Seen("one", WHITE[:, :40], angles=angle * lengths, lengths=lengths))
        wanted = 255 * np.array(to_rgb(LINE))
        rows, columns = np.nonzero((np.abs(drawn - wanted) <= 60).all(axis=2))
        extents.append((np.ptp(rows), np.ptp(columns)))
    assert extents[0][1] > 20 * extents[0][0]
    assert extents[1][0] > 20 * extents[1][1]


def test_what_reaches_beyond_a_picture_does_not_shrink_it():
    inside = Seen("box", MASK, boxes=np.array([[1, 1, 5, 5]]))
    beyond = Seen("box", MASK, boxes=np.array([[-500, 1, 5, 5]]))
    grey = [share(pixels(layer), str(1 - 0.35)) for layer in (inside, beyond)]
    assert grey[1] == pytest.approx(grey[0], rel=0.05)


def test_tiles_have_the_colours_of_groups():
    tiles = Tiles("tiles", np.zeros((2, 9, 9)), ("60 %", "40 %"))
    drawn = pixels(tiles)
    assert min(share(drawn, COLOURS[0]), share(drawn, COLOURS[1])) > 0.002
    assert share(drawn, COLOURS[2]) == 0
    assert pixels(Tiles("none", np.zeros((0, 9, 9)), ())).min() < 255  # its title


def test_few_numbers_are_bars_and_many_a_map_of_colours():
    assert share(pixels(Numbers("bars", np.arange(9.0))), COLOURS[0]) > 0.1
    viridis_low, viridis_high = (68 / 255, 1 / 255, 84 / 255), (253 / 255, 231 / 255, 37 / 255)
    half = np.repeat([0.0, 2.0], 500)
    drawn = pixels(Numbers("map", half))
    assert min(share(drawn, viridis_low), share(drawn, viridis_high)) > 0.1
    # Where numbers have signs, zero is white and both ends are as far.
    drawn = pixels(Numbers("signed", np.repeat([-2.0, 0, 1.0], 400)))
    assert share(drawn, (5 / 255, 48 / 255, 97 / 255)) > 0.1
    assert share(drawn, (103 / 255, 0, 31 / 255)) < 0.02
    assert pixels(Numbers("none", np.zeros(300))).shape[0] > 100


def test_a_long_vector_runs_on_line_after_line():
    lines = _folded(np.arange(7.0))
    np.testing.assert_array_equal(lines[:2], [[0, 1, 2], [3, 4, 5]])
    assert lines[2, 0] == 6
    assert np.isnan(lines[2, 1:]).all()


def test_the_same_layers_give_the_same_bytes_of_a_size_that_grows_with_them():
    layers = [Seen("a", MASK), Numbers("b", np.arange(300.0))]
    assert layers_png("t", layers) == layers_png("t", layers)
    shapes = [pixels(*[Seen("a", MASK)] * n).shape for n in (1, 2, 3, 4, 5)]
    assert [s[1] for s in shapes] == [480, 960, 1440, 960, 1440]
    assert shapes[3][0] == shapes[4][0] > shapes[2][0]
