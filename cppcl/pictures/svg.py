"""Rendering of SVG drawings; no other file is read."""

from __future__ import annotations

import base64
import binascii
import io
import re
from xml.etree import ElementTree

from cppcl.errors import InputError, PictureError

MAXIMUM_DEPTH = 100
"""Deepest nesting of elements, through references too: the renderer recurses on its stack, and
overflowing it ends the process."""

MAXIMUM_OCTAVES = 32
"""Most octaves of a turbulence filter; each costs a pass over all pixels."""

_SIDE_OF_UNSIZED = 256
_LENGTH = re.compile(r"\s*([0-9.]+(?:[eE][+-]?[0-9]+)?)\s*(px|pt|pc|mm|cm|in|)\s*")
# CSS pixels (96 an inch) of each unit.
_PIXELS = {"": 1.0, "px": 1.0, "pt": 4 / 3, "pc": 16.0, "mm": 96 / 25.4, "cm": 96 / 2.54}
_PIXELS["in"] = 96.0
_REFERENCE = re.compile(r"(?:^\s*|url\(\s*['\"]?\s*)#([^)'\"\s]+)")
_EMBEDDED = re.compile(r"data:image/(?:png|jpe?g|gif|webp);base64,(.*)", re.DOTALL)
_REFERRING = ("image", "feImage", "use")


def render_svg(data: bytes, *, longest_side: int | None, name: str, limit: int) -> bytes:
    """Render an SVG to the bytes of a PNG with transparent background.

    Text is not drawn, since fonts differ between machines.

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
        No well-formed SVG, too large, nested too deep, or one that refers to other files.
    """
    import resvg_py

    if longest_side is not None and longest_side**2 > limit:
        raise InputError(
            f"longest_side is {longest_side}; SVG is rendered up to {limit} pixels, so it must "
            f"be at most {int(limit**0.5)}"
        )
    try:
        root = ElementTree.fromstring(data)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise PictureError(f"{name}: SVG is not well-formed XML ({error})") from error
    if _local(root.tag) != "svg":
        raise PictureError(f"{name}: XML with root <{_local(root.tag)}>, not an SVG drawing")
    for element in root.iter():
        _check_element(element, name, limit)
    if _is_deeper(root, MAXIMUM_DEPTH):
        raise PictureError(f"{name}: SVG elements are nested over {MAXIMUM_DEPTH} deep")
    width, height = (longest_side, longest_side) if longest_side else _declared_size(root)
    if width * height > limit:
        raise PictureError(
            f"{name}: {width} x {height} pixels exceed the limit of {limit} pixels; "
            "give longest_side or a smaller width and height"
        )
    # The tree is written anew, so that the renderer sees exactly what was checked.
    text = ElementTree.tostring(root, encoding="unicode")
    try:
        return resvg_py.svg_to_bytes(
            svg_string=text, width=width, height=height, dpi=96, skip_system_fonts=True
        )
    except Exception as error:
        raise PictureError(f"{name}: SVG cannot be rendered ({error})") from error


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]


def _check_element(element: ElementTree.Element, name: str, limit: int) -> None:
    tag = _local(element.tag)
    octaves = element.get("numOctaves", "1").strip()
    if tag == "feTurbulence" and not (octaves.isdecimal() and int(octaves) <= MAXIMUM_OCTAVES):
        raise PictureError(
            f"{name}: a turbulence filter of SVG has {octaves[:20]} octaves; at most "
            f"{MAXIMUM_OCTAVES} are drawn"
        )
    if tag not in _REFERRING:
        return
    for attribute, value in element.attrib.items():
        reference = value.strip()
        if _local(attribute) != "href" or reference.startswith("#") or not reference:
            continue
        embedded = _EMBEDDED.fullmatch(reference)
        if embedded is None:
            raise PictureError(
                f"{name}: SVG refers to {reference[:80]!r}; only PNG, JPEG, GIF and WebP "
                "pictures embedded as base64 data URIs are drawn, other files are never read"
            )
        _check_embedded(embedded[1], name, limit)


def _check_embedded(text: str, name: str, limit: int) -> None:
    from PIL import Image

    try:
        picture = io.BytesIO(base64.b64decode("".join(text.split())))
        with Image.open(picture, formats=("PNG", "JPEG", "GIF", "WEBP")) as image:
            width, height = image.size
    except (OSError, SyntaxError, binascii.Error, Image.DecompressionBombError) as error:
        raise PictureError(f"{name}: SVG embeds a damaged picture ({error})") from error
    if width * height > limit:
        raise PictureError(
            f"{name}: SVG embeds a picture of {width} x {height} pixels, over the limit of "
            f"{limit} pixels"
        )


def _is_deeper(root: ElementTree.Element, most: int) -> bool:
    """True if any path through children and references is longer than `most` elements.

    Cycles of references do not count: the renderer refuses those itself.
    """
    named = {element.get("id"): element for element in root.iter() if element.get("id")}
    depths: dict[ElementTree.Element, int] = {}
    open_elements: set[ElementTree.Element] = set()
    stack = [(root, False)]
    while stack:
        element, left = stack.pop()
        if not left and (element in depths or element in open_elements):
            continue
        below = list(element)
        for value in element.attrib.values():
            below += [named[key] for key in _REFERENCE.findall(value) if key in named]
        if left:
            open_elements.discard(element)
            depths[element] = 1 + max((depths.get(child, 0) for child in below), default=0)
            if depths[element] > most:
                return True
        else:
            open_elements.add(element)
            stack.append((element, True))
            stack += [(child, False) for child in below]
    return False


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
