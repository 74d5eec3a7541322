"""What an SVG holds, checked before it is rendered: what is not drawn is refused by name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from cppcl.pictures.svg.embedded import embedded_png
from cppcl.pictures.svg.filters import resolve_filters
from cppcl.pictures.svg.refusal import NotDrawnError
from cppcl.pictures.svg.selectors import local_name
from cppcl.pictures.svg.styles import SVG, Styles
from cppcl.pictures.svg.transforms import numeric_origin

MAXIMUM_DEPTH = 100
"""Deepest nesting of elements, through references too: the renderer recurses on its stack, and
overflowing it ends the process."""

MAXIMUM_OCTAVES = 32
"""Most octaves of a turbulence filter; each costs a pass over all pixels."""

_REFERENCE = re.compile(r"(?:^\s*|url\(\s*['\"]?\s*)#([^)'\"\s]+)")
_SHAPES = frozenset(
    ["path", "rect", "circle", "ellipse", "line", "polyline", "polygon", "image", "use"]
)
_WITHOUT_PAINT = frozenset(["defs", "clipPath", "mask", "pattern", "marker", "symbol"])
_NOT_FOLLOWED = frozenset(
    ["a", "script", "animate", "animateMotion", "animateTransform", "set", "mpath"]
)
_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?"
_PLAIN_LENGTH = re.compile(rf"\s*({_NUMBER})\s*(?:px)?\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Drawn:
    """A drawing that the renderer draws as it is meant.

    Attributes
    ----------
    root : Element
        The drawing, its styles resolved.
    background : str
        Colour of its ground; empty without one.
    """

    root: Element
    background: str


def checked(root: Element, size: tuple[int, int], limit: int) -> Drawn:
    """Resolve styles and embedded pictures in place, and refuse what is not drawn.

    Parameters
    ----------
    root : Element
        The drawing; it is changed.
    size : (int, int)
        Width and height that it is fitted into, pixels.
    limit : int
        Largest number of pixels of embedded pictures.

    Raises
    ------
    NotDrawnError
        The message continues a sentence that begins with the drawing.
    """
    if _is_deeper(root, MAXIMUM_DEPTH):
        raise NotDrawnError(f"elements are nested over {MAXIMUM_DEPTH} deep")
    for element in root.iter():
        if str(element.tag).startswith(SVG):
            _check_element(element, limit)
    if holds_only_text(root):
        raise NotDrawnError(
            "holds only text, which is not drawn since fonts differ between machines; convert it "
            "to paths"
        )
    try:
        styles = Styles(root)
        resolve_filters(root)
        _check_strokes(root, styles, size)
        _check_transforms(root)
    except NotDrawnError as error:
        raise NotDrawnError(
            f"holds what is not drawn: {error}; save it as plain SVG, or as PNG"
        ) from error
    if _is_deeper(root, MAXIMUM_DEPTH):
        raise NotDrawnError(f"elements are nested over {MAXIMUM_DEPTH} deep")
    return Drawn(root, styles.background)


def _check_element(element: Element, limit: int) -> None:
    tag = local_name(element)
    octaves = element.get("numOctaves", "1").strip()
    if tag == "feTurbulence" and not (octaves.isdecimal() and int(octaves) <= MAXIMUM_OCTAVES):
        raise NotDrawnError(
            f"has a turbulence filter of {octaves[:20]} octaves; at most {MAXIMUM_OCTAVES} are "
            "drawn"
        )
    if tag == "feDisplacementMap" or (
        tag == "feTurbulence" and element.get("type", "turbulence") == "turbulence"
    ):
        raise NotDrawnError(f"holds a filter that is not drawn (<{tag}>); save it as PNG")
    if tag == "foreignObject" and not element.get("requiredExtensions"):
        raise NotDrawnError("holds HTML (<foreignObject>), which is not drawn; save it as PNG")
    if tag in _NOT_FOLLOWED:
        return
    for attribute, value in element.attrib.items():
        reference = value.strip()
        if attribute.rpartition("}")[2] != "href" or reference.startswith("#") or not reference:
            continue
        if tag not in ("image", "feImage"):
            raise NotDrawnError(f"refers to {reference[:80]!r}; other files are never read")
        element.set(attribute, embedded_png(reference, limit))


def _check_strokes(root: Element, styles: Styles, size: tuple[int, int]) -> None:
    for element, inherited in styles.strokes.items():
        if inherited.get("stroke", "none") == "none":
            continue
        if element.get("pathLength") and inherited.get("stroke-dasharray", "none") != "none":
            raise NotDrawnError("dashes by pathLength")
    fixed = [e for e in root.iter() if e.get("vector-effect", "none").strip() != "none"]
    fixed = [e for e in fixed if styles.strokes[e].get("stroke", "none") != "none"]
    if not fixed:
        return
    scale = _only_scale(root, size)
    for element in fixed:
        effect = element.get("vector-effect", "").strip()
        if effect != "non-scaling-stroke":
            raise NotDrawnError(f"vector-effect: {effect[:60]}")
        if scale is None:
            raise NotDrawnError("non-scaling strokes within transformations")
        stroke = styles.strokes[element]
        scaled = {
            name: _divided(stroke.get(name, usual), scale)
            for name, usual in (
                ("stroke-width", "1"),
                ("stroke-dasharray", "none"),
                ("stroke-dashoffset", "0"),
            )
        }
        for name, value in scaled.items():
            Styles.set_value(element, name, value)


def _only_scale(root: Element, size: tuple[int, int]) -> float | None:
    """Pixels of a unit, where nothing but the view box says; None where more does."""
    box = view_box(root)
    if box is None or root.get("preserveAspectRatio", "").strip().startswith("none"):
        return None
    for element in root.iter():
        tag = local_name(element)
        if element.get("transform") or tag in ("use", "symbol", "pattern", "marker"):
            return None
        if tag == "svg" and element is not root:
            return None
    sides = box[2:]
    lengths = [_PLAIN_LENGTH.fullmatch(root.get(side, "")) for side in ("width", "height")]
    if lengths[0] and lengths[1]:
        outer = [float(match[1]) for match in lengths if match]
    elif root.get("width") or root.get("height"):
        return None
    else:
        outer = list(sides)
    fitted = min(size[0] / outer[0], size[1] / outer[1])
    return fitted * min(outer[0] / sides[0], outer[1] / sides[1])


def view_box(root: Element) -> tuple[float, float, float, float] | None:
    """View box of an element; None where it has none that shows anything."""
    try:
        values = [float(v) for v in root.get("viewBox", "").replace(",", " ").split()]
    except ValueError:
        return None
    if len(values) != 4 or not (values[2] > 0 and values[3] > 0):
        return None
    return values[0], values[1], values[2], values[3]


def _divided(text: str, scale: float) -> str:
    if text == "none":
        return text
    parts = [_PLAIN_LENGTH.fullmatch(part) for part in re.split(r"[\s,]+", text.strip())]
    if not all(parts):
        raise NotDrawnError(f"a non-scaling stroke with {text[:60]!r}")
    return " ".join(f"{float(part[1]) / scale:.9g}" for part in parts if part)


def _check_transforms(root: Element) -> None:
    if root.get("transform"):
        _turn_content(root)
    box = view_box(root)
    nested = sum(local_name(element) == "svg" for element in root.iter()) > 1
    known = box is not None and not nested and box[:2] == (0, 0)
    for element in root.iter():
        if not element.get("transform"):
            element.attrib.pop("transform-origin", None)
            continue
        if element.get("transform-box", "view-box") != "view-box":
            raise NotDrawnError(f"transform-box: {element.get('transform-box')}")
        if origin := element.get("transform-origin"):
            element.set(
                "transform-origin", numeric_origin(origin, box[2:] if box and known else None)
            )


def _turn_content(root: Element) -> None:
    """Move a transformation of the root, about the middle of the picture, to its content."""
    box = view_box(root)
    lengths = [_PLAIN_LENGTH.fullmatch(root.get(side, "")) for side in ("width", "height")]
    if lengths[0] and lengths[1]:
        width, height = (float(match[1]) for match in lengths if match)
    elif box is not None and not root.get("width") and not root.get("height"):
        width, height = box[2:]
    else:
        raise NotDrawnError("a transformation of a drawing without a size")
    if root.get("transform-origin") or root.get("transform-box"):
        raise NotDrawnError("a transformation of the whole drawing about another point")
    content = Element(f"{SVG}svg", {"width": f"{width}", "height": f"{height}"})
    for name in ("viewBox", "preserveAspectRatio"):
        if name in root.attrib:
            content.set(name, root.attrib.pop(name))
    content.set("overflow", root.attrib.pop("overflow", "hidden"))
    content.extend(list(root))
    middle = f"{width / 2:.9g} {height / 2:.9g}"
    back = f"{-width / 2:.9g} {-height / 2:.9g}"
    turned = Element(f"{SVG}g")
    turned.set(
        "transform", f"translate({middle}) {root.attrib.pop('transform')} translate({back})"
    )
    turned.append(content)
    root[:] = [turned]
    root.set("viewBox", f"0 0 {width:.9g} {height:.9g}")


def holds_only_text(root: Element) -> bool:
    """True if text is all that a drawing paints."""
    text = False
    stack = [root]
    while stack:
        element = stack.pop()
        tag = local_name(element)
        if tag in _SHAPES:
            return False
        text = text or (tag == "text" and bool("".join(element.itertext()).strip()))
        if tag not in _WITHOUT_PAINT:
            stack += list(element)
    return text


def _is_deeper(root: Element, most: int) -> bool:
    """True if any path through children and references is longer than `most` elements.

    Cycles of references do not count: the renderer refuses those itself.
    """
    named = {element.get("id"): element for element in root.iter() if element.get("id")}
    depths: dict[Element, int] = {}
    open_elements: set[Element] = set()
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
