"""Outlines of an SVG drawing as strokes, in the order of the file."""

from __future__ import annotations

import math
import re
from typing import Any
from xml.etree import ElementTree

import numpy as np

from cppcl.errors import InputError
from cppcl.pictures.timed_sketch import TimedSketch
from cppcl.pictures.unfinished import SHAPES

N_PIECES = 16
"""Straight pieces that a curve becomes."""
_CALL = re.compile(r"([a-zA-Z]+)\s*\(([^()]*)\)")
_SIZES = {"rect": ("width", "height"), "circle": ("r",), "ellipse": ("rx", "ry")}
_ERRORS = (
    ElementTree.ParseError,
    ValueError,
    TypeError,
    IndexError,
    OverflowError,
    RecursionError,
)
_UNDRAWN = ("defs", "clipPath", "mask", "symbol", "pattern", "marker")


def strokes_of_svg(svg: str) -> TimedSketch:
    """Read the shapes of a drawing as strokes.

    A path of several parts is several strokes. What is filled is drawn as its outline; widths,
    colours and style sheets are not looked at. Curves become 16 straight pieces.

    Parameters
    ----------
    svg : str
        A drawing whose transforms are attributes.

    Raises
    ------
    InputError
        There are no shapes, or one cannot be read.
    """
    try:
        root = ElementTree.fromstring(svg)
        strokes = _strokes(root, _identity())
    except _ERRORS as error:
        raise InputError(f"the drawing cannot be read as strokes ({error})") from error
    if not strokes:
        raise InputError("the drawing has no shapes that could be drawn one after another")
    return TimedSketch.of(strokes)


def _strokes(element: ElementTree.Element, place: Any) -> list[Any]:
    name = element.tag.rpartition("}")[2]
    if name in _UNDRAWN:
        return []
    for call, numbers in _CALL.findall(element.get("transform") or ""):
        place = _transformed(place, call, [float(v) for v in re.split(r"[\s,]+", numbers.strip())])
    if name not in SHAPES:
        return [stroke for child in element for stroke in _strokes(child, place)]
    from fontTools.pens.recordingPen import RecordingPen
    from fontTools.pens.transformPen import TransformPen
    from fontTools.svgLib.path import parse_path
    from fontTools.svgLib.path.shapes import PathBuilder

    sizes = dict.fromkeys(_SIZES.get(name, ()), "0") | dict(element.items())
    if any(float(sizes[size]) <= 0 for size in _SIZES.get(name, ())):
        return []  # a shape of no size is not drawn
    sizes.pop("transform", None)
    bare = ElementTree.Element(name, sizes)
    builder, pen = PathBuilder(), RecordingPen()
    builder.add_path_from_element(bare)
    for path in builder.paths:
        parse_path(path, TransformPen(pen, place))
    return _lines(pen.value)


def _lines(drawn: list[tuple[str, Any]]) -> list[list[tuple[float, float]]]:
    """What a pen did, as lines of points."""
    strokes: list[list[tuple[float, float]]] = []
    for act, points in drawn:
        if act == "moveTo":
            strokes.append([*points])
        elif act == "lineTo":
            strokes[-1] += points
        elif act == "closePath":
            strokes[-1].append(strokes[-1][0])
        elif points:
            strokes[-1] += _bent([strokes[-1][-1], *points])
    return strokes


def _bent(controls: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Points along a Bezier curve of any degree, without the first."""
    t = np.arange(1, N_PIECES + 1)[:, None] / N_PIECES
    degree = len(controls) - 1
    terms = [
        math.comb(degree, k) * t**k * (1 - t) ** (degree - k) * np.array(control)
        for k, control in enumerate(controls)
    ]
    return [(x, y) for x, y in np.sum(terms, axis=0).tolist()]


def _identity() -> Any:
    from fontTools.misc.transform import Identity

    return Identity


def _transformed(place: Any, call: str, numbers: list[float]) -> Any:
    """A transformation that is done before another."""
    if call == "matrix":
        return place.transform(tuple(numbers))
    if call in ("translate", "scale"):
        return getattr(place, call)(*numbers)
    if call == "rotate":
        turn, *centre = numbers
        x, y = centre or (0.0, 0.0)
        return place.translate(x, y).rotate(math.radians(turn)).translate(-x, -y)
    if call in ("skewX", "skewY"):
        turn = math.radians(numbers[0])
        return place.skew(turn, 0) if call == "skewX" else place.skew(0, turn)
    raise ValueError(f"the transformation {call!r} is not known")
