"""Contours of photographs drawn as sketches."""

from __future__ import annotations

import numpy as np
import pytest

from cppcl.errors import DataUnavailableError, InputError
from cppcl.features.contours.pseudo_sketch import PseudoSketches


def test_edges_become_dark_lines_on_white():
    picture = np.full((100, 200, 3), 200, np.uint8)
    picture[:, 100:] = 40
    drawn = PseudoSketches().draw(picture)
    assert drawn.shape == (100, 200, 3)
    dark = drawn[..., 0] == 0
    assert set(np.unique(drawn)) == {0, 255}
    assert dark[50].sum() == 3
    assert abs(np.flatnonzero(dark[50]).mean() - 99.5) <= 1
    assert (PseudoSketches().draw(np.full((50, 50, 3), 9, np.uint8)) == 255).all()


def test_what_draws_them_is_checked_and_named():
    with pytest.raises(InputError, match="contours='strokes'"):
        PseudoSketches(contours="strokes")
    with pytest.raises(InputError, match="threshold=2 must be at most 1"):
        PseudoSketches(threshold=2)
    assert PseudoSketches(threshold=0.4).parameters() == {"contours": "canny"}
    with pytest.raises(DataUnavailableError, match="no such file"):
        PseudoSketches(contours="missing.pt").parameters()
