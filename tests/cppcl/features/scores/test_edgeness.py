import numpy as np
import pytest

from cppcl.features.contours.strokes import normalised_strokes
from cppcl.features.scores.edgeness import Edgeness, rim_windows


def _rings(n: int, side: int = 200, stroke: int = 1) -> np.ndarray:
    """A sketch of n nested squares."""
    picture = np.full((side, side, 3), 255, dtype=np.uint8)
    for k in range(n):
        a, b = k * side // (2 * n), side - k * side // (2 * n)
        picture[a:b, a:b] = 0
        picture[a + stroke : b - stroke, a + stroke : b - stroke] = 255
    return picture


@pytest.mark.parametrize("thin", [True, False])
def test_equals_counting_pixels_in_the_rims(thin, drawings):
    extractor = Edgeness(n_windows=25, seed=4, thin=thin)
    scores = extractor.transform(drawings)
    outer, inner = rim_windows(25, 4)
    for picture, score in zip(drawings, scores[:, 0], strict=True):
        strokes = normalised_strokes(picture, thin=thin)
        values = []
        for (left, top, right, bottom), (x0, y0, x1, y1) in zip(outer, inner, strict=True):
            rim = np.zeros_like(strokes)
            rim[top:bottom, left:right] = True
            rim[y0:y1, x0:x1] = False
            thickness = ((right - x1) + (bottom - y1)) / 2
            values.append(thickness * (strokes & rim).sum() / rim.sum())
        assert score == pytest.approx(np.mean(values), rel=1e-5)
        assert score > 0


def test_inner_windows_have_the_published_share_of_the_side():
    outer, inner = rim_windows(500, 0)
    for first, last in ((0, 2), (1, 3)):
        left, right = inner[:, first] - outer[:, first], outer[:, last] - inner[:, last]
        np.testing.assert_array_equal(left, right)
        assert left.min() >= 1
        wide = outer[:, last] - outer[:, first]
        expected = wide * (1 - 100 / 117) / 2
        assert (np.abs(left - expected) <= 0.5).all()


def test_thinning_ignores_the_pen():
    thin_pen, thick_pen = _rings(2, stroke=1), _rings(2, stroke=7)
    a, b = Edgeness().transform([thin_pen, thick_pen])[:, 0]
    assert b == pytest.approx(a, rel=0.25)
    a, b = Edgeness(thin=False).transform([thin_pen, thick_pen])[:, 0]
    assert b > 3 * a


def test_no_strokes_score_zero():
    blank = [np.full((40, 40, 3), value, dtype=np.uint8) for value in (0, 255)]
    np.testing.assert_array_equal(Edgeness().transform(blank), [[0], [0]])
