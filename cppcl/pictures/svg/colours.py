"""Colours of CSS as hexadecimal sRGB, the one form that the renderer is given."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

from cppcl.pictures.svg.refusal import NotDrawnError

Triple = tuple[float, float, float]

_HEX = re.compile(r"#(?:[0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})")
_CALL = re.compile(r"([a-z][a-z0-9-]*)\((.*)\)", re.DOTALL)
_NUMBER = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?)(%|deg|grad|rad|turn)?")
_DEGREES = {"": 1.0, "deg": 1.0, "grad": 0.9, "rad": 180 / math.pi, "turn": 360.0}
_NEVER_RESOLVED = ("color-mix", "light-dark", "device-cmyk", "contrast-color")
_SYSTEM = frozenset(
    [
        "accentcolor",
        "accentcolortext",
        "activetext",
        "buttonborder",
        "buttonface",
        "buttontext",
        "canvas",
        "canvastext",
        "field",
        "fieldtext",
        "graytext",
        "highlight",
        "highlighttext",
        "linktext",
        "mark",
        "marktext",
        "selecteditem",
        "selecteditemtext",
        "visitedtext",
    ]
)

# Matrices of CSS Color Module Level 4, section 18 (sample code for colour conversions).
_XYZ_TO_SRGB = (
    (3.2409699419045226, -1.5373831775700939, -0.4986107602930034),
    (-0.9692436362808796, 1.8759675015077202, 0.04155505740717559),
    (0.05563007969699366, -0.20397695888897652, 1.0569715142428786),
)
_D50_TO_D65 = (
    (0.955473421488075, -0.02309845494876471, 0.06325924320057072),
    (-0.0283697093338637, 1.0099953980813041, 0.021041441191917323),
    (0.012314014864481998, -0.020507649298898964, 1.330365926242124),
)
_TO_XYZ = {
    "display-p3": (
        (0.4865709486482162, 0.26566769316909306, 0.1982172852343625),
        (0.2289745640697488, 0.6917385218365064, 0.079286914093745),
        (0.0, 0.04511338185890264, 1.043944368900976),
    ),
    "a98-rgb": (
        (0.5766690429101305, 0.1855582379065463, 0.1882286462349947),
        (0.29734497525053605, 0.6273635662554661, 0.07529145849399788),
        (0.02703136138641234, 0.07068885253582723, 0.9913375368376388),
    ),
    "rec2020": (
        (0.6369580483012914, 0.14461690358620832, 0.1688809751641721),
        (0.2627002120112671, 0.6779980715188708, 0.05930171646986196),
        (0.0, 0.028072693049087428, 1.060985057710791),
    ),
    "prophoto-rgb": (
        (0.7977666449006423, 0.13518129740053308, 0.0313477341283922),
        (0.2880748288194013, 0.711835234241873, 0.00008993693872564),
        (0.0, 0.0, 0.8251046025104602),
    ),
}
_OKLAB_TO_LMS = (
    (1.0, 0.3963377773761749, 0.2158037573099136),
    (1.0, -0.1055613458156586, -0.0638541728258133),
    (1.0, -0.0894841775298119, -1.2914855480194092),
)
_LMS_TO_XYZ = (
    (1.2268798758459243, -0.5578149944602171, 0.2813910456659647),
    (-0.0405757452148008, 1.112286803280317, -0.0717110580655164),
    (-0.0763729366746601, -0.4214933324022432, 1.5869240198367816),
)


def srgb_colour(text: str) -> str | None:
    """A colour of CSS as ``#rrggbb`` or ``#rrggbbaa``; None if it is none.

    ``none``, ``currentColor``, ``inherit`` and the like come back as they are. Colours beyond
    sRGB are clipped to it, channel by channel, as browsers do.

    Source: CSS Color Module Level 4.

    Raises
    ------
    NotDrawnError
        A colour that depends on the system, or is mixed or derived from others.
    """
    value = text.strip().lower()
    if value in ("none", "currentcolor", "inherit", "context-fill", "context-stroke"):
        return {"currentcolor": "currentColor"}.get(value, value)
    if value == "transparent":
        return "#00000000"
    if _HEX.fullmatch(value):
        return value
    if value in _SYSTEM:
        raise NotDrawnError(f"the colour {text.strip()[:60]!r}, which depends on the system")
    call = _CALL.fullmatch(value)
    if call is None:
        from PIL import ImageColor

        if value not in ImageColor.colormap:
            return None
        # Not the entry itself: Pillow replaces those that it has been asked for.
        return "#{:02x}{:02x}{:02x}".format(*ImageColor.getrgb(value))
    name, inside = call[1], call[2]
    if name in _NEVER_RESOLVED or inside.lstrip().startswith("from "):
        raise NotDrawnError(f"the colour {text.strip()[:60]!r}, which is made of others")
    space = ""
    if name == "color":
        space, _, inside = inside.strip().partition(" ")
    arguments = _arguments(inside)
    if arguments is None:
        return None
    *channels, alpha = arguments
    triple = _convert(name, space, channels)
    if triple is None:
        return None
    opacity = _value(alpha, 1.0)
    if opacity is None:
        return None
    bytes_ = [min(255, max(0, math.floor(255 * c + 0.5))) for c in (*triple, opacity)]
    return "#" + "".join(f"{b:02x}" for b in (bytes_ if bytes_[3] < 255 else bytes_[:3]))


def _arguments(inside: str) -> list[str] | None:
    """Three channels and alpha, of either syntax."""
    body, slash, alpha = inside.partition("/")
    parts = body.split(",") if "," in body else body.split()
    parts = [part.strip() for part in parts]
    if slash:
        parts.append(alpha.strip())
    if len(parts) == 3:
        parts.append("1")
    return parts if len(parts) == 4 else None


def _value(text: str, whole: float) -> float | None:
    """A number, or a percentage of `whole`; ``none`` is 0."""
    if text == "none":
        return 0.0
    match = _NUMBER.fullmatch(text)
    if match is None or match[2] not in (None, "%"):
        return None
    number = float(match[1])
    return number * whole / 100 if match[2] else number


def _hue(text: str) -> float | None:
    match = _NUMBER.fullmatch("0" if text == "none" else text)
    if match is None or match[2] == "%":
        return None
    return float(match[1]) * _DEGREES[match[2] or ""] % 360


def _values(texts: Sequence[str], wholes: Sequence[float]) -> Triple | None:
    found = [_value(text, whole) for text, whole in zip(texts, wholes, strict=True)]
    if any(value is None for value in found):
        return None
    first, second, third = (value for value in found if value is not None)
    return first, second, third


def _convert(name: str, space: str, channels: Sequence[str]) -> Triple | None:
    """Channels of a colour function as sRGB, 1 is full; None if they are none."""
    if name in ("rgb", "rgba"):
        values = _values(channels, (255, 255, 255))
        return None if values is None else _each(values, lambda v: v / 255)
    if name in ("hsl", "hsla", "hwb"):
        hue = _hue(channels[0])
        rest = [_value(text, 100) for text in channels[1:]]
        if hue is None or rest[0] is None or rest[1] is None:
            return None
        shares = rest[0] / 100, rest[1] / 100
        return _hwb(hue, *shares) if name == "hwb" else _hsl(hue, *shares)
    if name in ("lab", "oklab"):
        whole = (100.0, 125.0, 125.0) if name == "lab" else (1.0, 0.4, 0.4)
        values = _values(channels, whole)
        return None if values is None else (_lab if name == "lab" else _oklab)(values)
    if name in ("lch", "oklch"):
        lightest, strongest = (100.0, 150.0) if name == "lch" else (1.0, 0.4)
        light, chroma = _value(channels[0], lightest), _value(channels[1], strongest)
        hue = _hue(channels[2])
        if light is None or chroma is None or hue is None:
            return None
        turned = math.radians(hue)
        cartesian = light, chroma * math.cos(turned), chroma * math.sin(turned)
        return (_lab if name == "lch" else _oklab)(cartesian)
    if name != "color":
        return None
    values = _values(channels, (1.0, 1.0, 1.0))
    return None if values is None else _predefined(space, values)


def _predefined(space: str, values: Triple) -> Triple | None:
    if space == "srgb":
        return values
    if space == "srgb-linear":
        return _each(values, _encoded)
    if space in ("xyz", "xyz-d65"):
        return _from_xyz(values)
    if space == "xyz-d50":
        return _from_xyz(_times(_D50_TO_D65, values))
    if space not in _TO_XYZ:
        return None
    linear = {"display-p3": _decoded, "a98-rgb": _a98, "rec2020": _rec2020}.get(space, _prophoto)
    xyz = _times(_TO_XYZ[space], _each(values, linear))
    return _from_xyz(_times(_D50_TO_D65, xyz) if space == "prophoto-rgb" else xyz)


def _times(matrix: tuple[Triple, Triple, Triple], v: Triple) -> Triple:
    first, second, third = (row[0] * v[0] + row[1] * v[1] + row[2] * v[2] for row in matrix)
    return first, second, third


def _each(v: Triple, function: Callable[[float], float]) -> Triple:
    return function(v[0]), function(v[1]), function(v[2])


def _from_xyz(xyz: Triple) -> Triple:
    return _each(_times(_XYZ_TO_SRGB, xyz), _encoded)


def _encoded(value: float) -> float:
    """Transfer function of sRGB, odd about 0."""
    size = abs(value)
    code = 12.92 * size if size <= 0.0031308 else 1.055 * size ** (1 / 2.4) - 0.055
    return math.copysign(code, value)


def _decoded(value: float) -> float:
    size = abs(value)
    light = size / 12.92 if size <= 0.04045 else ((size + 0.055) / 1.055) ** 2.4
    return math.copysign(light, value)


def _a98(value: float) -> float:
    return math.copysign(abs(value) ** (563 / 256), value)


def _rec2020(value: float) -> float:
    """Transfer function of ITU-R BT.2020, which browsers use."""
    alpha, beta = 1.09929682680944, 0.018053968510807
    size = abs(value)
    light = size / 4.5 if size < 4.5 * beta else ((size + alpha - 1) / alpha) ** (1 / 0.45)
    return math.copysign(light, value)


def _prophoto(value: float) -> float:
    size = abs(value)
    return math.copysign(size / 16 if size <= 16 / 512 else size**1.8, value)


def _lab(lab: Triple) -> Triple:
    kappa, epsilon = 24389 / 27, 216 / 24389
    light, a, b = lab
    y = (light + 16) / 116
    x, z = y + a / 500, y - b / 200
    xyz = (
        x**3 if x**3 > epsilon else (116 * x - 16) / kappa,
        y**3 if light > kappa * epsilon else light / kappa,
        z**3 if z**3 > epsilon else (116 * z - 16) / kappa,
    )
    white = (0.3457 / 0.3585, 1.0, (1 - 0.3457 - 0.3585) / 0.3585)
    d50 = xyz[0] * white[0], xyz[1] * white[1], xyz[2] * white[2]
    return _from_xyz(_times(_D50_TO_D65, d50))


def _oklab(lab: Triple) -> Triple:
    return _from_xyz(_times(_LMS_TO_XYZ, _each(_times(_OKLAB_TO_LMS, lab), lambda v: v**3)))


def _hsl(hue: float, saturation: float, lightness: float) -> Triple:
    saturation, lightness = max(0.0, min(1.0, saturation)), max(0.0, min(1.0, lightness))
    chroma = saturation * min(lightness, 1 - lightness)

    def channel(n: int) -> float:
        k = (n + hue / 30) % 12
        return lightness - chroma * max(-1.0, min(k - 3, 9 - k, 1.0))

    return channel(0), channel(8), channel(4)


def _hwb(hue: float, white: float, black: float) -> Triple:
    if white + black >= 1:
        grey = white / (white + black)
        return grey, grey, grey
    return _each(_hsl(hue, 1.0, 0.5), lambda v: v * (1 - white - black) + white)
