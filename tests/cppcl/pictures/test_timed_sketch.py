"""Sketches in time: what is read, how much of the ink is there, and how it is drawn."""

from __future__ import annotations

import json

import numpy as np
import pytest

from cppcl.errors import InputError
from cppcl.pictures.svg_strokes import strokes_of_svg
from cppcl.pictures.timed_sketch import LONGEST_LINE, TimedSketch, read_quickdraw

L = TimedSketch.of([[(0, 0), (30, 0)], [(30, 0), (30, 40), (60, 40)]])


def test_a_share_of_the_ink_ends_within_a_stroke():
    assert L.ink == 100
    assert L.box == (0, 0, 60, 40)
    assert [len(L.first(s).strokes) for s in (0.1, 0.3, 0.31, 1.0)] == [1, 1, 2, 2]
    np.testing.assert_allclose(L.first(0.8).strokes[1], [(30, 0), (30, 40), (40, 40)])
    for share in (0.01, 0.3, 0.55, 0.999):
        assert L.first(share).ink == pytest.approx(100 * share)
    assert L.first(1.0) is L
    dots = TimedSketch.of([[(1, 1)], [(2, 2)]])
    assert dots.first(0.5) is dots, "dots have no ink, and are there at once"
    with pytest.raises(InputError, match=r"share=0 of a sketch must lie in \(0, 1\]"):
        L.first(0)


def test_rounding_ends_no_stroke_beyond_its_points():
    """Sums of one length in another order differ in their last digits."""
    rng = np.random.default_rng(0)
    for n in range(9, 60):
        stroke = rng.normal(size=(n, 2))
        five = TimedSketch((stroke,) * 5)
        for fifths in range(1, 5):
            assert five.first(fifths / 5).ink == pytest.approx(five.ink * fifths / 5)


def test_a_dot_is_there_when_what_comes_before_it_is():
    line = [(0, 0), (1, 0)]
    dotted = TimedSketch.of([line, [(5, 5)], line])
    assert [len(stroke) for stroke in dotted.first(0.5).strokes] == [2, 1]


def test_what_is_too_short_for_a_direction_is_drawn_as_a_dot():
    short = TimedSketch.of([[(0, 0), (1000, 0)], [(500, 500), (500.001, 500)]])
    assert '<polyline points="128.00,179.20 128.01,179.20"/>' in short.svg()
    least = TimedSketch.of([[(0, 0), (5e-324, 0)]])
    assert least.first(0.1) is least
    assert (least.render(side=100) < 128).any()


def test_parts_are_drawn_where_they_lie_in_the_whole():
    whole, part = (L.render(share, side=100, line=0.04) < 128 for share in (1.0, 0.3))
    assert not (part & ~whole).any()
    rows, columns = np.nonzero(part[..., 0])
    assert abs(np.ptp(columns) + 1 - 30 * 80 / 60 - 4) <= 2, "80 of 100 pixels are the whole"
    assert columns.min() == pytest.approx(10 - 2, abs=1)
    assert rows.mean() == pytest.approx(50 - 20 * 80 / 60, abs=1)
    dot = TimedSketch.of([[(5, 5)]]).render(side=100, line=0.1) < 128
    assert dot[..., 0].sum() == pytest.approx(np.pi * 25, rel=0.1)


@pytest.mark.parametrize("times", [(), ([0, 7, 20],)])
def test_quickdraw_is_read_simplified_and_raw(tmp_path, times):
    line = {"word": "cat", "key_id": "5", "drawing": [[[0, 3, 3], [0, 4, 9], *times]]}
    path = tmp_path / "cat.ndjson"
    path.write_text(json.dumps({**line, "recognized": False}) + "\n\n" + json.dumps(line) + "\n")
    first, second = read_quickdraw(path)
    assert (first.word, first.key, first.recognized, second.recognized) == (
        "cat",
        "5",
        False,
        True,
    )
    np.testing.assert_array_equal(first.sketch.strokes[0], [(0, 0), (3, 4), (3, 9)])
    assert second.sketch.ink == 10


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[", "line 2: is no drawing of Quick, Draw!"),
        ('{"word": "a", "key_id": 1}', "there is no 'drawing'"),
        ('{"word": "a", "key_id": 1, "drawing": []}', "line 2: a sketch has no strokes"),
        ('{"word": "a", "key_id": 1, "drawing": [[[1], [2, 3]]]}', r"lengths \[1, 2\]"),
        ('{"word": "a", "key_id": 1, "drawing": [[[NaN], [2]]]}', "not finite"),
        ('{"word": "a", "key_id": 1, "drawing": [[[-2e9], [2]]]}', r"beyond 1e\+09"),
        ('{"word": "a", "key_id": 1, "drawing": [[[1' + 400 * "0" + "], [2]]]}", "too large"),
        ("[" * 100_000, "line 2: is no drawing .*recursion"),
        ('{"word": null, "key_id": 1, "drawing": [[[1], [2]]]}', "word is None"),
        ('{"word": "a", "key_id": [], "drawing": [[[1], [2]]]}', r"key_id is \[\]"),
        (
            '{"word": "a", "key_id": 1, "recognized": "false", "drawing": [[[1], [2]]]}',
            "recognized is 'false'",
        ),
        (" " * (LONGEST_LINE + 1), "line 2: is longer than 16,777,216 characters"),
    ],
)
def test_what_is_no_drawing_is_named(tmp_path, text, reason):
    path = tmp_path / "a.ndjson"
    path.write_text("\n" + text)
    with pytest.raises(InputError, match=reason):
        list(read_quickdraw(path))


def test_svg_is_read_in_its_order_with_transforms():
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg"><defs><path d="M0 0h9"/></defs>'
        '<g transform="translate(10 0) scale(2)"><line x2="5"/>'
        '<rect transform="rotate(90)" width="3" height="1"/><rect height="2"/></g>'
        '<circle r="10"/><path d="M0 0h1M5 5v2"/></svg>'
    )
    line, rect, circle, *path = strokes_of_svg(svg).strokes
    np.testing.assert_allclose(line, [(10, 0), (20, 0)])
    np.testing.assert_allclose(
        rect, [(10, 0), (10, 6), (8, 6), (8, 0), (10, 0), (10, 0)], atol=1e-9
    )
    np.testing.assert_allclose(np.hypot(*circle.T), 10, atol=1e-2)
    assert TimedSketch((circle,)).ink == pytest.approx(20 * np.pi, rel=1e-2)
    assert [stroke.tolist() for stroke in path] == [[[0, 0], [1, 0]], [[5, 5], [5, 7]]]
    for bad, reason in (
        ("<svg/>", "no shapes"),
        ("<svg", "cannot be read"),
        ("<svg>" + "<g>" * 3000 + "</g>" * 3000 + "</svg>", "cannot be read.*recursion"),
        ('<svg><path d="M0 0h9" transform="spin(3)"/></svg>', "'spin' is not known"),
    ):
        with pytest.raises(InputError, match=reason):
            strokes_of_svg(bad)


def test_strokes_of_the_page_are_points_of_shares():
    page = [[{"x": 0.1, "y": 0.2, "p": 1}, {"x": 0.4, "y": 0.6, "p": 1}]]
    assert TimedSketch.from_page(page).ink == pytest.approx(0.5)
