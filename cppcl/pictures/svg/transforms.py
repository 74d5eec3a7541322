"""Transformations of CSS as the attribute of SVG, whose numbers have no units."""

from __future__ import annotations

import math
import re

from cppcl.pictures.svg.refusal import NotDrawnError

_CALL = re.compile(r"\s*([a-zA-Z0-9]+)\(([^()]*)\)\s*")
_NUMBER = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?)([a-z%]*)", re.I)
_LENGTHS = {"": 1.0, "px": 1.0, "pt": 4 / 3, "pc": 16.0, "mm": 96 / 25.4, "cm": 96 / 2.54}
_LENGTHS["in"] = 96.0
_ANGLES = {"": 1.0, "deg": 1.0, "grad": 0.9, "rad": 180 / math.pi, "turn": 360.0}
_RATIOS = {"": 1.0, "%": 0.01}

# Name, units of its arguments, how many they may be, and where they stand in the attribute.
_KNOWN = {
    "translate": ("translate({}, {})", _LENGTHS, (1, 2), 0.0),
    "translatex": ("translate({}, 0)", _LENGTHS, (1, 1), 0.0),
    "translatey": ("translate(0, {})", _LENGTHS, (1, 1), 0.0),
    "scale": ("scale({}, {})", _RATIOS, (1, 2), None),
    "scalex": ("scale({}, 1)", _RATIOS, (1, 1), 0.0),
    "scaley": ("scale(1, {})", _RATIOS, (1, 1), 0.0),
    "rotate": ("rotate({})", _ANGLES, (1, 1), 0.0),
    "rotatez": ("rotate({})", _ANGLES, (1, 1), 0.0),
    "skewx": ("skewX({})", _ANGLES, (1, 1), 0.0),
    "skewy": ("skewY({})", _ANGLES, (1, 1), 0.0),
    "matrix": ("matrix({}, {}, {}, {}, {}, {})", {"": 1.0}, (6, 6), 0.0),
}


def attribute_of_transform(value: str) -> str:
    """A ``transform`` of a style as the attribute; empty for none.

    Raises
    ------
    NotDrawnError
        It has three dimensions, or lengths relative to something.
    """
    value = value.strip()
    if value.lower() in ("none", "inherit", ""):
        return ""
    written, at = [], 0
    while at < len(value):
        call = _CALL.match(value, at)
        if call is None or call[1].lower() not in _KNOWN:
            raise _unknown(value)
        form, units, (least, most), missing = _KNOWN[call[1].lower()]
        numbers = [_number(text, units, value) for text in re.split(r"[\s,]+", call[2].strip())]
        if not least <= len(numbers) <= most:
            raise _unknown(value)
        if len(numbers) < most:
            numbers.append(numbers[0] if missing is None else missing)
        written.append(form.format(*(f"{number:.9g}" for number in numbers)))
        at = call.end()
    return " ".join(written)


def _number(text: str, units: dict[str, float], value: str) -> float:
    match = _NUMBER.fullmatch(text)
    if match is None or match[2].lower() not in units:
        raise _unknown(value)
    return float(match[1]) * units[match[2].lower()]


def _unknown(value: str) -> NotDrawnError:
    return NotDrawnError(f"the transformation {value[:80]!r}")


def numeric_origin(value: str, size: tuple[float, float] | None) -> str:
    """A ``transform-origin`` in numbers, of a view box of this size that starts at 0.

    Raises
    ------
    NotDrawnError
        It depends on a size that is not known.
    """
    words = value.lower().split()[:2]
    if len(words) == 1:
        words.append("center")
    if words[0] in ("top", "bottom") or words[1] in ("left", "right"):
        words.reverse()
    named = {"left": "0%", "top": "0%", "center": "50%", "right": "100%", "bottom": "100%"}
    numbers = []
    for axis, word in enumerate(words):
        text = named.get(word, word)
        match = _NUMBER.fullmatch(text)
        if match is not None and match[2].lower() in _LENGTHS:
            numbers.append(float(match[1]) * _LENGTHS[match[2].lower()])
        elif match is not None and match[2] == "%" and size is not None:
            numbers.append(float(match[1]) / 100 * size[axis])
        else:
            raise NotDrawnError(f"the origin {value[:60]!r} of a transformation")
    return f"{numbers[0]:.9g} {numbers[1]:.9g}"
