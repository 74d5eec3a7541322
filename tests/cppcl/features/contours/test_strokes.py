import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cppcl.features.contours.strokes import normalised_strokes
from cppcl.pictures.strokes import stroke_mask


def _picture(mask: np.ndarray, dark: int = 0, light: int = 255) -> np.ndarray:
    gray = np.where(mask, dark, light).astype(np.uint8)
    return np.repeat(gray[..., None], 3, axis=2)


def test_dark_pixels_are_strokes():
    mask = np.random.default_rng(0).random((30, 20)) < 0.2
    np.testing.assert_array_equal(stroke_mask(_picture(mask, 90, 200)), mask)


def test_box_fills_the_size_and_is_centred():
    mask = np.zeros((300, 300), dtype=bool)
    mask[30:70, 200:280] = True
    strokes = normalised_strokes(_picture(mask))
    assert strokes.shape == (256, 256)
    expected = np.zeros((256, 256), dtype=bool)
    expected[78:178, 28:228] = True
    np.testing.assert_array_equal(strokes, expected)


def test_place_and_margin_do_not_matter():
    mask = np.random.default_rng(1).random((40, 30)) < 0.1
    mask[0, 0] = mask[-1, -1] = True
    moved = np.zeros((90, 120), dtype=bool)
    moved[11:51, 60:90] = mask
    np.testing.assert_array_equal(
        normalised_strokes(_picture(mask | np.zeros_like(mask))),
        normalised_strokes(_picture(moved)),
    )


@given(st.integers(20, 1500), st.floats(0, 1))
def test_a_line_of_one_pixel_survives_shrinking(side, place):
    mask = np.zeros((side, side), dtype=bool)
    mask[0] = mask[-1] = True
    mask[:, round(place * (side - 1))] = True
    strokes = normalised_strokes(_picture(mask))
    box = strokes[28:228, 28:228]
    assert box[0].all()
    assert box[-1].all()
    assert box.any(axis=1).all(), "the upright line has gaps"


def test_thinning_leaves_the_middle_of_a_bar():
    mask = np.zeros((100, 210), dtype=bool)
    mask[40:60, 5:205] = True
    thin = normalised_strokes(_picture(mask), thin=True)
    assert set(thin.sum(axis=0)) == {0, 1}
    assert set(np.flatnonzero(thin.any(axis=1))) <= {127, 128}
    assert thin.sum() > 170
