"""Styles of SVG: what is resolved, by pixel values, and what is refused by name."""

import base64
import io

import numpy as np
import pytest
from PIL import Image

from cppcl.errors import PictureError
from cppcl.pictures.decoding import decode_picture
from cppcl.pictures.svg.colours import srgb_colour
from cppcl.pictures.svg.refusal import NotDrawnError
from cppcl.pictures.svg.selectors import Tree, parse_selectors
from cppcl.pictures.svg.style_sheets import parse_rules

pytestmark = pytest.mark.usefixtures("drawn_apart_or_here")

BOX = '<rect width="40" height="40" {}/>'
GREEN, BLACK, WHITE, RED = [0, 255, 0], [0, 0, 0], [255, 255, 255], [255, 0, 0]


def svg(body, attributes='viewBox="0 0 40 40"', prolog=""):
    return f'{prolog}<svg xmlns="http://www.w3.org/2000/svg" {attributes}>{body}</svg>'.encode()


def colour_of(drawing):
    """Colour of a drawing that has only one."""
    picture = decode_picture(drawing, longest_side=8)
    assert (picture == picture[0, 0]).all()
    return picture[0, 0].tolist()


DRAWN = {
    "variable": ('<g style="--c:#00ff00">' + BOX.format('style="fill:var(--c)"') + "</g>", GREEN),
    "fallback": (BOX.format('fill="var(--none, #00ff00)"'), GREEN),
    "variables of variables": (
        "<style>svg{--a:var(--b, red);--b:#0f0}rect{fill:var(--a)}</style>" + BOX.format(""),
        GREEN,
    ),
    "cycle, which is inherited": (
        "<style>rect{--a:var(--b);--b:var(--a);fill:var(--a)}</style>"
        f'<g fill="lime">{BOX.format("")}</g>',
        GREEN,
    ),
    "root selector": ("<style>:root{fill:lime}</style>" + BOX.format(""), GREEN),
    "order of rules": ("<style>rect{fill:red}rect{fill:lime}</style>" + BOX.format(""), GREEN),
    "specificity": (
        "<style>#a{fill:lime}rect.b{fill:red}</style>" + BOX.format('id="a" class="b"'),
        GREEN,
    ),
    "importance": (
        "<style>rect{fill:lime !important}</style>" + BOX.format('style="fill:red"'),
        GREEN,
    ),
    "sheets over attributes": ("<style>*{fill:lime}</style>" + BOX.format('fill="red"'), GREEN),
    "dark scheme": (
        "<style>@media (prefers-color-scheme: dark){rect{fill:red}}"
        "@media screen{rect{fill:lime}}@media print{rect{fill:red}}</style>" + BOX.format(""),
        GREEN,
    ),
    "invalid value": ('<g fill="lime">' + BOX.format('fill="nonsense"') + "</g>", GREEN),
    "wide gamut": (BOX.format('style="fill:color(display-p3 0 0 0)"'), BLACK),
    "spaces": (BOX.format('fill="rgb(0 255 0 / 100%)"'), GREEN),
    "geometry": ("<style>rect{width:40px;height:40px;fill:lime}</style><rect/>", GREEN),
    "transformation": (
        '<rect x="-40" width="40" height="40" fill="lime" style="transform:translate(40px,0)"/>',
        GREEN,
    ),
    "initial value": ('<g fill="red">' + BOX.format('style="fill:initial"') + "</g>", BLACK),
    "language of a switch": (
        "<switch>"
        + BOX.format('fill="red" systemLanguage="xx"')
        + BOX.format('fill="lime" systemLanguage="en"')
        + "</switch>",
        GREEN,
    ),
    "filter that is not there": (BOX.format('fill="lime" style="filter:url(#none)"'), GREEN),
    "size of the root in a style": ("<style>svg{width:10px}</style>" + BOX.format(""), BLACK),
    "comment and character data": (
        "<style><![CDATA[/* } */ rect > a, rect{fill:lime}]]></style>" + BOX.format(""),
        GREEN,
    ),
}


@pytest.mark.parametrize("kind", DRAWN)
def test_styles_are_resolved(kind):
    body, expected = DRAWN[kind]
    assert colour_of(svg(body)) == expected


def test_background_of_the_root_is_drawn():
    box = '<rect x="10" y="10" width="20" height="20" fill="white"/>'
    picture = decode_picture(
        svg(box, 'viewBox="0 0 40 40" style="background:#000"'), longest_side=40
    )
    assert picture[0, 0].tolist() == BLACK
    assert picture[20, 20].tolist() == WHITE


def test_a_root_is_turned_about_the_middle_of_the_picture():
    box = '<rect width="10" height="40"/>'
    given = 'viewBox="0 0 40 20" width="80" height="40" transform="scale(-1 1)"'
    picture = decode_picture(svg(box, given), longest_side=80)
    assert picture.shape == (40, 80, 3)
    assert (picture[:, 60:] == 0).all()
    assert (picture[:, :60] == 255).all()


def test_shadows_have_the_colour_that_they_ask_for():
    shadow = '<rect width="20" height="40" style="filter:drop-shadow(20px 0 0 #6ab450)"/>'
    picture = decode_picture(svg(shadow), longest_side=40)
    assert np.abs(picture[:, 22:].astype(int) - (0x6A, 0xB4, 0x50)).max() <= 2


@pytest.mark.parametrize("width", [1, 3])
def test_strokes_that_do_not_scale_are_as_wide_as_they_say(width):
    style = f"vector-effect:non-scaling-stroke;stroke-width:{width}px"
    line = f'<path d="M0 200H400" stroke="#000" style="{style}"/>'
    picture = decode_picture(svg(line, 'viewBox="0 0 400 400"'), longest_side=64)
    assert (255 - picture[:, 32, 0].astype(float)).sum() / 255 == pytest.approx(width, abs=0.02)


REFUSED = {
    "import": ("<style>@import url(x.css);</style>" + BOX.format(""), "@import url"),
    "paint": (BOX.format('fill="url(other.svg#p)"'), r"other\.svg#p"),
    "clip": (BOX.format('style="clip-path:url(o.svg#c)"'), r"o\.svg#c"),
    "use": ('<use href="other.svg#a"/>', r"other\.svg#a"),
    "shape": (BOX.format('style="clip-path:inset(5px)"'), r"clip-path: inset\(5px\)"),
    "mixed colour": (BOX.format('fill="color-mix(in srgb, red, blue)"'), "color-mix"),
    "system colour": (BOX.format('fill="CanvasText"'), "CanvasText"),
    "calculation": (BOX.format('style="stroke-width:calc(1px + 2px)"'), r"calc\(\)"),
    "unit": ('<rect width="2rem" height="4"/>', "unit of width='2rem'"),
    "selector": ("<style>rect:has(a){fill:red}</style>" + BOX.format(""), r"rect:has\(a\)"),
    "media": ("<style>@media (min-width: 9px){a{fill:red}}</style>", "min-width"),
    "rule": ("<style>@supports (fill: red){a{fill:red}}</style>", "@supports"),
    "nested": ("<style>g{rect{fill:red}}</style>", "nested rules"),
    "box": (
        BOX.format('style="transform:rotate(9deg);transform-box:fill-box"'),
        "transform-box: fill-box",
    ),
    "dimension": (BOX.format('style="transform:rotate3d(1,1,1,9deg)"'), "rotate3d"),
    "dashes": (
        '<path d="M0 0H9" stroke="red" stroke-dasharray="1" pathLength="9"/>',
        "pathLength",
    ),
    "html": ("<foreignObject><p/></foreignObject>", "foreignObject"),
    "turned stroke": (
        '<g transform="scale(2)"><path d="M0 0H9" stroke="red" '
        'vector-effect="non-scaling-stroke"/></g>',
        "non-scaling strokes within transformations",
    ),
    "everything unset": (BOX.format('style="all:unset"'), "property all: unset"),
    "environment": (BOX.format('fill="env(x, red)"'), r"env\(\)"),
    "profile": (BOX.format('fill="red icc-color(a, 0.1)"'), "icc-color"),
    "turbulence": ('<filter id="f"><feTurbulence/></filter>', "feTurbulence"),
    "displacement": ('<filter id="f"><feDisplacementMap/></filter>', "feDisplacementMap"),
    "several filters": (BOX.format('style="filter:invert(1) blur(2px)"'), "several functions"),
    "cut filter": (
        '<filter id="f" x="0" y="0" width="1" height="1"><feGaussianBlur/></filter>',
        "region cuts",
    ),
    "text only": ('<text x="5" y="30">A</text>', "holds only text"),
    "doubling": (
        "<style>svg{--a0:aaaaaaaaaa;"
        + "".join(f"--a{n}:var(--a{n - 1}) var(--a{n - 1});" for n in range(1, 40))
        + "fill:var(--a39)}</style>",
        "over 100000 letters",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_not_drawn_is_refused_by_name(kind):
    body, reason = REFUSED[kind]
    with pytest.raises(PictureError, match=rf"x\.svg: SVG .*{reason}"):
        decode_picture(svg(body), name="x.svg")


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ('style="background:url(a.png)"', "the background 'url"),
        ('style="border:1px solid red"', "border"),
        ('style="margin:0 5px"', "margin"),
        ('style="transform:rotate(9deg);transform-origin:0 0"', "about another point"),
    ],
)
def test_what_a_root_asks_for_is_refused_by_name(attributes, reason):
    with pytest.raises(PictureError, match=reason):
        decode_picture(svg(BOX.format(""), f'viewBox="0 0 40 40" {attributes}'))


def test_style_sheets_in_other_files_are_refused():
    with pytest.raises(PictureError, match=r"refers to a style sheet \(href=\"x\.css\"\)"):
        decode_picture(svg(BOX.format(""), prolog='<?xml-stylesheet href="x.css"?>'))


def test_embedded_pictures_are_what_they_are_and_not_what_they_are_called():
    file = io.BytesIO()
    Image.new("RGB", (4, 4), "lime").save(file, format="PNG")
    text = base64.b64encode(file.getvalue()).decode()
    image = f'<image href="data:image/jpg;base64,{text}" width="40" height="40"/>'
    assert colour_of(svg(image)) == GREEN


@pytest.mark.parametrize(
    ("colour", "expected"),
    [  # examples of CSS Color 4, and of the conversions of https://colorjs.io
        ("hsl(120deg 100% 25%)", "#008000"),
        ("hwb(194 0% 0%)", "#00c4ff"),
        ("lab(29.2345% 39.3825 20.0664)", "#7d2329"),
        ("lch(52.2345% 72.2 56.2)", "#c65d06"),
        ("oklab(40.1% 0.1143 0.045)", "#7d2329"),
        ("oklch(59.69% 0.156 49.77)", "#c65d06"),
        ("color(srgb-linear 0.5 0 1)", "#bc00ff"),
        ("color(rec2020 0.3 0.5 0.2)", "#259034"),  # of Chromium 156
        ("color(display-p3 1 0 0)", "#ff0000"),
        ("color(xyz 0.3576 0.7152 0.1192)", "#00ff00"),
        ("rgb(100% 0% 0% / 20%)", "#ff000033"),
        ("RebeccaPurple", "#663399"),
        ("transparent", "#00000000"),
        ("nonsense", None),
        ("rgb(1 2)", None),
        ("color(nowhere 1 0 0)", None),
    ],
)
def test_colours(colour, expected):
    found = srgb_colour(colour)
    if expected is None:
        assert found is None
    else:  # the examples are rounded
        difference = np.subtract(list(bytes.fromhex(found[1:])), list(bytes.fromhex(expected[1:])))
        assert np.abs(difference).max() <= 1


@pytest.mark.parametrize("colour", ["rgb(from red r g b)", "light-dark(red, blue)", "Canvas"])
def test_colours_that_depend_on_others_are_refused(colour):
    with pytest.raises(NotDrawnError, match="the colour"):
        srgb_colour(colour)


def test_selectors_match_as_those_of_soupsieve():
    """Beside an independent implementation of CSS selectors."""
    from xml.etree import ElementTree

    bs4 = pytest.importorskip("bs4")
    text = (
        '<svg id="r"><g class="a b" fill="Red"><path id="p"/><rect id="q" class="a-c"/>'
        '<path id="s"/></g><g id="e"/><path id="t" data-x="one two"/></svg>'
    )
    root = ElementTree.fromstring(text)
    tree = Tree(root)
    soup = bs4.BeautifulSoup(text, "html.parser")
    for selector in [
        "*", "path", "g path", "g > path", "svg > path", "g + g", "g ~ path", ".a", ".a.b", "#p",
        "[fill]", "[fill=Red]", "[fill='red' i]", "[class~=b]", "[class|=a]", "[id^=p]",
        "[data-x$=two]", "[data-x*='e t']", "path:first-child", "path:last-child", ":empty",
        "path:nth-child(odd)", "path:nth-child(2n+1)", "path:nth-last-child(1)", ":root",
        "path:nth-of-type(2)", "rect:only-of-type", ":not(path)", ":is(rect, #e)",
        "g:not(.a) ~ path", "path:nth-child(-n+2)", "path:hover", "rect, #t",
    ]:  # fmt: skip
        ours = [
            element.get("id")
            for element in root.iter()
            if any(s.matches(element, tree) for s in parse_selectors(selector))
        ]
        expected = [found.get("id") for found in soup.select(selector)]
        assert ours == expected, selector


def test_broken_sheets_say_no_more_than_they_hold():
    (rule,) = parse_rules("a{fill:red;stroke;:x;b:;c:'}';--d:")
    assert [(d.name, d.value) for d in rule.declarations] == [
        ("fill", "red"),
        ("c", "'}'"),
        ("--d", ""),
    ]
    assert np.array_equal(
        [r.selectors[0].specificity for r in parse_rules("#a .b c{}")], [(1, 1, 1)]
    )


def test_colours_are_known_after_pillow_used_them():
    before = srgb_colour("rebeccapurple")
    Image.new("RGB", (1, 1), "rebeccapurple")
    assert srgb_colour("rebeccapurple") == before == "#663399"
