"""Styles of an SVG resolved: what the renderer is given has no style sheet and no variable."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from xml.etree.ElementTree import Element

from cppcl.pictures.svg.colours import srgb_colour
from cppcl.pictures.svg.refusal import NotDrawnError
from cppcl.pictures.svg.selectors import Specificity, Tree, local_name
from cppcl.pictures.svg.style_sheets import (
    Declaration,
    Rule,
    applies_to_screen,
    parse_declarations,
    parse_rules,
)
from cppcl.pictures.svg.transforms import attribute_of_transform

SVG = "{http://www.w3.org/2000/svg}"

COLOURS = frozenset(["fill", "stroke", "color", "stop-color", "flood-color", "lighting-color"])
GEOMETRY = {
    "x": "svg rect image use",
    "y": "svg rect image use",
    "width": "svg rect image use",
    "height": "svg rect image use",
    "cx": "circle ellipse",
    "cy": "circle ellipse",
    "r": "circle",
    "rx": "ellipse rect",
    "ry": "ellipse rect",
    "d": "path",
}
"""Attributes that style sheets may set, and the elements that they apply to."""

# Initial values of what the renderer knows; those of the second list are inherited.
_INITIAL = {
    "clip-path": "none",
    "display": "inline",
    "filter": "none",
    "flood-color": "#000",
    "flood-opacity": "1",
    "isolation": "auto",
    "lighting-color": "#fff",
    "mask": "none",
    "mask-type": "luminance",
    "mix-blend-mode": "normal",
    "opacity": "1",
    "overflow": "visible",
    "stop-color": "#000",
    "stop-opacity": "1",
    "transform": "none",
    "transform-box": "view-box",
    "transform-origin": "0 0",
    "vector-effect": "none",
}
_INITIAL_INHERITED = {
    "clip-rule": "nonzero",
    "color": "#000",
    "color-interpolation": "sRGB",
    "color-interpolation-filters": "linearRGB",
    "fill": "#000",
    "fill-opacity": "1",
    "fill-rule": "nonzero",
    "font-size": "16px",
    "image-rendering": "auto",
    "marker": "none",
    "marker-end": "none",
    "marker-mid": "none",
    "marker-start": "none",
    "paint-order": "normal",
    "shape-rendering": "auto",
    "stroke": "none",
    "stroke-dasharray": "none",
    "stroke-dashoffset": "0",
    "stroke-linecap": "butt",
    "stroke-linejoin": "miter",
    "stroke-miterlimit": "4",
    "stroke-opacity": "1",
    "stroke-width": "1",
    "visibility": "visible",
}
_KEPT = _INITIAL | _INITIAL_INHERITED
_AS_ATTRIBUTES = frozenset({"transform", "transform-box", "transform-origin", "vector-effect"})
INHERITED_STROKE = ("stroke", "stroke-width", "stroke-dasharray", "stroke-dashoffset")

# What browsers draw and the renderer does not know, unless it is at one of these values.
_NOTHING = frozenset(
    ["none", "auto", "normal", "initial", "unset", "revert", "0", "0px", "1", "100%"]
)
_UNKNOWN = frozenset(
    [
        "backdrop-filter",
        "offset",
        "offset-path",
        "translate",
        "rotate",
        "scale",
        "perspective",
        "zoom",
        "mask-image",
        "mask-border",
        "-webkit-mask-image",
        "-webkit-mask",
        "-webkit-clip-path",
        "all",
    ]
)
_UNKNOWN_ON_ROOT = ("border", "padding", "margin", "outline", "box-shadow")
_DRAWN_BORDERS = re.compile(r"\b(solid|dashed|dotted|double|groove|ridge|inset|outset)\b")

_FUNCTION = re.compile(r"\b(var|calc|min|max|clamp|env|attr|round|image-set)\(", re.IGNORECASE)
_UNIT = re.compile(
    r"[0-9.](r?em|r?ex|rch|ch|r?cap|r?ic|r?lh|[sld]?v(?:w|h|min|max|i|b)|cq\w+|q)\b", re.IGNORECASE
)
_RENDERED_UNITS = frozenset({"em"})
_URL = re.compile(r"url\(\s*(\"[^\"]*\"|'[^']*'|[^)]*?)\s*\)", re.IGNORECASE)
_LENGTH = re.compile(
    r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?(?P<unit>%|[a-z]+)?", re.IGNORECASE
)
_LENGTH_UNITS = frozenset({"px", "%", "em", "pt", "pc", "mm", "cm", "in"})
_PATH = re.compile(r"path\(\s*(?:(?:nonzero|evenodd)\s*,\s*)?([\"'])(.*)\1\s*\)", re.DOTALL)
_LONGEST = 100_000
"""Letters of a value after its variables are put in: they can double at every step."""


class _InvalidError(Exception):
    """A variable without a value."""


class Styles:
    """Resolves the styles of a drawing in place.

    Style sheets, style attributes and presentation attributes become presentation attributes
    and style attributes of the forms that the renderer knows: variables are put in, colours are
    sRGB, lengths and transformations of CSS are attributes.

    Parameters
    ----------
    root : Element
        The drawing.

    Attributes
    ----------
    background : str
        Colour of the ground that the root asks for; empty without one.
    strokes : dict of Element to dict
        Values that the stroke of each element has or inherits.

    Raises
    ------
    NotDrawnError
        The drawing holds what the renderer does not draw as browsers do.
    """

    def __init__(self, root: Element) -> None:
        self.root = root
        self.background = ""
        self.strokes: dict[Element, dict[str, str]] = {}
        self._tree: Tree | None = None
        self._variables: dict[Element, dict[str, str]] = {}
        rules = self._take_rules()
        parents = {child: parent for parent in root.iter() for child in parent}
        if rules:
            self._tree = Tree(root)
        for element in root.iter():
            parent = parents.get(element)
            variables = self._variables.get(parent, {}) if parent is not None else {}
            strokes = self.strokes.get(parent, {}) if parent is not None else {}
            self._resolve(element, rules, variables)
            own = {n: v for n in INHERITED_STROKE if (v := self.value(element, n)) is not None}
            own = {name: value for name, value in own.items() if value != "inherit"}
            self.strokes[element] = {**strokes, **own} if own else strokes

    @staticmethod
    def set_value(element: Element, name: str, value: str) -> None:
        """Set a property of an element after resolution, whichever way it was set before."""
        kept = [part for part in element.get("style", "").split(";") if part]
        kept = [part for part in kept if part.partition(":")[0] != name]
        element.set("style", ";".join([*kept, f"{name}:{value}"]))

    @staticmethod
    def value(element: Element, name: str) -> str | None:
        """Value that an element sets of a property, after resolution; None where it sets none."""
        for part in element.get("style", "").split(";"):
            given, _, value = part.partition(":")
            if given == name:
                return value
        return element.get(name)

    def _take_rules(self) -> list[Rule]:
        rules: list[Rule] = []
        for parent in self.root.iter():
            for element in [child for child in parent if child.tag == f"{SVG}style"]:
                kind = element.get("type", "").strip().lower()
                if kind in ("", "text/css") and applies_to_screen(element.get("media", "")):
                    rules += parse_rules("".join(element.itertext()))
                element.text = None
        return rules

    def _resolve(self, element: Element, rules: list[Rule], inherited: dict[str, str]) -> None:
        if not str(element.tag).startswith(SVG):
            return
        declared = self._declared(element, rules)
        own = {name: found[-1] for name, found in declared.items() if name.startswith("--")}
        variables = {**inherited, **_computed(own, inherited)} if own else inherited
        self._variables[element] = variables
        for name, value in list(element.attrib.items()):
            if name in _KEPT:
                resolved = self._value(element, name, value, variables)
                if resolved is None:
                    del element.attrib[name]
                elif resolved != value:
                    element.set(name, resolved)
            elif name in GEOMETRY and name != "d":
                _check_functions(name, value)
        style = {}
        for name, values in declared.items():
            for value in reversed(values):
                resolved = self._value(element, name, value, variables)
                if resolved is not None:
                    style[name] = resolved
                    break
        self._write(element, style)

    def _declared(self, element: Element, rules: list[Rule]) -> dict[str, list[str]]:
        """Values that rules and the style attribute give each property, the strongest last."""
        found: list[tuple[bool, bool, Specificity, int, Declaration]] = []
        for order, rule in enumerate(rules):
            assert self._tree is not None
            matching = [s.specificity for s in rule.selectors if s.matches(element, self._tree)]
            if matching:
                found += [(d.important, False, max(matching), order, d) for d in rule.declarations]
        for declaration in parse_declarations(element.attrib.pop("style", "")):
            found.append((declaration.important, True, (0, 0, 0), 0, declaration))
        declared: dict[str, list[str]] = {}
        for *_, declaration in sorted(found, key=lambda entry: entry[:4]):
            declared.setdefault(declaration.name, []).append(declaration.value)
        return declared

    def _value(
        self, element: Element, name: str, value: str, variables: dict[str, str]
    ) -> str | None:
        """Value for the renderer; None for what browsers ignore."""
        if name.startswith("--"):
            return None
        on_root = element is self.root
        if name in _KEPT or name in GEOMETRY or _is_checked(name, on_root):
            if "var(" in value:
                try:
                    value = substituted(value, variables.get)
                except _InvalidError:
                    value = "unset"
            _check_unknown(name, value, on_root)
        if on_root and name in ("background", "background-color", "background-image"):
            self._take_background(name, value)
            return None
        if name in GEOMETRY:
            # Styles do not set the size of a picture: its attributes and its view box do.
            return None if on_root else _geometry(element, name, value)
        if name not in _KEPT:
            return None
        value = value.strip()
        keyword = value.lower()
        if keyword in ("initial", "unset", "revert", "revert-layer"):
            inherits = name in _INITIAL_INHERITED and keyword != "initial"
            return "inherit" if inherits else _KEPT[name]
        return known_value(name, value)

    def _take_background(self, name: str, value: str) -> None:
        keyword = value.strip().lower()
        if keyword in ("none", "transparent", "initial", "unset", "inherit", ""):
            return
        colour = None if name == "background-image" else srgb_colour(value)
        if colour is None or colour in ("currentColor", "inherit"):
            raise NotDrawnError(f"the background {value.strip()[:60]!r}, which is not one colour")
        self.background = colour

    def _write(self, element: Element, style: dict[str, str]) -> None:
        kept = []
        for name, value in style.items():
            if name in GEOMETRY:
                if value == "auto":
                    element.attrib.pop(name, None)
                else:
                    element.set(name, value)
            elif name == "transform":
                attribute = {
                    "linearGradient": "gradientTransform",
                    "radialGradient": "gradientTransform",
                    "pattern": "patternTransform",
                }.get(local_name(element), "transform")
                element.attrib.pop(attribute, None)
                if written := attribute_of_transform(value):
                    element.set(attribute, written)
            elif name in _AS_ATTRIBUTES:
                element.set(name, value)
            else:
                kept.append(f"{name}:{value}")
        if kept:
            element.set("style", ";".join(kept))


def substituted(text: str, lookup: Callable[[str], str | None]) -> str:
    """A value with its variables put in.

    Raises
    ------
    NotDrawnError
        It becomes longer than any value is.
    """
    parts, at = [], 0
    while (start := text.find("var(", at)) >= 0:
        end = _closing(text, start + 3)
        name, comma, fallback = text[start + 4 : end].partition(",")
        value = lookup(name.strip())
        if value is None:
            if not comma:
                raise _InvalidError
            value = substituted(fallback, lookup)
        parts += [text[at:start], value]
        at = end + 1
        if sum(map(len, parts)) > _LONGEST:
            raise NotDrawnError(f"a value of over {_LONGEST} letters made of variables")
    return "".join([*parts, text[at:]])


def _closing(text: str, at: int) -> int:
    depth = 0
    for here in range(at, len(text)):
        depth += {"(": 1, ")": -1}.get(text[here], 0)
        if not depth:
            return here
    raise _InvalidError


def _computed(own: dict[str, str], inherited: dict[str, str]) -> dict[str, str]:
    """Values of an element's own variables, which may refer to each other; cycles have none."""
    done: dict[str, str | None] = {}
    open_names: set[str] = set()

    def lookup(name: str) -> str | None:
        if name not in own:
            return inherited.get(name)
        if name in open_names or len(open_names) > 100:
            return None
        if name not in done:
            open_names.add(name)
            try:
                done[name] = substituted(own[name], lookup)
            except _InvalidError:
                done[name] = None
            open_names.discard(name)
        return done[name]

    return {name: value for name in own if (value := lookup(name)) is not None}


def _is_checked(name: str, on_root: bool) -> bool:
    return (
        name in _UNKNOWN
        or (name.startswith("background") and on_root)
        or (on_root and name.startswith(_UNKNOWN_ON_ROOT))
    )


def _check_unknown(name: str, value: str, on_root: bool) -> None:
    if name.startswith("background") or name in _KEPT or name in GEOMETRY:
        return
    # A border of a style and a width of 0 draws nothing.
    words = frozenset(value.lower().replace(",", " ").split())
    lined = on_root and name.startswith(("border", "outline"))
    if lined and not _DRAWN_BORDERS.search(value):
        return
    if name == "all" or not words <= _NOTHING:
        raise NotDrawnError(f"the property {name}: {value.strip()[:60]}")


def _check_functions(name: str, value: str) -> None:
    if match := _FUNCTION.search(value):
        raise NotDrawnError(f"the function {match[1]}() in {name}={value.strip()[:60]!r}")
    for match in _UNIT.finditer(value):
        if match[1].lower() not in _RENDERED_UNITS:
            raise NotDrawnError(f"the unit of {name}={value.strip()[:60]!r}")


@lru_cache(maxsize=4096)
def known_value(name: str, value: str) -> str | None:
    """Value of a property as the renderer knows it; None for what browsers ignore."""
    if not value:
        return None
    if name not in ("clip-path", "mask"):
        _check_functions(name, value)
    if name in COLOURS:
        return _paint(name, value)
    if name in ("clip-path", "mask") and not _is_link(value) and value != "inherit":
        if value.lower() == "none":
            return "none"
        raise NotDrawnError(f"the property {name}: {value[:60]}")
    return _URL.sub(lambda m: f"url({_own_target(m[1])})", value)


def _paint(name: str, value: str) -> str | None:
    link = _URL.match(value)
    if link is None:
        if "icc-color" in value:
            raise NotDrawnError(f"the colour {value[:60]!r}, whose profile is in another file")
        return srgb_colour(value)
    if name not in ("fill", "stroke"):
        return None
    rest = value[link.end() :].strip()
    fallback = srgb_colour(rest) if rest else ""
    return f"url({_own_target(link[1])}) {fallback or ''}".strip()


def _is_link(value: str) -> bool:
    return _URL.fullmatch(value) is not None


def _own_target(text: str) -> str:
    """Target of ``url()`` within the drawing.

    Raises
    ------
    NotDrawnError
        It is in another file.
    """
    target = text.strip("\"' \t\r\n")
    if target and not target.startswith("#"):
        raise NotDrawnError(f"{target[:80]!r}: other files are never read")
    return target


def _geometry(element: Element, name: str, value: str) -> str | None:
    if local_name(element) not in GEOMETRY[name].split():
        return None
    value = value.strip()
    if name == "d":
        path = _PATH.fullmatch(value)
        return path[2] if path else ("" if value == "none" else None)
    if value.lower() in ("auto", "initial", "unset"):
        return "auto"
    match = _LENGTH.fullmatch(value)
    unit = (match["unit"] or "").lower() if match else None
    if match is not None and (unit in _LENGTH_UNITS or (not unit and float(match[0]) == 0)):
        return value
    if match is not None and not unit:
        return None  # lengths of CSS need a unit
    if unit is not None and re.fullmatch(r"[sld]?v(?:w|h|min|max)", unit):
        return "auto"
    _check_functions(name, value)
    return None
