import numpy as np
import pytest
from skimage.feature import canny
from skimage.filters import gaussian

from cppcl.features.contours.detection import (
    adaptive_canny,
    canny_edges,
    centred,
    contour_mask,
    contours_on_canvas,
    resize_longest_side,
)
from cppcl.features.contours.strokes import normalised_strokes


def _rgb(gray: np.ndarray) -> np.ndarray:
    return np.repeat(np.asarray(gray, dtype=np.uint8)[..., None], 3, axis=2)


def _disk(side: int = 200, radius: float = 60, dark: int = 40, light: int = 210) -> np.ndarray:
    y, x = np.mgrid[:side, :side] - (side - 1) / 2
    return _rgb(np.where(np.hypot(x, y) < radius, dark, light))


@pytest.fixture
def textured():
    """A grey picture with detail at every scale, (150, 200)."""
    rng = np.random.default_rng(0)
    layers = [gaussian(rng.random((150, 200)), scale) * scale for scale in (1, 3, 9)]
    gray = sum(layers)
    return (gray - gray.min()) / np.ptp(gray)


def test_strokes_are_cropped_and_brought_to_size():
    picture = np.full((300, 400, 3), 255, dtype=np.uint8)
    picture[50:91, 100] = picture[50:91, 180] = 0
    picture[50, 100:181] = 0
    mask = contour_mask(picture, longest_side=162)
    assert mask.shape == (82, 162)
    assert mask[:2].all()
    assert mask[:, :2].all()
    assert mask[:, -2:].all()
    assert not mask[3:, 3:-3].any()
    np.testing.assert_array_equal(
        centred(contour_mask(picture), 256), normalised_strokes(picture, size=200, canvas=256)
    )


def test_strokes_may_keep_their_frame():
    picture = np.full((100, 200, 3), 255, dtype=np.uint8)
    picture[40:60, 30:50] = 0
    mask = contour_mask(picture, crop=False, longest_side=400)
    assert mask.shape == (200, 400)
    np.testing.assert_array_equal(np.flatnonzero(mask.any(axis=1)), np.arange(80, 120))
    np.testing.assert_array_equal(np.flatnonzero(mask.any(axis=0)), np.arange(60, 100))
    # A thin line survives where it shrinks to a third of a pixel.
    picture[:] = 255
    picture[50] = 0
    assert contour_mask(picture, crop=False, longest_side=66).any(axis=0).all()


def test_edges_of_a_disk_lie_on_its_rim():
    mask = contour_mask(_disk(), contours="canny")
    assert mask.shape == (200, 200)
    rows, columns = np.nonzero(mask)
    radii = np.hypot(rows - 99.5, columns - 99.5)
    assert np.abs(radii - 60).max() < 1.5
    angles = np.degrees(np.arctan2(rows - 99.5, columns - 99.5)) // 5
    assert len(np.unique(angles)) == 72, "the rim has gaps"


def _soft(scale: float) -> np.ndarray:
    gray = gaussian(np.random.default_rng(1).random((150, 200)), scale)
    return (gray - gray.min()) / np.ptp(gray)


def _square() -> np.ndarray:
    """A square whose rim, less than 1 % of all pixels, has rounder corners at coarser scales."""
    gray = np.zeros((200, 200))
    gray[79:121, 79:121] = 0.3
    gray[80:120, 80:120] = 1
    return gray


@pytest.mark.parametrize(("kind", "chosen"), [("fine", None), ("soft", 19), ("square", 1)])
def test_adaptive_canny_takes_the_coarsest_scale_with_enough_edges(kind, chosen, textured):
    gray = {"fine": textured, "soft": _soft(3), "square": _square()}[kind]
    for length in range(19, 0, -2):
        expected = canny(
            gray,
            sigma=0.3 * (length / 2 - 1) + 0.8,
            low_threshold=0.9,
            high_threshold=0.95,
            use_quantiles=True,
            mode="nearest",
        )
        if expected.mean() > 0.02:
            break
    assert length == chosen if chosen else 1 < length < 19
    np.testing.assert_array_equal(adaptive_canny(gray), expected)
    assert expected.any()


def test_gradient_of_a_ramp():
    ramp = np.tile(np.arange(50) / 100, (40, 1))
    _, gradient = canny_edges(ramp, 1.0)
    # Sobel's weights on both sides sum to 8.
    np.testing.assert_allclose(gradient[10:-10, 10:-10], 0.08)


@pytest.mark.parametrize("value", [0, 77, 255])
@pytest.mark.parametrize("contours", ["strokes", "canny"])
def test_one_value_has_no_contours(contours, value):
    picture = np.full((40, 70, 3), value, dtype=np.uint8)
    assert not contour_mask(picture, contours=contours).any()
    assert not contours_on_canvas(picture, contours=contours).any()


def test_rounding_is_no_edge():
    gray = np.full((80, 80), 0.7)
    gray += 1e-7 * np.random.default_rng(0).random(gray.shape)
    assert not adaptive_canny(gray).any()


def test_strokes_of_the_negative_are_not_the_same():
    picture = _disk(radius=10)
    assert contour_mask(picture, crop=False).mean() < 0.05
    assert contour_mask(255 - picture, crop=False).mean() > 0.9


SIZES = {
    "one pixel": (1, 1),
    "thin": (1, 500),
    "upright": (500, 1),
    "large": (3000, 4000),
    "small": (2, 3),
}


@pytest.mark.parametrize("contours", ["strokes", "canny"])
@pytest.mark.parametrize("shape", SIZES.values(), ids=SIZES)
def test_any_size(contours, shape):
    picture = np.full((*shape, 3), 255, dtype=np.uint8)
    picture[shape[0] // 3 : shape[0] // 2 + 1, shape[1] // 3 : shape[1] // 2 + 1] = 10
    mask = contour_mask(picture, contours=contours, crop=False)
    assert max(mask.shape) == 200
    assert mask.shape == tuple(max(1, round(side * 200 / max(shape))) for side in shape)
    assert mask.dtype == bool
    canvas = contours_on_canvas(picture, contours=contours)
    assert canvas.shape == (256, 256)
    # An edge needs pixels on both sides of it.
    assert canvas.any() == (shape != (1, 1) and (contours == "strokes" or min(mask.shape) > 2))


def test_photographs_keep_their_frame_in_the_middle_of_the_canvas():
    picture = np.full((100, 200, 3), 255, dtype=np.uint8)
    picture[20:40, 20:60] = 0
    canvas = contours_on_canvas(picture, contours="canny")
    np.testing.assert_array_equal(canvas[78:178, 28:228], contour_mask(picture, contours="canny"))
    assert canvas.sum() == canvas[78:178, 28:228].sum()


@pytest.mark.parametrize("contours", ["strokes", "canny"])
def test_thinning_leaves_lines_of_one_pixel(contours):
    picture = _disk()
    picture[70:130, 70:130] = 200
    thick = contours_on_canvas(picture, contours=contours)
    thin = contours_on_canvas(picture, contours=contours, thin=True)
    assert thin.sum() < thick.sum()
    assert (thin <= thick).all()
    blocks = thin[:-1, :-1] & thin[1:, :-1] & thin[:-1, 1:] & thin[1:, 1:]
    assert not blocks.any()


def test_resizing_keeps_the_aspect_and_means():
    picture = np.random.default_rng(0).integers(0, 256, (90, 300, 3), dtype=np.uint8)
    resized = resize_longest_side(picture, 100)
    assert resized.shape == (30, 100, 3)
    assert abs(resized.mean() - picture.mean()) < 2
    assert resized.std() < picture.std() / 2
