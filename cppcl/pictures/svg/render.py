"""Rendering of SVG drawings; no other file is read."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

from cppcl.errors import InputError, PictureError
from cppcl.pictures.svg.refusal import NotDrawnError
from cppcl.pictures.svg.selectors import local_name
from cppcl.pictures.svg.structure import Drawn, checked

_SIDE_OF_UNSIZED = 256
_LENGTH = re.compile(r"\s*([0-9.]+(?:[eE][+-]?[0-9]+)?)\s*(px|pt|pc|mm|cm|in|)\s*")
# CSS pixels (96 an inch) of each unit.
_PIXELS = {"": 1.0, "px": 1.0, "pt": 4 / 3, "pc": 16.0, "mm": 96 / 25.4, "cm": 96 / 2.54}
_PIXELS["in"] = 96.0


def render_svg(data: bytes, *, longest_side: int | None, name: str, limit: int) -> bytes:
    """Render an SVG to the bytes of a PNG with transparent background.

    Style sheets, variables and colours are resolved first; what the renderer would draw
    otherwise than browsers do is refused. Text is not drawn, since fonts differ between machines.
    Scripts and animations are not run.

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
        Largest number of pixels, of the result and of embedded pictures.

    Raises
    ------
    InputError
        `longest_side` squared exceeds `limit`.
    PictureError
        No well-formed SVG, too large, nested too deep, one that refers to other files, or one
        that holds what is not drawn.
    """
    import resvg_py

    if longest_side is not None and longest_side**2 > limit:
        raise InputError(
            f"longest_side is {longest_side}; SVG is rendered up to {limit} pixels, so it must "
            f"be at most {int(limit**0.5)}"
        )
    root = _parsed(data, name)
    width, height = (longest_side, longest_side) if longest_side else _declared_size(root)
    if width * height > limit:
        raise PictureError(
            f"{name}: {width} x {height} pixels exceed the limit of {limit} pixels; "
            "give longest_side or a smaller width and height"
        )
    try:
        drawn: Drawn = checked(root, (width, height), limit)
    except NotDrawnError as error:
        raise PictureError(f"{name}: SVG {error}") from error
    except RecursionError as error:
        raise PictureError(f"{name}: SVG styles are nested too deep") from error
    # The tree is written anew, so that the renderer sees exactly what was checked.
    text = ElementTree.tostring(drawn.root, encoding="unicode")
    try:
        return resvg_py.svg_to_bytes(
            svg_string=text,
            width=width,
            height=height,
            dpi=96,
            skip_system_fonts=True,
            languages=["en"],
            background=drawn.background or None,
        )
    except Exception as error:
        raise PictureError(f"{name}: SVG cannot be rendered ({error})") from error


class _Builder(ElementTree.TreeBuilder):
    """Builds a tree, and notes style sheets in other files, which a tree does not hold."""

    sheet = ""

    def pi(self, target: str, text: str | None = None) -> Any:
        """Note an instruction; the tree holds none."""
        if target == "xml-stylesheet":
            self.sheet = text or " "


def _parsed(data: bytes, name: str) -> ElementTree.Element:
    builder = _Builder()
    try:
        parser = ElementTree.XMLParser(target=builder)
        parser.feed(data)
        root: ElementTree.Element = parser.close()
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise PictureError(f"{name}: SVG is not well-formed XML ({error})") from error
    if local_name(root) != "svg":
        raise PictureError(f"{name}: XML with root <{local_name(root)}>, not an SVG drawing")
    if builder.sheet:
        raise PictureError(
            f"{name}: SVG refers to a style sheet ({builder.sheet.strip()[:80]}); other files are "
            "never read, so write its rules into a <style> element"
        )
    return root


def _declared_size(root: ElementTree.Element) -> tuple[int, int]:
    """Size in pixels from width and height, else from the view box, else 256 x 256."""
    lengths = [_LENGTH.fullmatch(root.get(side, "")) for side in ("width", "height")]
    try:
        if lengths[0] and lengths[1]:
            sides = [float(match[1]) * _PIXELS[match[2]] for match in lengths if match]
        else:
            sides = [float(v) for v in root.get("viewBox", "").replace(",", " ").split()][2:]
    except ValueError:
        sides = []
    if len(sides) != 2 or not all(0 < side < 1e9 for side in sides):
        sides = [_SIDE_OF_UNSIZED, _SIDE_OF_UNSIZED]
    return max(1, round(sides[0])), max(1, round(sides[1]))
