"""The form of drawings: measured, and given to others."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image, ImageDraw

from cppcl.pictures.decoding import Picture
from cppcl.pictures.form import Form, form_of, in_form, is_line_drawing
from cppcl.pictures.jitter import jittered, wiped
from cppcl.pictures.strokes import ink_box, line_width, luma, stroke_mask

FORM = Form(160, 160, 0.04, 0.75, (0.5, 0.5))


def house(*, side: int = 200, scale: float = 1.0, at: tuple[int, int] = (40, 50), line: int = 6):
    """Walls, a roof and a door."""
    image = Image.new("RGB", (side, side), "white")
    draw = ImageDraw.Draw(image)
    for points in (
        [(0, 40), (0, 100), (90, 100), (90, 40), (0, 40)],
        [(0, 40), (45, 0), (90, 40)],
        [(30, 100), (30, 65), (55, 65), (55, 100)],
    ):
        placed = [(at[0] + scale * x, at[1] + scale * y) for x, y in points]
        draw.line(placed, fill="black", width=line, joint="curve")
        for x, y in placed:
            draw.ellipse((x - line / 2, y - line / 2, x + line / 2, y + line / 2), fill="black")
    return np.array(image)


def away(a: Picture, b: Picture, pixels: int = 2) -> float:
    """Share of the strokes of either drawing that are so far from those of the other."""
    from scipy.ndimage import distance_transform_edt

    masks = [stroke_mask(picture) for picture in (a, b)]
    far = [
        (distance_transform_edt(~other)[mask] > pixels).mean()
        for mask, other in (masks, masks[::-1])
    ]
    return float(max(far))


class TestMeasuring:
    @pytest.mark.parametrize("width", [3, 4, 9])
    @pytest.mark.parametrize("place", [(20, 30, 180, 90), (0, 0, 199, 159)])
    def test_lines_and_boxes_are_measured(self, width, place):
        image = Image.new("RGB", (200, 160), "white")
        ImageDraw.Draw(image).rectangle(place, outline="black", width=width)
        form = form_of([np.asarray(image)])
        left, top, right, bottom = place
        assert (form.width, form.height) == (200, 160)
        assert form.line == pytest.approx(width / 200, abs=0.51 / 200)
        assert form.extent == max((right + 1 - left) / 200, (bottom + 1 - top) / 160)
        middle = ((left + right + 1) / 400, (top + bottom + 1) / 320)
        assert form.centre == pytest.approx(middle)

    @pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
    def test_width_is_that_of_a_distance_transform(self, share):
        from scipy.ndimage import distance_transform_edt
        from skimage.morphology import skeletonize

        mask = np.random.default_rng(0).random((40, 50)) < share
        padded = np.pad(mask, 1)
        depths = distance_transform_edt(padded)[skeletonize(padded)]
        assert line_width(mask) == 2 * np.median(depths) - 0.5

    def test_medians_count_and_pictures_of_one_colour_do_not(self):
        pictures = [np.full((90, 90, 3), 255, np.uint8)] * 5
        assert form_of(pictures) == Form()
        for width in (2, 4, 10):
            drawn = np.full((90, 90, 3), 255, np.uint8)
            drawn[20:70, 40 : 40 + width] = 0
            pictures.append(drawn)
        assert form_of(pictures).line == pytest.approx(4 / 90, abs=0.51 / 90)


class TestGiving:
    @pytest.mark.parametrize(
        "changed",
        [
            {"at": (5, 5)},
            {"scale": 0.5, "line": 3},
            {"line": 3},
            {"line": 14},
            {"side": 400, "scale": 3, "line": 20},
        ],
    )
    def test_however_it_was_drawn_it_has_the_form(self, changed):
        given = in_form(house(**changed), FORM)
        measured = form_of([given])
        assert given.shape == (160, 160, 3)
        assert measured.line == pytest.approx(FORM.line, abs=1 / 160)
        assert measured.extent == pytest.approx(FORM.extent, abs=2.5 / 160)
        assert measured.centre == pytest.approx(FORM.centre, abs=2 / 160)
        assert away(given, in_form(house(), FORM)) < 0.03

    def test_what_has_the_form_stays_as_it_is(self):
        given = in_form(house(), FORM)
        assert in_form(given, form_of([given])) is given
        assert away(in_form(given, FORM), given, pixels=1) < 0.04

    def test_a_form_need_be_neither_square_nor_centred(self):
        form = Form(200, 120, 0.02, 0.6, (0.4, 0.6))
        measured = form_of([in_form(house(), form)])
        assert (measured.width, measured.height) == (200, 120)
        assert measured.centre == pytest.approx(form.centre, abs=1 / 120)
        assert measured.extent == pytest.approx(form.extent, abs=1.5 / 120)

    def test_filled_areas_stay_filled_where_lines_become_narrower(self):
        picture = house(line=12)
        picture[110:150, 60:110] = 0
        given = luma(in_form(picture, FORM))
        assert given[100:125, 65:95].max() == 0

    def test_strokes_that_are_light_on_dark_are_turned_over(self):
        np.testing.assert_array_equal(in_form(255 - house(), FORM), in_form(house(), FORM))

    @pytest.mark.parametrize("side", [1, 30])
    def test_a_dot_and_an_empty_picture_are_no_errors(self, side):
        picture = np.full((100, 100, 3), 255, np.uint8)
        assert in_form(picture, FORM) is picture
        picture[50 : 50 + side, 40 : 40 + side] = 0
        assert ink_box(stroke_mask(in_form(picture, FORM)))

    def test_what_is_no_line_drawing_is_left_alone(self):
        shades = np.tile(np.linspace(0, 255, 120).astype(np.uint8)[:, None, None], (1, 120, 3))
        assert not is_line_drawing(luma(shades))
        assert in_form(shades, FORM) is shades
        assert is_line_drawing(luma(house()))


class TestJitter:
    def test_it_changes_what_it_says_within_its_bounds(self):
        rng = np.random.default_rng(0)
        made = [jittered(house(), FORM, rng) for _ in range(20)]
        found = [form_of([picture]) for picture in made]
        lines = np.array([form.line for form in found]) / FORM.line
        extents = np.array([form.extent for form in found]) / FORM.extent
        assert 0.3 < lines.min() < 1 < 2 < lines.max() < 3.6
        assert 0.55 < extents.min() < 0.75 < 0.9 < extents.max() < 1.02
        assert np.ptp([form.centre for form in found], axis=0).min() > 0.15
        again = jittered(house(), FORM, np.random.default_rng(0))
        np.testing.assert_array_equal(again, made[0])

    @pytest.mark.parametrize("share", [0.0, 0.1, 0.3])
    def test_no_more_is_wiped_out_than_is_said(self, share):
        before = stroke_mask(house())
        after = wiped(house(), share, np.random.default_rng(1))
        left = luma(after) < 128
        gone = 1 - left.sum() / before.sum()
        assert not (left & ~before).any()
        assert gone <= share
        assert gone > share - 0.1
