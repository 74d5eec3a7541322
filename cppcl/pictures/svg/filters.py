"""Filters of an SVG as the renderer draws them like browsers; others are refused."""

from __future__ import annotations

import re
from xml.etree.ElementTree import Element, SubElement

from cppcl.pictures.svg.colours import srgb_colour
from cppcl.pictures.svg.refusal import NotDrawnError
from cppcl.pictures.svg.selectors import local_name
from cppcl.pictures.svg.styles import SVG, Styles

_TARGET = re.compile(r"url\(\s*#([^)\s]+)\s*\)")
_SPREADING = re.compile(r"(blur|drop-shadow)\(((?:[^()]|\([^()]*\))*)\)", re.IGNORECASE)
_PART = re.compile(r"[^\s()]+(?:\([^()]*\))?")
_LENGTH = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:px)?")
_SPREADS = frozenset(["feGaussianBlur", "feMorphology", "feConvolveMatrix", "feDropShadow"])
_SPACE = "color-interpolation-filters"
_ID = "cppcl-filter-{}"


def resolve_filters(root: Element) -> None:
    """Change filters in place.

    Those that are not there are taken away, as browsers pass over them. The functions that reach
    beyond their element become filters, as the renderer cuts them.

    Raises
    ------
    NotDrawnError
        The region of a filter cuts its element, or such a function is one of several.
    """
    named = {element.get("id") for element in root.iter()}
    made: dict[str, str] = {}
    for element in list(root.iter()):
        if local_name(element) == "filter":
            if _cuts(element):
                raise NotDrawnError("a filter whose region cuts what it is applied to")
            _expand_shadows(element)
        value = Styles.value(element, "filter")
        if not value or value in ("none", "inherit"):
            continue
        if any(target not in named for target in _TARGET.findall(value)):
            Styles.set_value(element, "filter", "none")
        elif function := _SPREADING.search(value):
            if function[0] != value.strip():
                raise NotDrawnError(f"the filter {value[:60]}, of several functions")
            if value not in made:
                made[value] = _ID.format(len(made))
                root.append(_filter_of(made[value], function[1].lower(), function[2]))
            Styles.set_value(element, "filter", f"url(#{made[value]})")


def _filter_of(identity: str, function: str, arguments: str) -> Element:
    """Filter that a function stands for, in a region that cuts nothing."""
    region = {"x": "-1e5", "y": "-1e5", "width": "2e5", "height": "2e5"}
    made = Element(f"{SVG}filter", {"id": identity, "filterUnits": "userSpaceOnUse", **region})
    made.set(_SPACE, "sRGB")
    lengths, colour = [], "#000000"
    for part in _PART.findall(arguments):
        if length := _LENGTH.fullmatch(part):
            lengths.append(length[1])
        else:
            colour = srgb_colour(part) or ""
    most = 1 if function == "blur" else 3
    if len(lengths) > most or not colour.startswith("#") or (most == 3 and len(lengths) < 2):
        raise NotDrawnError(f"the filter {function}({arguments[:60]})")
    if function == "blur":
        SubElement(made, f"{SVG}feGaussianBlur", {"stdDeviation": lengths[0] if lengths else "0"})
        return made
    given = dict(zip(("dx", "dy", "stdDeviation"), [*lengths, "0"], strict=False))
    opacity = int(colour[7:9], 16) / 255 if len(colour) == 9 else 1
    given |= {"flood-color": colour[:7] if len(colour) == 9 else colour}
    SubElement(made, f"{SVG}feDropShadow", {**given, "flood-opacity": f"{opacity:.4g}"})
    _expand_shadows(made)
    return made


def _expand_shadows(filter_: Element) -> None:
    """Write shadows in sRGB as the primitives that they stand for: their colour is right then."""
    for place, primitive in reversed(list(enumerate(filter_))):
        space = Styles.value(primitive, _SPACE) or Styles.value(filter_, _SPACE)
        if local_name(primitive) != "feDropShadow" or space != "sRGB":
            continue
        if any(primitive.get(side) for side in ("x", "y", "width", "height")):
            raise NotDrawnError("a shadow of a filter with a region of its own")
        source = primitive.get("in")
        if source is None and place:
            source = filter_[place - 1].get("result") or f"{_ID.format('in')}-{place}"
            filter_[place - 1].set("result", source)
        source = source or "SourceGraphic"
        shadow = f"{_ID.format('shadow')}-{place}"
        flood = {
            name: value
            for name in ("flood-color", "flood-opacity")
            if (value := Styles.value(primitive, name)) is not None
        }
        moved = {name: primitive.get(name, "2") for name in ("dx", "dy")}
        deviation = primitive.get("stdDeviation", "2")
        merged = Element(f"{SVG}feMerge", {_SPACE: "sRGB"})
        if result := primitive.get("result"):
            merged.set("result", result)
        for name in (f"{shadow}-drawn", source):
            SubElement(merged, f"{SVG}feMergeNode", {"in": name})
        steps = [
            ("feGaussianBlur", {"in": source, "stdDeviation": deviation}),
            ("feOffset", {**moved, "result": shadow}),
            ("feFlood", flood),
            ("feComposite", {"in2": shadow, "operator": "in", "result": f"{shadow}-drawn"}),
        ]
        made = [Element(SVG + tag, {**given, _SPACE: "sRGB"}) for tag, given in steps]
        filter_[place : place + 1] = [*made, merged]


def _cuts(element: Element) -> bool:
    """True if the region of a filter is given in shares of its element and within it."""
    if element.get("filterUnits", "objectBoundingBox") != "objectBoundingBox":
        return False
    usual = {"x": "-10%", "y": "-10%", "width": "120%", "height": "120%"}
    shares = {}
    for name, value in usual.items():
        text = element.get(name, value).strip()
        try:
            shares[name] = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError:
            return False
    if not any(local_name(primitive) in _SPREADS for primitive in element):
        return False
    ends = shares["x"] + shares["width"], shares["y"] + shares["height"]
    return shares["x"] >= 0 or shares["y"] >= 0 or min(ends) <= 1
