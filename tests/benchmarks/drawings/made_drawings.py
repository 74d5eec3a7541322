"""Small SVG drawings of the features that the SVG 1.1 test suite lists, and of styles of today."""

from __future__ import annotations

import base64
import io

import numpy as np
from PIL import Image

NAMESPACES = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
BOX = '<rect x="20" y="20" width="60" height="60" {}/>'
STAR = '<path d="M50 10L75 90L10 40H90L25 90Z" {}/>'
ZIGZAG = '<path d="M10 80L50 20L90 80" fill="none" stroke="#246" stroke-width="16" {}/>'
LINE = '<path d="M10 50H90" stroke="#246" stroke-width="12" {}/>'


def svg(body: str, attributes: str = 'viewBox="0 0 100 100"') -> bytes:
    """A document."""
    return f"<svg {NAMESPACES} {attributes}>{body}</svg>".encode()


def picture_uri(form: str = "PNG", called: str = "png") -> str:
    """A small picture as a data URI."""
    pixels = np.zeros((8, 8, 3), np.uint8)
    pixels[:4, :4], pixels[4:, 4:], pixels[:4, 4:] = (255, 0, 0), (0, 0, 255), (0, 160, 0)
    file = io.BytesIO()
    Image.fromarray(pixels).resize((64, 64), Image.Resampling.NEAREST).save(file, form)
    return f"data:image/{called};base64,{base64.b64encode(file.getvalue()).decode()}"


def drawings() -> dict[str, bytes]:
    """All drawings by name: the feature, and what it is set to."""
    made: dict[str, str | bytes] = {}
    for part in (
        shapes,
        strokes,
        paints,
        coordinates,
        structure,
        clips_and_masks,
        filters,
        styles,
    ):
        made |= part()
    return {name: d if isinstance(d, bytes) else svg(d) for name, d in made.items()}


def shapes() -> dict[str, str | bytes]:
    """Basic shapes and every command of paths."""
    bodies = [
        '<rect x="10" y="20" width="70" height="50"/>',
        '<rect x="10" y="20" width="70" height="50" rx="20"/>',
        '<rect x="10" y="20" width="70" height="50" rx="40" ry="10"/>',
        '<rect x="10%" y="20%" width="50%" height="40%"/>',
        '<circle cx="50" cy="50" r="35"/>',
        '<ellipse cx="50" cy="50" rx="45" ry="20"/>',
        '<ellipse cx="50" cy="50" rx="30"/>',
        '<line x1="10" y1="10" x2="90" y2="70" stroke="red" stroke-width="8"/>',
        '<polyline points="10,10 50,80 90,10" fill="none" stroke="blue" stroke-width="6"/>',
        '<polygon points="10,10 50,80 90,10"/>',
        '<polygon points="10 10 50 80 90"/>',
    ]
    paths = [
        "M10 10 L90 10 L50 90 Z",
        "m10 10 l80 0 l-40 80 z",
        "M10 10H90V90H10z",
        "m10 10h80v80h-80z",
        "M10 50C20 0 80 0 90 50S60 100 10 50",
        "m10 50c10-50 70-50 80 0s-30 50-80 0",
        "M10 50Q50 0 90 50T10 90",
        "m10 50q40-50 80 0t-80 40",
        "M20 50A30 20 30 1 0 70 30Z",
        "M20 50a30 20 0 0 1 50-20z",
        "M20 50a30 20 0 0150-20z",
        "M10-20.5.5 30 90 90z",
        "M10 10 90 10 50 90",
        "M10 10L50 90L90 10 M30 20h40v10h-40z",
        "M10 10L90 10L50 oops 90",
        "M20 50A0 20 0 0 0 70 30L50 90z",
        "M5e1 1E1L90 90H10z",
    ]
    made: dict[str, str | bytes] = {f"shape {n}": body for n, body in enumerate(bodies)}
    return made | {f"path {d}": f'<path d="{d}"/>' for d in paths}


def strokes() -> dict[str, str | bytes]:
    """Strokes, dashes and markers."""
    made: dict[str, str | bytes] = {}
    for name, values in {
        "stroke-linecap": ["butt", "round", "square"],
        "stroke-linejoin": ["miter", "round", "bevel"],
        "stroke-miterlimit": ["1", "2", "8"],
        "stroke-opacity": ["0.3", "40%"],
        "stroke-width": ["0", "1", "2.5", "10%", "1mm", "0.5em"],
        "stroke-dasharray": ["10", "10 5", "10,5,2", "10% 5%", "0 20", "none"],
        "opacity": ["0.5", "0", "50%"],
        "visibility": ["hidden", "collapse"],
        "display": ["none", "block"],
        "shape-rendering": ["crispEdges", "geometricPrecision"],
        "vector-effect": ["none", "non-scaling-stroke"],
        "paint-order": ["stroke", "fill stroke markers"],
    }.items():
        for value in values:
            zigzag = ZIGZAG.replace('stroke-width="16"', "") if name == "stroke-width" else ZIGZAG
            made[f"{name}={value}"] = zigzag.format(f'{name}="{value}"')
    for offset in ("5", "-5", "10%"):
        given = f'stroke-dasharray="12 6" stroke-dashoffset="{offset}"'
        made[f"dashoffset {offset}"] = LINE.format(given)
    made["dashes by pathLength"] = LINE.format('stroke-dasharray="1 1" pathLength="8"')
    made["rounded dots"] = LINE.format('stroke-dasharray="0 20" stroke-linecap="round"')
    made["wide stroke of text"] = BOX.format('fill="none" stroke="red" stroke-width="30"')
    for orient in ("auto", "45", "auto-start-reverse"):
        for units in ("strokeWidth", "userSpaceOnUse"):
            marker = (
                f'<marker id="m" orient="{orient}" markerUnits="{units}" markerWidth="6" '
                'markerHeight="4" refX="3" refY="2" viewBox="0 0 6 4"><path d="M0 0L6 2L0 4z" '
                'fill="red"/></marker>'
            )
            line = (
                '<path d="M20 80L50 30L80 80" fill="none" stroke="black" stroke-width="4" '
                'marker-start="url(#m)" marker-mid="url(#m)" marker-end="url(#m)"/>'
            )
            made[f"marker {orient} {units}"] = marker + line
    made["marker shorthand"] = (
        '<marker id="m" markerWidth="3" markerHeight="3" refX="1" refY="1" overflow="visible">'
        '<circle cx="1" cy="1" r="2" fill="red"/></marker><path d="M20 80L50 30L80 80" '
        'fill="none" stroke="black" stroke-width="4" style="marker:url(#m)"/>'
    )
    return made


def paints() -> dict[str, str | bytes]:
    """Colours, gradients and patterns."""
    made: dict[str, str | bytes] = {}
    colours = [
        "red", "RED", "#f80", "#ff8800", "#f808", "#ff880080", "rgb(10,200,30)",
        "rgb(10%, 80%, 30%)", "rgba(10,200,30,0.5)", "rgb(10 200 30 / 50%)", "rgb(300,-20,30)",
        "hsl(200,80%,40%)", "hsla(200,80%,40%,.5)", "hsl(200deg 80% 40% / .5)", "hwb(40 20% 10%)",
        "lab(60% 40 -50)", "lch(60% 60 200)", "oklab(.6 .1 -.1)", "oklch(70% .15 140)",
        "color(srgb 0.2 0.7 0.4)", "color(display-p3 0.2 0.8 0.3)", "color(rec2020 .3 .5 .2)",
        "color(a98-rgb .4 .6 .2)", "color(prophoto-rgb .4 .5 .3)", "color(xyz .3 .4 .2)",
        "color(srgb-linear .2 .4 .6)", "color(display-p3 1 0 0)", "oklch(90% .4 140)",
        "transparent", "currentColor", "rebeccapurple", "none", "inherit", "nonsense", "#12",
        "rgb(1,2)", "color-mix(in srgb, red, blue)", "light-dark(red, blue)", "CanvasText",
        "red icc-color(a, 0.1)", "initial", "unset",
    ]  # fmt: skip
    for colour in colours:
        made[f"fill={colour}"] = (
            f'<g fill="#08f" color="#a0a">{BOX.format(f"fill=#{chr(34)}")}</g>'
        )
        box = BOX.format(f'fill="{colour}"')
        made[f"fill={colour}"] = f'<g fill="#0088ff" color="#aa00aa">{box}</g>'
    stops = '<stop offset="0.2" stop-color="red"/><stop offset="80%" stop-color="blue"/>'
    faded = '<stop stop-color="red"/><stop offset="1" stop-color="red" stop-opacity="0"/>'
    for spread in ("pad", "reflect", "repeat"):
        for kind, given in {
            "linear": 'x1="40%" x2="60%"',
            "linear user": 'gradientUnits="userSpaceOnUse" x1="40" y1="40" x2="60" y2="70"',
            "linear turned": 'x1=".4" x2=".6" gradientTransform="rotate(40 .5 .5)"',
            "radial": 'r="0.25"',
            "radial focal": 'r="0.3" fx="0.4" fy="0.4"',
            "radial fr": 'r="0.4" fr="0.1"',
        }.items():
            tag = f"{kind.split()[0]}Gradient"
            made[f"gradient {kind} {spread}"] = (
                f'<{tag} id="g" {given} spreadMethod="{spread}">{stops}</{tag}>'
                + BOX.format('fill="url(#g)"')
            )
    made["gradient faded"] = f'<linearGradient id="g">{faded}</linearGradient>' + BOX.format(
        'fill="url(#g)"'
    )
    made["gradient inherited"] = (
        f'<linearGradient id="a">{stops}</linearGradient>'
        '<linearGradient id="g" xlink:href="#a" x2="0.5"/>' + BOX.format('fill="url(#g)"')
    )
    made["gradient of a stroke"] = (
        f'<linearGradient id="g">{stops}</linearGradient>'
        + STAR.format('fill="none" stroke="url(#g)" stroke-width="6"')
    )
    made["gradient of a flat line"] = f'<linearGradient id="g">{stops}</linearGradient>' + (
        '<path d="M10 50H90" stroke="url(#g)" stroke-width="12"/>'
    )
    made["gradient missing"] = BOX.format('fill="url(#none)"')
    made["gradient missing, with another"] = BOX.format('fill="url(#none) lime"')
    made["gradient without stops"] = '<linearGradient id="g"/>' + BOX.format('fill="url(#g)"')
    made["gradient of one stop"] = (
        '<linearGradient id="g"><stop stop-color="red"/></linearGradient>'
        + BOX.format('fill="url(#g)"')
    )
    for given in (
        'width="20" height="20" patternUnits="userSpaceOnUse"',
        'width=".3" height=".3"',
        'width=".3" height=".3" viewBox="0 0 20 20"',
        'width=".5" height=".5" patternContentUnits="objectBoundingBox"',
        'width="20" height="20" patternUnits="userSpaceOnUse" patternTransform="rotate(30)"',
        'x="5" y="5" width="20" height="20" patternUnits="userSpaceOnUse"',
    ):
        scale = ".01" if "objectBoundingBox" in given else "1"
        content = (
            f'<g transform="scale({scale})"><circle cx="8" cy="8" r="7" fill="red"/>'
            '<rect x="10" y="10" width="10" height="10"/></g>'
        )
        made[f"pattern {given}"] = f'<pattern id="p" {given}>{content}</pattern>' + BOX.format(
            'fill="url(#p)"'
        )
    for rule in ("nonzero", "evenodd"):
        made[f"fill-rule {rule}"] = STAR.format(f'fill-rule="{rule}"')
    made["fill-opacity"] = BOX.format('fill-opacity="0.4" stroke="red" stroke-width="9"')
    return made


def coordinates() -> dict[str, str | bytes]:
    """Transformations, view boxes and units."""
    made: dict[str, str | bytes] = {}
    for transform in (
        "translate(10)", "translate(10,-10)", "scale(0.5)", "scale(.5,1.2)", "rotate(20)",
        "rotate(20,50,50)", "skewX(20)", "skewY(20)", "matrix(.8 .2 -.2 .8 10 5)",
        "translate(10 10) rotate(30) scale(.7)", "scale(-1 1) translate(-100)", "rotate(oops)",
    ):  # fmt: skip
        made[f"transform {transform}"] = BOX.format(f'transform="{transform}"')
    for style in (
        "transform:translate(10px,5px)", "transform:rotate(20deg)", "transform:scale(60%)",
        "transform:rotate(.1turn) skewX(10deg)", "transform:translate(1cm)", "transform:none",
        "transform:rotate(20deg);transform-origin:50px 50px",
        "transform:rotate(20deg);transform-origin:center",
        "transform:rotate(20deg);transform-box:fill-box;transform-origin:center",
        "transform:rotate3d(1,1,1,20deg)", "transform:translate(10%,0)", "rotate:20deg",
        "translate:10px", "scale:.5", "x:5px", "width:30px;height:calc(10px + 10px)", "rx:20px",
    ):  # fmt: skip
        made[f"style {style}"] = BOX.format(f'style="{style}"')
    for fit in ("xMidYMid meet", "xMinYMin meet", "xMaxYMax meet", "xMidYMid slice", "none"):
        made[f"fit {fit}"] = svg(
            STAR.format(""),
            f'width="120" height="60" viewBox="0 0 100 100" preserveAspectRatio="{fit}"',
        )
        made[f"nested fit {fit}"] = (
            f'<svg x="10" y="20" width="80" height="40" viewBox="0 0 100 100" '
            f'preserveAspectRatio="{fit}"><rect width="100" height="100" fill="#ccc"/>'
            f"{STAR.format('')}</svg>"
        )
    for unit in ("px", "pt", "pc", "mm", "cm", "in", "em", "ex", "%", "rem", "vw", "Q", "ch"):
        length = {"in": 0.4, "cm": 1, "pc": 2, "em": 2, "rem": 2}.get(unit, 10)
        made[f"unit {unit}"] = f'<rect width="{length}{unit}" height="{length}{unit}"/>'
    made["view box off zero"] = svg(STAR.format(""), 'viewBox="-20 10 100 100"')
    made["sides alone"] = svg(STAR.format(""), 'width="100" height="100"')
    made["width in percent"] = svg(
        STAR.format(""), 'width="100%" height="100%" viewBox="0 0 100 100"'
    )
    made["turned root"] = svg(STAR.format(""), 'viewBox="0 0 100 100" transform="scale(-1 1)"')
    made["moved root"] = svg(
        STAR.format(""), 'viewBox="0 0 100 100" width="50" height="50" transform="translate(9 5)"'
    )
    made["root turned about a point"] = svg(
        STAR.format(""), 'viewBox="0 0 100 50" style="transform:rotate(9deg);transform-origin:0 0"'
    )
    made["faded root"] = svg(STAR.format(""), 'viewBox="0 0 100 100" opacity=".4"')
    made["style of the root"] = svg(
        STAR.format(""), 'viewBox="0 0 100 50" style="width:100px;height:100px"'
    )
    return made


def structure() -> dict[str, str | bytes]:
    """Groups, references, switches, pictures and what is not drawn."""
    made: dict[str, str | bytes] = {
        "use": f'<defs><g id="a">{STAR.format("")}</g></defs><use href="#a" x="10" y="5"/>',
        "use inherits": f"<defs>{STAR.format('id=&quot;a&quot;')}</defs>".replace("&quot;", '"')
        + '<use href="#a" fill="red" transform="scale(.5)"/>',
        "use symbol": '<symbol id="s" viewBox="0 0 10 10"><circle cx="5" cy="5" r="5"/></symbol>'
        '<use href="#s" x="10" y="10" width="60" height="60"/>',
        "use symbol clipped": '<symbol id="s" viewBox="0 0 10 10"><circle cx="5" cy="5" r="8"/>'
        '</symbol><use href="#s" x="20" y="20" width="40" height="40"/>',
        "use symbol visible": '<symbol id="s" viewBox="0 0 10 10" overflow="visible">'
        '<circle cx="5" cy="5" r="8"/></symbol><use href="#s" x="20" y="20" width="40" '
        'height="40"/>',
        "use of a use": f'<g id="a">{BOX.format("")}</g><use id="b" href="#a" x="5"/>'
        '<use href="#b" y="30"/>',
        "use missing": '<use href="#none"/>' + BOX.format(""),
        "use of another file": '<use href="o.svg#a"/>' + BOX.format(""),
        "switch": '<switch><rect width="50" height="50" systemLanguage="xx"/>'
        '<rect width="90" height="90" fill="red" systemLanguage="en"/></switch>',
        "switch extension": '<switch><foreignObject requiredExtensions="http://x" width="9" '
        'height="9"/><circle cx="50" cy="50" r="30"/></switch>',
        "foreign object": '<foreignObject width="90" height="90"><p '
        'xmlns="http://www.w3.org/1999/xhtml">text</p></foreignObject>' + BOX.format(""),
        "nested svg": '<svg x="10" y="10" width="50" height="50"><circle cx="50" cy="50" '
        'r="40"/></svg>',
        "nested svg visible": '<svg x="10" y="10" width="50" height="50" overflow="visible">'
        '<circle cx="50" cy="50" r="40"/></svg>',
        "link": f'<a href="https://example.org">{STAR.format("")}</a>',
        "title and metadata": f"<title>t</title><desc>d</desc><metadata><a/></metadata>"
        f"{STAR.format('')}",
        "unknown element": f"<unknown>{BOX.format('')}</unknown>" + STAR.format('fill="red"'),
        "foreign namespace": f'<x:g xmlns:x="urn:x">{BOX.format("")}</x:g>' + STAR.format(""),
        "text only": '<text x="10" y="60" font-size="40">A</text>',
        "script": "<script>document.documentElement.remove()</script>" + STAR.format(""),
        "image none": '<image width="50" height="50"/>' + BOX.format(""),
        "image of another file": '<image href="o.png" width="50" height="50"/>',
        "image svg": '<image href="data:image/svg+xml;base64,PHN2Zy8+" width="50" height="50"/>',
    }
    for form, called in (("PNG", "png"), ("JPEG", "jpeg"), ("GIF", "gif"), ("WEBP", "webp")):
        uri = picture_uri(form, called)
        made[f"image {form}"] = f'<image href="{uri}" x="10" y="10" width="80" height="80"/>'
    mislabelled = picture_uri("PNG", "jpg")
    made["image mislabelled"] = f'<image href="{mislabelled}" width="80" height="80"/>'
    for fit in ("none", "xMinYMin meet", "xMidYMid slice"):
        made[f"image {fit}"] = (
            f'<image href="{picture_uri()}" x="5" y="5" width="90" height="40" '
            f'preserveAspectRatio="{fit}"/>'
        )
    made["image faded and turned"] = (
        f'<image href="{picture_uri()}" width="50" height="50" opacity=".5" '
        'transform="rotate(20 50 50)"/>'
    )
    return made


def clips_and_masks() -> dict[str, str | bytes]:
    """Clips, masks and blending."""
    circle = '<circle cx="50" cy="50" r="30" {}/>'
    made: dict[str, str | bytes] = {
        "clip": f'<clipPath id="c">{circle.format("")}</clipPath>'
        + BOX.format('clip-path="url(#c)"'),
        "clip box units": '<clipPath id="c" clipPathUnits="objectBoundingBox"><circle cx=".5" '
        'cy=".5" r=".4"/></clipPath>' + BOX.format('clip-path="url(#c)"'),
        "clip rule": f'<clipPath id="c">{STAR.format("clip-rule=%evenodd%")}</clipPath>'.replace(
            "%", '"'
        )
        + '<rect width="100" height="100" clip-path="url(#c)"/>',
        "clip of a clip": '<clipPath id="d"><rect width="50" height="100"/></clipPath>'
        f'<clipPath id="c" clip-path="url(#d)">{circle.format("")}</clipPath>'
        + BOX.format('clip-path="url(#c)"'),
        "clip missing": BOX.format('clip-path="url(#none)"'),
        "clip empty": '<clipPath id="c"/>' + BOX.format('clip-path="url(#c)"'),
        "clip shape": BOX.format('style="clip-path:circle(20px)"'),
        "clip of another file": BOX.format('clip-path="url(o.svg#c)"'),
        "mask": f'<mask id="m">{circle.format("fill=%white%")}</mask>'.replace("%", '"')
        + BOX.format('mask="url(#m)"'),
        "mask grey": f'<mask id="m">{circle.format("fill=%#888%")}</mask>'.replace("%", '"')
        + BOX.format('mask="url(#m)"'),
        "mask alpha": f'<mask id="m" style="mask-type:alpha">{circle.format("")}</mask>'
        + BOX.format('mask="url(#m)"'),
        "mask box units": '<mask id="m" maskContentUnits="objectBoundingBox"><rect width=".5" '
        'height="1" fill="white"/></mask>' + BOX.format('mask="url(#m)"'),
        "mask region": '<mask id="m" x="0" y="0" width=".5" height=".5"><rect width="100" '
        'height="100" fill="white"/></mask>' + BOX.format('mask="url(#m)"'),
        "mask missing": BOX.format('mask="url(#none)"'),
        "mask image": BOX.format('style="mask-image:linear-gradient(black,transparent)"'),
        "isolation": '<g style="isolation:isolate"><rect width="60" height="60" fill="red"/>'
        '<rect x="30" y="30" width="60" height="60" fill="lime" '
        'style="mix-blend-mode:difference"/></g>',
        "group opacity": '<g opacity=".5"><rect width="60" height="60" fill="red"/><rect x="30" '
        'y="30" width="60" height="60" fill="blue"/></g>',
    }
    for mode in (
        "multiply", "screen", "overlay", "darken", "lighten", "color-dodge", "hard-light",
        "difference", "exclusion", "hue", "luminosity",
    ):  # fmt: skip
        made[f"blend {mode}"] = '<rect width="100" height="100" fill="#fa8"/>' + BOX.format(
            f'fill="#3a7" style="mix-blend-mode:{mode}"'
        )
    return made


def filters() -> dict[str, str | bytes]:
    """Every filter primitive, and functions of filters."""
    primitives = [
        '<feGaussianBlur stdDeviation="4"/>',
        '<feGaussianBlur stdDeviation="8 0"/>',
        '<feOffset dx="10" dy="5"/>',
        '<feFlood flood-color="red" flood-opacity=".5"/>',
        '<feFlood flood-color="red"/><feComposite in2="SourceGraphic" operator="in"/>',
        '<feFlood flood-color="red"/><feComposite in2="SourceGraphic" operator="xor"/>',
        '<feComposite in2="SourceAlpha" operator="arithmetic" k1=".5" k2=".5"/>',
        '<feMorphology operator="dilate" radius="4"/>',
        '<feMorphology operator="erode" radius="4"/>',
        '<feColorMatrix type="saturate" values="0.2"/>',
        '<feColorMatrix type="hueRotate" values="90"/>',
        '<feColorMatrix type="luminanceToAlpha"/>',
        '<feColorMatrix values="0 1 0 0 0 1 0 0 0 0 0 0 1 0 0 0 0 0 1 0"/>',
        '<feComponentTransfer><feFuncR type="table" tableValues="1 0"/></feComponentTransfer>',
        '<feComponentTransfer><feFuncG type="gamma" exponent="3"/></feComponentTransfer>',
        '<feComponentTransfer><feFuncA type="linear" slope=".5"/></feComponentTransfer>',
        '<feConvolveMatrix order="3" kernelMatrix="0 -1 0 -1 5 -1 0 -1 0"/>',
        '<feConvolveMatrix order="3" kernelMatrix="1 1 1 1 1 1 1 1 1" edgeMode="none"/>',
        '<feOffset dx="9" result="o"/><feMerge><feMergeNode in="o"/><feMergeNode '
        'in="SourceGraphic"/></feMerge>',
        '<feOffset dx="9" result="o"/><feBlend in2="SourceGraphic" mode="multiply"/>',
        '<feTile x="20" y="20" width="20" height="20"/>',
        '<feTurbulence baseFrequency="0.05" numOctaves="2"/>',
        '<feTurbulence type="fractalNoise" baseFrequency="0.05" seed="3"/>',
        '<feTurbulence baseFrequency=".05" result="t"/><feDisplacementMap in="SourceGraphic" '
        'in2="t" scale="20" xChannelSelector="R" yChannelSelector="G"/>',
        '<feDropShadow dx="6" dy="6" stdDeviation="2" flood-color="blue"/>',
        '<feDropShadow dx="6" dy="6" stdDeviation="2" flood-color="#693" flood-opacity=".8"/>',
        '<feOffset dx="3"/><feDropShadow dx="6" dy="6" stdDeviation="0" flood-color="#693"/>',
        '<feDiffuseLighting lighting-color="white"><fePointLight x="30" y="30" z="40"/>'
        "</feDiffuseLighting>",
        '<feSpecularLighting specularExponent="10"><feDistantLight azimuth="40" elevation="40"/>'
        "</feSpecularLighting>",
        '<feDiffuseLighting surfaceScale="4"><feSpotLight x="50" y="0" z="50" pointsAtX="50" '
        'pointsAtY="50" limitingConeAngle="40"/></feDiffuseLighting>',
        f'<feImage href="{picture_uri()}" width="50" height="50"/>',
        '<feGaussianBlur in="SourceAlpha" stdDeviation="3"/>',
        '<feFlood flood-color="red" x="30" y="30" width="20" height="20"/>',
    ]
    made: dict[str, str | bytes] = {}
    for space in ("linearRGB", "sRGB"):
        for number, primitive in enumerate(primitives):
            if space == "sRGB" and number % 3 and "Shadow" not in primitive:
                continue
            made[f"filter {number} {space} {primitive[:40]}"] = (
                f'<filter id="f" color-interpolation-filters="{space}">{primitive}</filter>'
                + BOX.format('fill="#c62" filter="url(#f)"')
            )
    for given in ('x="0" y="0" width="1" height="1"', 'filterUnits="userSpaceOnUse" x="30" y="30" '
                  'width="50" height="50"', 'primitiveUnits="objectBoundingBox"'):  # fmt: skip
        deviation = ".05" if "primitiveUnits" in given else "5"
        made[f"filter region {given}"] = (
            f'<filter id="f" {given}><feGaussianBlur stdDeviation="{deviation}"/></filter>'
            + BOX.format('filter="url(#f)"')
        )
    for function in (
        "blur(4px)", "brightness(50%)", "contrast(.5)", "grayscale(1)", "hue-rotate(90deg)",
        "invert(1)", "opacity(.4)", "saturate(3)", "sepia(1)", "drop-shadow(5px 5px 2px red)",
        "drop-shadow(5px 5px 0 oklch(70% .15 140))", "drop-shadow(20px 0 rgb(60 90 20 / 60%))",
        "blur(20px)", "blur(2px) invert(1)", "none", "url(#none)",
    ):  # fmt: skip
        made[f"filter {function}"] = BOX.format(f'fill="#c62" style="filter:{function}"')
    return made


def styles() -> dict[str, str | bytes]:
    """Style sheets, variables and what the root asks for."""
    made: dict[str, str | bytes] = {}
    content = f'<g class="a b" id="g">{BOX.format("")}<circle id="c" r="30" data-x="one two"/></g>'
    for selector in (
        "rect", "*", ".a rect", "#c", "g > circle", "rect + circle", "rect ~ circle", ":root",
        "circle:last-child", "rect:first-child", "circle:nth-child(2)", "[data-x~=two]",
        ".a.b > *", "svg circle:not(#d)", ":is(rect, circle)", "circle:hover", "rect::before",
        "rect:has(+ circle)", "circle:lang(en)", "RECT", "g:empty", "rect, circle",
    ):  # fmt: skip
        made[f"selector {selector}"] = f"<style>{selector}{{fill:#c26}}</style>{content}"
    for sheet in (
        "@media screen{rect{fill:red}}", "@media print{rect{fill:red}}",
        "@media (prefers-color-scheme: dark){rect{fill:red}}", "@media (min-width: 5px){a{}}",
        "@supports (fill: red){rect{fill:red}}", "@font-face{font-family:x}rect{fill:red}",
        "@keyframes k{from{fill:red}}rect{fill:blue}", "@import url(x.css);",
        "rect{fill:red !important}rect{fill:blue}", "rect{fill:red;fill:oops}",
        "rect{fill:var(--x, teal)}", "svg{--x:orange}rect{fill:var(--x)}",
        "rect{--x:var(--y);--y:lime;fill:var(--x)}", "rect{fill:var(--none)}",
        "/* a */rect/* b */{fill:/* c */red}", "rect{fill:red",
        "rect{fill:red;}}circle{fill:blue}",
        "@layer a{rect{fill:red}}", "g{rect{fill:red}}", "rect{stroke:red;stroke-width:2px}",
        "rect{opacity:.3}", "g{fill:red}rect{fill:inherit}", "rect{all:unset}",
        "rect{color:red;fill:currentcolor}", "rect{stroke:red;stroke-width:calc(2px * 2)}",
        "rect{fill:env(x, red)}", "\\72 ect{fill:red}", "rect{transform:rotate(9deg)}",
        "rect{fill:#F0F}", "circle{r:10px}", "rect{x:0;y:0;width:50px}", "rect{width:50}",
        "rect{display:none}", "rect{visibility:hidden}", "rect{clip-path:inset(9px)}",
    ):  # fmt: skip
        made[f"sheet {sheet}"] = f"<style>{sheet}</style>{content}"
    for style in (
        "background:#048", "background-color:rgb(0 80 160)", "background:none",
        "background:url(x.png)", "background:linear-gradient(red,blue)", "fill:red",
        "enable-background:new 0 0 9 9", "border:4px solid red", "padding:9px", "color:red",
        "filter:invert(1)", "opacity:.5", "overflow:visible", "display:block", "margin:9px",
        "stroke:red", "transform:rotate(5deg)", "max-width:50px", "outline:3px solid red",
    ):  # fmt: skip
        made[f"root {style}"] = svg(BOX.format(""), f'viewBox="0 0 100 100" style="{style}"')
    return made
