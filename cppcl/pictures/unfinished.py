"""SVG drawings that are not finished: a share of their strokes, in the order of the file."""

from __future__ import annotations

import itertools
import math
from xml.etree import ElementTree

from cppcl.errors import InputError

SHAPES = ("path", "line", "polyline", "polygon", "rect", "circle", "ellipse")
_INHERITED = ("fill", "stroke")


def drawn(svg: str, share: float) -> str:
    """Keep the first share of the strokes of a drawing, by their length.

    The stroke at which the share is reached is drawn in part, from where it begins. What is
    filled is drawn once half of its outline would be. Something is drawn in any case.

    Parameters
    ----------
    svg : str
        A drawing; lengths are taken before transforms.
    share : float
        In (0, 1].

    Returns
    -------
    str
        The drawing itself for a share of 1.

    Raises
    ------
    InputError
        For a share out of range, what is no SVG, or one without shapes.
    """
    root, shapes = drawing_of(svg, share)
    if share == 1:
        return svg
    lengths = [outline_length(shape) for _, shape, _ in shapes]
    left = share * sum(lengths)
    for number, ((parent, shape, is_filled), length) in enumerate(
        zip(shapes, lengths, strict=True)
    ):
        part, left = min(max(left, 0.0), length), left - length
        if part == length or (number == 0 and is_filled):
            continue
        if is_filled:
            if part < length / 2:
                parent.remove(shape)
        elif part > 0:
            shape.set("stroke-dasharray", f"{part:.4g} {2 * length:.4g}")
        else:
            parent.remove(shape)
    return svg_text(root)


def drawing_of(
    svg: str, share: float
) -> tuple[ElementTree.Element, list[tuple[ElementTree.Element, ElementTree.Element, bool]]]:
    """Root and shapes of a drawing of which a share is asked for; see `shapes_of`.

    Raises
    ------
    InputError
        For a share out of range, what is no SVG, or one without shapes.
    """
    if not 0 < share <= 1:
        raise InputError(f"share={share} of a drawing must lie in (0, 1]")
    root = parse_svg(svg)
    if not (shapes := shapes_of(root)):
        raise InputError("the drawing has no shapes, so that no share of it can be drawn")
    return root, shapes


def parse_svg(svg: str) -> ElementTree.Element:
    """Root of a drawing; `InputError` for what is no XML."""
    try:
        return ElementTree.fromstring(svg)
    except (ElementTree.ParseError, ValueError) as error:
        raise InputError(f"the drawing is no SVG ({error})") from error


def svg_text(root: ElementTree.Element) -> str:
    """A drawing as text, its namespace that of SVG without prefixes."""
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    root.set("xmlns", "http://www.w3.org/2000/svg")
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def shapes_of(
    root: ElementTree.Element,
) -> list[tuple[ElementTree.Element, ElementTree.Element, bool]]:
    """Shapes in the order of the file, behind their parents, and whether each is filled."""
    try:
        return _shapes(root, root, {})
    except RecursionError:
        raise InputError("the drawing has groups within groups too deep to be read") from None


def outline_length(shape: ElementTree.Element) -> float:
    """Length of the outline of a shape, in its own units."""
    name = shape.tag.rpartition("}")[2]

    def number(attribute: str) -> float:
        return float(shape.get(attribute) or 0)

    if name == "line":
        return math.hypot(number("x2") - number("x1"), number("y2") - number("y1"))
    if name == "circle":
        return 2 * math.pi * number("r")
    if name == "ellipse":
        # Ramanujan's; off by less than 0.04 %.
        a, b = number("rx"), number("ry")
        return math.pi * (3 * (a + b) - math.sqrt((3 * a + b) * (a + 3 * b)))
    if name == "rect":
        radius = number("rx") or number("ry")
        return 2 * (number("width") + number("height")) - (8 - 2 * math.pi) * radius
    if name == "path":
        return _path_length(shape.get("d") or "")
    values = [float(value) for value in (shape.get("points") or "").replace(",", " ").split()]
    points = list(zip(values[::2], values[1::2], strict=False))
    if name == "polygon":
        points += points[:1]
    return sum(math.dist(a, b) for a, b in itertools.pairwise(points))


def _path_length(data: str) -> float:
    from fontTools.pens.perimeterPen import PerimeterPen
    from fontTools.svgLib.path import parse_path

    pen = PerimeterPen(tolerance=0.005)
    parse_path(data, pen)
    return float(pen.value)


def _shapes(
    element: ElementTree.Element, parent: ElementTree.Element, inherited: dict[str, str]
) -> list[tuple[ElementTree.Element, ElementTree.Element, bool]]:
    """Shapes below an element in their order, with their parents, and whether each is filled."""
    own = {name: element.get(name, inherited.get(name, "")) for name in _INHERITED}
    if element.tag.rpartition("}")[2] in SHAPES:
        return [(parent, element, own["stroke"] in ("", "none"))]
    return [found for child in list(element) for found in _shapes(child, element, own)]
