"""Rendering of SVG drawings, with nothing read but the drawing itself."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from cppcl.errors import PictureError

MAXIMUM_DEPTH = 256
"""Deepest nesting of elements that is rendered: the renderer recurses on its own stack."""

_EXTERNAL = ("image", "feImage", "use")
_LENGTH = re.compile(r"\s*([0-9.]+(?:[eE][+-]?[0-9]+)?)\s*(px|pt|pc|mm|cm|in|)\s*")
# CSS pixels (96 an inch) of each unit.
_PIXELS = {
    "": 1.0,
    "px": 1.0,
    "pt": 4 / 3,
    "pc": 16.0,
    "mm": 96 / 25.4,
    "cm": 96 / 2.54,
    "in": 96.0,
}
_SIDE_OF_UNSIZED = 256


def render_svg(data: bytes, *, longest_side: int | None, name: str, limit: int) -> bytes:
    """Render an SVG to the bytes of a PNG with transparent background.

    Parameters
    ----------
    data : bytes
        The SVG document.
    longest_side : int or None
        Pixels of the longer side; None renders the size that the drawing declares (256 pixels
        where it declares none).
    name : str
        What error messages call it.
    limit : int
        Largest number of pixels.

    Raises
    ------
    PictureError
        No well-formed SVG, too large, too deep, or one that refers to other files.
    """
    import resvg_py

    try:
        root = ElementTree.fromstring(data)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise PictureError(f"{name}: SVG is not well-formed XML ({error})") from error
    if _local(root.tag) != "svg":
        raise PictureError(f"{name}: XML with root <{_local(root.tag)}>, not an SVG drawing")
    _refuse_unsafe(root, name)
    width, height = (longest_side, longest_side) if longest_side else _declared_size(root)
    if width * height > limit and longest_side is None:
        raise PictureError(
            f"{name}: {width} x {height} pixels exceed the limit of {limit} pixels; "
            "give longest_side or a smaller width and height"
        )
    # The tree is written anew, so that the renderer sees exactly what was checked.
    text = ElementTree.tostring(root, encoding="unicode")
    try:
        return resvg_py.svg_to_bytes(
            svg_string=text, width=width, height=height, skip_system_fonts=True
        )
    except Exception as error:
        raise PictureError(f"{name}: SVG cannot be rendered ({error})") from error


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]


def _refuse_unsafe(root: ElementTree.Element, name: str) -> None:
    level = [root]
    depth = 0
    while level:
        depth += 1
        if depth > MAXIMUM_DEPTH:
            raise PictureError(f"{name}: SVG elements are nested over {MAXIMUM_DEPTH} deep")
        for element in level:
            if _local(element.tag) not in _EXTERNAL:
                continue
            for attribute, value in element.attrib.items():
                reference = value.strip()
                if _local(attribute) == "href" and not reference.startswith(("#", "data:")):
                    raise PictureError(
                        f"{name}: SVG refers to another file ({reference[:80]!r}), which is "
                        "never read; embed it as a data URI or remove the reference"
                    )
        level = [child for element in level for child in element]


def _declared_size(root: ElementTree.Element) -> tuple[int, int]:
    """Size in pixels from width and height, else from the view box, else 256 x 256."""
    lengths = [_LENGTH.fullmatch(root.get(side, "")) for side in ("width", "height")]
    if lengths[0] and lengths[1]:
        sides = [float(match[1]) * _PIXELS[match[2]] for match in lengths if match]
    else:
        try:
            sides = [float(v) for v in root.get("viewBox", "").replace(",", " ").split()][2:]
        except ValueError:
            sides = []
    if len(sides) != 2 or not all(0 < side < 1e9 for side in sides):
        sides = [_SIDE_OF_UNSIZED, _SIDE_OF_UNSIZED]
    return max(1, round(sides[0])), max(1, round(sides[1]))
