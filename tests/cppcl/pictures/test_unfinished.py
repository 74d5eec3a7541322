"""Unfinished drawings: lengths of outlines, and how much of a drawing is there."""

from __future__ import annotations

import math
from xml.etree import ElementTree

import numpy as np
import pytest

from cppcl.errors import InputError
from cppcl.pictures.decoding import decode_picture
from cppcl.pictures.unfinished import drawn, outline_length


def svg(*shapes: str, style: str = 'fill="none" stroke="#000" stroke-width="2"') -> str:
    inside = "".join(f"<{shape}/>" for shape in shapes)
    space = 'xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 100"'
    return f"<svg {space}><g {style}>{inside}</g></svg>"


@pytest.mark.parametrize(
    ("shape", "length"),
    [
        ('line x1="1" y1="2" x2="4" y2="6"', 5),
        ('polyline points="0,0 3,4 3 10"', 11),
        ('polygon points="0,0 3,0 3,4"', 12),
        ('rect x="1" y="1" width="30" height="20"', 100),
        ('rect width="30" height="20" rx="10"', 20 + 20 * math.pi),
        ('circle cx="5" cy="5" r="10"', 20 * math.pi),
        ('ellipse rx="10" ry="10"', 20 * math.pi),
        ('path d="M0,0h10v10H0z"', 40),
        ('path d="M0,0 l3,4 M10,10 h5"', 10),
        ('path d="M10,0 A10,10 0 0 1 0,10"', 5 * math.pi),
    ],
)
def test_lengths_of_outlines(shape, length):
    assert outline_length(ElementTree.fromstring(f"<{shape}/>")) == pytest.approx(length, rel=1e-3)


@pytest.mark.parametrize(("share", "columns"), [(0.1, 16), (0.5, 80), (0.75, 120), (1.0, 160)])
def test_strokes_are_drawn_one_after_another(share, columns):
    lines = [f'line x1="10" y1="{y}" x2="90" y2="{y}"' for y in (30, 70)]
    picture = decode_picture(drawn(svg(*lines), share).encode(), longest_side=100, name="x")
    dark = picture[..., 0] < 128
    assert abs(dark[30].sum() + dark[70].sum() - columns) <= 2
    assert dark[70].any() == (share > 0.5)


def test_a_filled_shape_is_drawn_whole_once_half_of_it_is_due():
    dot = 'circle cx="50" cy="50" r="10" fill="#000" stroke="none"'
    line = f'line x1="0" y1="10" x2="{20 * math.pi}" y2="10"'
    for share, there in ((0.7, False), (0.8, True)):
        assert ("circle" in drawn(svg(line, dot), share)) == there
    assert "circle" in drawn(svg(dot, line), 0.01)


def test_a_finished_drawing_is_itself_and_shares_are_checked():
    text = svg('line x2="9"')
    assert drawn(text, 1) is text
    for share in (0, 1.01, -1):
        with pytest.raises(InputError, match=r"must lie in \(0, 1\]"):
            drawn(text, share)
    with pytest.raises(InputError, match="no shapes"):
        drawn(svg(), 0.5)


def test_more_of_a_drawing_is_more_ink():
    text = svg('path d="M10,10 C40,90 60,-50 90,50"', 'rect x="20" y="60" width="40" height="30"')
    pictures = [
        decode_picture(drawn(text, share / 10).encode(), longest_side=100, name="x")
        for share in range(1, 11)
    ]
    ink = [(picture < 128).sum() for picture in pictures]
    assert (np.diff(ink) > 0).all()
    assert ink[4] / ink[-1] == pytest.approx(0.5, abs=0.05)
