import numpy as np
import pytest

from cppcl.features.contours.strokes import normalised_strokes
from cppcl.features.scores.stroke_length import StrokeLength


def lines(n, pen=3, side=240):
    """A sketch of n level lines over the whole width."""
    picture = np.full((side, side, 3), 255, dtype=np.uint8)
    for top in np.linspace(0, side - pen, n).astype(int):
        picture[top : top + pen] = 0
    return picture


def test_equals_counting_the_pixels_of_thinned_strokes(drawings):
    scores = StrokeLength().transform(drawings)
    assert scores.shape == (len(drawings), 1)
    for picture, score in zip(drawings, scores[:, 0], strict=True):
        counted = sum(map(bool, normalised_strokes(picture, thin=True).ravel().tolist()))
        assert score == pytest.approx(counted / 256)
        assert score > 0


def test_the_pen_does_not_matter():
    fine, broad = StrokeLength().transform([lines(3, pen=2), lines(3, pen=9)])[:, 0]
    assert broad == pytest.approx(fine, rel=0.1)


def test_nothing_drawn_scores_nothing():
    assert StrokeLength().transform([np.full((30, 40, 3), 255, np.uint8)]) == 0
