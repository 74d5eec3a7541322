"""Twenty plain drawings as a person makes them with a mouse, and what each is meant to be.

They were drawn once, before any was searched with, and not changed since. Points are shares
of the width of the drawing area, from its left upper corner.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

Point = tuple[float, float]
Stroke = list[Point]


@dataclass(frozen=True)
class PlainDrawing:
    """A drawing.

    Attributes
    ----------
    title : str
        What it is, by the title in the data set `emoji`.
    alike : tuple of str
        Other titles that a drawing this plain does not tell from it.
    strokes : list of list of (x, y)
        In the order in which they are drawn.
    """

    title: str
    strokes: list[Stroke]
    alike: tuple[str, ...] = ()


def arc(
    x: float, y: float, rx: float, ry: float, first: float = 0, last: float = 360, n: int = 24
) -> Stroke:
    """Part of an ellipse, from one angle to another, in degrees, clockwise from the right."""
    angles = [math.radians(first + (last - first) * k / n) for k in range(n + 1)]
    return [(x + rx * math.cos(a), y + ry * math.sin(a)) for a in angles]


def box(left: float, top: float, right: float, bottom: float) -> Stroke:
    """A rectangle in one stroke."""
    return [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)]


def rays(x: float, y: float, inner: float, outer: float, n: int) -> list[Stroke]:
    """Lines away from a point."""
    turns = [2 * math.pi * k / n for k in range(n)]
    return [[(x + r * math.cos(a), y + r * math.sin(a)) for r in (inner, outer)] for a in turns]


def star(x: float, y: float, radius: float) -> Stroke:
    """Five points, in one stroke around its outline."""
    corners = []
    for k in range(11):
        r = radius if k % 2 == 0 else 0.42 * radius
        a = math.pi * (k / 5 - 0.5)
        corners.append((x + r * math.cos(a), y + r * math.sin(a)))
    return corners


HEART = [
    (0.5, 0.82), (0.35, 0.7), (0.2, 0.53), (0.15, 0.38), (0.2, 0.25), (0.32, 0.2), (0.43, 0.24),
    (0.5, 0.35), (0.57, 0.24), (0.68, 0.2), (0.8, 0.25), (0.85, 0.38), (0.8, 0.53), (0.65, 0.7),
    (0.5, 0.82),
]  # fmt: skip
CAR_BODY = [
    (0.1, 0.62), (0.1, 0.5), (0.25, 0.47), (0.35, 0.33), (0.62, 0.33), (0.74, 0.47), (0.9, 0.51),
    (0.9, 0.62), (0.1, 0.62),
]  # fmt: skip
CLOUD = [
    (0.25, 0.68), (0.15, 0.62), (0.13, 0.52), (0.2, 0.44), (0.3, 0.44), (0.34, 0.33), (0.45, 0.27),
    (0.57, 0.3), (0.63, 0.4), (0.74, 0.38), (0.84, 0.45), (0.87, 0.56), (0.81, 0.66), (0.7, 0.68),
    (0.25, 0.68),
]  # fmt: skip
CAT_HEAD = [
    (0.25, 0.42), (0.22, 0.15), (0.4, 0.29), (0.5, 0.27), (0.6, 0.29), (0.78, 0.15), (0.75, 0.42),
    (0.8, 0.55), (0.74, 0.7), (0.62, 0.79), (0.5, 0.81), (0.38, 0.79), (0.26, 0.7), (0.2, 0.55),
    (0.25, 0.42),
]  # fmt: skip
TREE = [
    (0.5, 0.1), (0.34, 0.34), (0.42, 0.34), (0.26, 0.57), (0.36, 0.57), (0.18, 0.8), (0.82, 0.8),
    (0.64, 0.57), (0.74, 0.57), (0.58, 0.34), (0.66, 0.34), (0.5, 0.1),
]  # fmt: skip

DRAWINGS = [
    PlainDrawing("heart suit", [HEART]),
    PlainDrawing(
        "automobile",
        [
            CAR_BODY,
            arc(0.28, 0.64, 0.08, 0.08),
            arc(0.72, 0.64, 0.08, 0.08),
            [(0.48, 0.33), (0.48, 0.48)],
        ],
        ("taxi", "sport utility vehicle", "police car"),
    ),
    PlainDrawing(
        "key",
        [
            arc(0.25, 0.5, 0.14, 0.14),
            [(0.39, 0.5), (0.88, 0.5)],
            [(0.88, 0.5), (0.88, 0.63)],
            [(0.76, 0.5), (0.76, 0.6)],
        ],
        ("old key",),
    ),
    PlainDrawing(
        "fish",
        [
            arc(0.42, 0.5, 0.3, 0.19),
            [(0.7, 0.45), (0.9, 0.3), (0.86, 0.5), (0.9, 0.7), (0.7, 0.55)],
            arc(0.25, 0.45, 0.02, 0.02),
        ],
        ("tropical fish",),
    ),
    PlainDrawing(
        "sun", [arc(0.5, 0.5, 0.2, 0.2), *rays(0.5, 0.5, 0.27, 0.42, 8)], ("sun with face",)
    ),
    PlainDrawing(
        "house",
        [
            box(0.22, 0.45, 0.78, 0.85),
            [(0.12, 0.47), (0.5, 0.14), (0.88, 0.47)],
            box(0.42, 0.6, 0.58, 0.85),
        ],
        ("house with garden", "hut"),
    ),
    PlainDrawing("cloud", [CLOUD]),
    PlainDrawing(
        "umbrella",
        [
            arc(0.5, 0.5, 0.38, 0.35, 180, 360),
            [(0.12, 0.5), (0.88, 0.5)],
            [(0.5, 0.5), (0.5, 0.8), (0.47, 0.87), (0.4, 0.87), (0.37, 0.8)],
        ],
        ("umbrella with rain drops", "umbrella on ground"),
    ),
    PlainDrawing(
        "envelope",
        [box(0.12, 0.28, 0.88, 0.74), [(0.12, 0.28), (0.5, 0.55), (0.88, 0.28)]],
        ("e-mail", "incoming envelope", "envelope with arrow"),
    ),
    PlainDrawing("star", [star(0.5, 0.52, 0.4)], ("glowing star",)),
    PlainDrawing(
        "crescent moon",
        [[*arc(0.5, 0.5, 0.35, 0.35, 60, 300), *arc(0.64, 0.5, 0.3, 0.3, 262, 98)]],
    ),
    PlainDrawing(
        "sailboat",
        [
            [(0.12, 0.7), (0.88, 0.7), (0.76, 0.87), (0.24, 0.87), (0.12, 0.7)],
            [(0.5, 0.7), (0.5, 0.1)],
            [(0.5, 0.12), (0.8, 0.62), (0.5, 0.62)],
            [(0.46, 0.2), (0.2, 0.62), (0.46, 0.62), (0.46, 0.2)],
        ],
    ),
    PlainDrawing("evergreen tree", [TREE, [(0.44, 0.8), (0.44, 0.92), (0.56, 0.92), (0.56, 0.8)]]),
    PlainDrawing(
        "mushroom",
        [
            [*arc(0.5, 0.5, 0.36, 0.34, 180, 360), (0.14, 0.5)],
            [(0.4, 0.5), (0.38, 0.82), (0.62, 0.82), (0.6, 0.5)],
            arc(0.38, 0.34, 0.05, 0.05),
            arc(0.6, 0.32, 0.06, 0.06),
        ],
        ("brown mushroom",),
    ),
    PlainDrawing(
        "hot beverage",
        [
            [(0.2, 0.42), (0.24, 0.8), (0.64, 0.8), (0.68, 0.42), (0.2, 0.42)],
            arc(0.69, 0.56, 0.13, 0.11, -80, 100),
            [(0.34, 0.34), (0.37, 0.27), (0.33, 0.2), (0.36, 0.13)],
            [(0.52, 0.34), (0.55, 0.27), (0.51, 0.2), (0.54, 0.13)],
        ],
    ),
    PlainDrawing(
        "glasses",
        [
            arc(0.3, 0.5, 0.15, 0.13),
            arc(0.7, 0.5, 0.15, 0.13),
            [(0.45, 0.48), (0.5, 0.45), (0.55, 0.48)],
            [(0.15, 0.47), (0.06, 0.4)],
            [(0.85, 0.47), (0.94, 0.4)],
        ],
        ("sunglasses",),
    ),
    PlainDrawing(
        "light bulb",
        [
            [*arc(0.5, 0.4, 0.25, 0.27, 120, 420), (0.6, 0.74), (0.4, 0.74), (0.375, 0.63)],
            [(0.41, 0.8), (0.59, 0.8)],
            [(0.43, 0.86), (0.57, 0.86)],
        ],
    ),
    PlainDrawing(
        "musical note",
        [
            arc(0.36, 0.76, 0.11, 0.08),
            [(0.47, 0.76), (0.47, 0.15)],
            [(0.47, 0.15), (0.56, 0.26), (0.68, 0.34), (0.7, 0.48)],
        ],
    ),
    PlainDrawing(
        "balloon",
        [
            arc(0.5, 0.36, 0.23, 0.27),
            [(0.5, 0.63), (0.46, 0.68), (0.54, 0.68), (0.5, 0.63)],
            [(0.5, 0.68), (0.47, 0.75), (0.53, 0.83), (0.49, 0.92)],
        ],
    ),
    PlainDrawing(
        "cat face",
        [
            CAT_HEAD,
            arc(0.38, 0.5, 0.03, 0.04),
            arc(0.62, 0.5, 0.03, 0.04),
            [(0.46, 0.6), (0.54, 0.6), (0.5, 0.65), (0.46, 0.6)],
            [(0.5, 0.65), (0.44, 0.71)],
            [(0.5, 0.65), (0.56, 0.71)],
            [(0.3, 0.62), (0.08, 0.58)],
            [(0.3, 0.66), (0.08, 0.7)],
            [(0.7, 0.62), (0.92, 0.58)],
            [(0.7, 0.66), (0.92, 0.7)],
        ],
    ),
]
