"""Drawings in SVG: shape, background, and that nothing else is read."""

import base64
import io
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from cppcl.errors import InputError, PictureError
from cppcl.pictures.decoding import decode_picture

pytestmark = pytest.mark.usefixtures("drawn_apart_or_here")

NAMESPACES = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'


def svg(body="", attributes='viewBox="0 0 10 10"', prolog=""):
    return f"{prolog}<svg {NAMESPACES} {attributes}>{body}</svg>".encode()


def blue_png():
    file = io.BytesIO()
    Image.new("RGB", (10, 10), "blue").save(file, format="PNG")
    return file.getvalue()


def test_aspect_of_the_view_box_is_kept_on_white():
    body = '<rect x="20" width="20" height="20" fill="#0a141e"/>'
    picture = decode_picture(svg(body, 'viewBox="0 0 40 20"'), longest_side=100)
    assert picture.shape == (50, 100, 3)
    assert (picture[:, :50] == 255).all()
    assert (picture[:, 50:] == [10, 20, 30]).all()
    tall = decode_picture(svg(body, 'viewBox="0 0 20 40"'), longest_side=100)
    assert tall.shape == (100, 50, 3)


def test_half_transparent_shapes_are_composited_on_white():
    picture = decode_picture(svg('<rect width="10" height="10" fill-opacity="0.2"/>'))
    np.testing.assert_array_equal(np.unique(picture), [204])


def test_circles_stay_round():
    body = '<circle cx="20" cy="10" r="8"/>'
    dark = decode_picture(svg(body, 'width="400" height="200" viewBox="0 0 40 20"')) < 128
    rows, columns = np.flatnonzero(dark.any(axis=(1, 2))), np.flatnonzero(dark.any(axis=(0, 2)))
    assert len(rows) == len(columns)


def test_no_size_and_no_view_box_shows_what_is_drawn():
    picture = decode_picture(svg('<rect width="50" height="100"/>', ""), longest_side=64)
    assert picture.shape == (64, 32, 3)
    assert picture.max() == 0


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_encodings_and_prolog(encoding):
    name = encoding.removesuffix("-sig")
    text = svg('<rect width="10" height="10"/>').decode()
    data = f'<?xml version="1.0" encoding="{name}"?>\n<!-- drawn -->{text}'.encode(encoding)
    assert decode_picture(data).max() == 0


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"<svg><rect", "not well-formed XML"),
        (b'<?xml version="1.0" encoding="nonsense"?><svg/>', "not well-formed XML"),
        (b"<!DOCTYPE html><html></html>", "root <html>, not an SVG drawing"),
        (svg(attributes='viewBox="0 0 0 0" width="0" height="0"'), "cannot be rendered"),
    ],
)
def test_what_is_no_drawing_is_named(tmp_path, data, reason):
    path = tmp_path / "bad drawing.svg"
    path.write_bytes(data)
    with pytest.raises(PictureError, match=rf"bad drawing\.svg: .*{reason}"):
        decode_picture(path)


def test_embedded_pictures_are_drawn_and_links_and_symbols_ignored():
    png = base64.b64encode(blue_png()).decode()
    body = (
        f'<a href="https://example.org"><image xlink:href="data:image/png;base64,{png}" '
        'width="10" height="10"/></a><symbol id="s"/><use href="#s"/>'
    )
    assert (decode_picture(svg(body)) == [0, 0, 255]).all()


def test_embedded_pictures_are_checked():
    broken = '<image href="data:image/png;base64,AAAA" width="10" height="10"/>'
    with pytest.raises(PictureError, match="embeds a damaged or too large picture"):
        decode_picture(svg(broken))
    file = io.BytesIO()
    Image.new("1", (9000, 9000)).save(file, format="PNG")
    text = base64.b64encode(file.getvalue()).decode()
    from cppcl.pictures.svg.render import render_svg

    large = svg(f'<image href="data:image/png;base64,{text}" width="10" height="10"/>')
    with pytest.raises(PictureError, match=r"too large picture .*9000 x 9000"):
        render_svg(large, longest_side=10, name="x", limit=10**6)


def test_giant_view_box_is_scaled_and_its_own_size_refused():
    drawing = svg('<rect width="500000" height="1000000"/>', 'viewBox="0 0 1000000 1000000"')
    picture = decode_picture(drawing, longest_side=64)
    assert (picture[:, :32] == 0).all()
    assert (picture[:, 32:] == 255).all()
    with pytest.raises(
        PictureError, match=r"big\.svg: 1000000 x 1000000 pixels exceed the limit of 89478485"
    ):
        decode_picture(drawing, longest_side=None, name="big.svg")
    with pytest.raises(InputError, match=r"longest_side is 100000; .* at most 9459"):
        decode_picture(drawing, longest_side=100_000)


def chain(n, link):
    return "".join(link.format(i, i - 1) for i in range(1, n))


ENTITIES = "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 10))
DRAWING = base64.b64encode(svg('<rect width="10" height="10"/>')).decode()
REFUSED = {
    "entity bomb": (
        svg("<text>&a9;</text>", prolog=f'<!DOCTYPE svg [<!ENTITY a0 "lol">{ENTITIES}]>'),
        "not well-formed",
    ),
    "turbulence": (
        svg('<filter id="f"><feTurbulence type="fractalNoise" numOctaves="1000000"/></filter>'),
        "1000000 octaves; at most 32",
    ),
    "nested": (svg("<g>" * 250 + "</g>" * 250), "nested over 100 deep"),
    "deeply nested": (svg("<g>" * 100_000 + "</g>" * 100_000), "nested over 100 deep"),
    "uses": (
        svg(f'<g id="a0"/>{chain(250, """<g id="a{}"><use xlink:href="#a{}"/></g>""")}'),
        "nested over 100 deep",
    ),
    "masks": (
        svg(f'<g id="a0"/>{chain(250, """<mask id="a{}" mask="url(#a{})"><g/></mask>""")}'),
        "nested over 100 deep",
    ),
    "drawing": (
        svg(f'<image href="data:image/svg+xml;base64,{DRAWING}" width="10" height="10"/>'),
        "SVG refers to 'data:image/svg",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_could_harm_is_refused(kind):
    drawing, reason = REFUSED[kind]
    with pytest.raises(PictureError, match=reason):
        decode_picture(drawing)


SURVIVE = """
import sys
from cppcl.errors import PictureError
from cppcl.pictures.decoding import decode_picture
for drawing in sys.stdin.buffer.read().split(b"\\0"):
    try:
        print(decode_picture(drawing, longest_side=8).min())
    except PictureError as error:
        print("refused", error)
"""


def test_deepest_drawings_and_cycles_are_survived():
    """In a process of its own, as overflowing the renderer's stack would end it."""
    box = '<rect width="10" height="10"/>'
    links = chain(49, '<g id="a{}"><use xlink:href="#a{}"/></g>')
    drawings = [
        svg(f'<g id="a0">{box}</g>{links}'),
        svg('<g opacity="0.999" clip-path="">' * 98 + box + "</g>" * 98),
        svg('<g id="a"><use href="#b"/></g><g id="b"><use href="#a"/></g>'),
    ]
    done = subprocess.run(
        [sys.executable, "-c", SURVIVE],
        input=b"\0".join(drawings),
        capture_output=True,
        check=True,
    )
    first, second, third = done.stdout.decode().splitlines()
    assert first == "0"
    assert int(second) < 40
    assert third.startswith("refused")
