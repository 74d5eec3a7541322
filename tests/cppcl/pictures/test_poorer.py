"""Thinned and jittered drawings: how much is left, how far strokes are from their places."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest

from cppcl.errors import InputError
from cppcl.pictures.decoding import decode_picture
from cppcl.pictures.poorer import DISPLACEMENT, jittered, thinned
from cppcl.pictures.unfinished import drawn
from tests.cppcl.pictures.test_unfinished import svg

LINES = svg(*(f'line x1="10" y1="{y}" x2="90" y2="{y}"' for y in range(5, 100, 10)))


def rows_with_ink(text: str) -> set[int]:
    picture = decode_picture(text.encode(), longest_side=100, name="x")
    return set(np.flatnonzero((picture[..., 0] < 128).any(axis=1)) // 10)


def test_a_share_of_the_strokes_is_left_and_a_larger_one_has_them_too():
    kept = [rows_with_ink(thinned(LINES, share, seed=4)) for share in (0.05, 0.3, 0.6, 1.0)]
    assert [len(rows) for rows in kept] == [1, 3, 6, 10]
    assert kept[0] < kept[1] < kept[2] < kept[3]
    assert rows_with_ink(thinned(LINES, 0.3, seed=5)) != kept[1]


def moves(text: str) -> np.ndarray:
    lines = [e for e in ElementTree.fromstring(text).iter() if e.tag.endswith("line")]
    found = [e.get("transform", "")[len("translate(") : -1].split() for e in lines]
    return np.array(found, dtype=float)


def test_strokes_move_the_further_the_smaller_the_share():
    many = svg(*(f'line x2="{k}"' for k in range(2000)))
    half, most = moves(jittered(many, 0.5, seed=1)), moves(jittered(many, 0.9, seed=1))
    np.testing.assert_allclose(half, 5 * most, atol=0.01)
    np.testing.assert_allclose(half.std(axis=0), 100 * DISPLACEMENT / 2, rtol=0.06)
    np.testing.assert_allclose(half.mean(axis=0), 0, atol=0.6)


def test_a_stroke_that_is_turned_is_moved_as_the_others():
    turned = svg('line x1="10" x2="60" y1="10" y2="10" transform="rotate(90)"')
    moved = jittered(turned, 0.5, seed=2)
    assert "rotate(90)" in moved
    assert moved.index("translate") < moved.index("rotate")


@pytest.mark.parametrize("change", [thinned, jittered])
def test_whole_drawings_are_themselves_and_nonsense_is_refused(change):
    assert change(LINES, 1.0) is LINES
    with pytest.raises(InputError, match=r"share=0 of a drawing must lie in \(0, 1\]"):
        change(LINES, 0)
    with pytest.raises(InputError, match="no shapes"):
        change(svg(), 0.5)


def test_a_drawing_without_view_box_cannot_be_jittered():
    with pytest.raises(InputError, match="viewBox=None of a drawing must have four numbers"):
        jittered(LINES.replace('viewBox="0 0 100 100"', ""), 0.5)


@pytest.mark.parametrize("poorer", [drawn, thinned, jittered])
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("<svg", "is no SVG"),
        ("<svg>" + "<g>" * 3000 + '<line x2="9"/>' + "</g>" * 3000 + "</svg>", "too deep"),
    ],
)
def test_what_cannot_be_read_is_refused(poorer, text, reason):
    with pytest.raises(InputError, match=reason):
        poorer(text, 0.5)


def test_of_strokes_without_length_one_is_left():
    dots = svg(*(f'line x1="{k}" x2="{k}"' for k in range(3)))
    assert thinned(dots, 0.5).count("<line") == 1
