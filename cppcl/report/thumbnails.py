"""Small pictures for a page."""

from __future__ import annotations

import base64
import io
from typing import TYPE_CHECKING

from cppcl.features.base import Picture

if TYPE_CHECKING:
    from PIL.Image import Image

THUMBNAIL_SIZE = 96
"""Side of a thumbnail, in pixels."""


def thumbnail(picture: Picture) -> Image:
    """Fit a picture into a white square, keeping its proportions.

    Parameters
    ----------
    picture : ndarray, (h, w, 3) uint8
        Any size.
    """
    from PIL import Image, ImageOps

    return ImageOps.pad(Image.fromarray(picture), (THUMBNAIL_SIZE, THUMBNAIL_SIZE), color="white")


def thumbnail_uri(picture: Picture) -> str:
    """Return a thumbnail as data URI of a PNG.

    A palette bounds it: at most 96 * 96 + 1,000 bytes before base64, whatever the picture.
    """
    return png_uri(_palette_png(thumbnail(picture)))


def png_uri(png: bytes) -> str:
    """Data URI of the bytes of a PNG."""
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")


def smaller_png(png: bytes) -> bytes:
    """Write a PNG again with a palette of 256 colours, without transparency."""
    from PIL import Image

    with Image.open(io.BytesIO(png)) as image:
        return _palette_png(image.convert("RGB"))


def _palette_png(image: Image) -> bytes:
    buffer = io.BytesIO()
    image.quantize(256).save(buffer, format="PNG")
    return buffer.getvalue()
