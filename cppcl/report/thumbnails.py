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


def thumbnail(picture: Picture, side: int = THUMBNAIL_SIZE) -> Image:
    """Fit a picture into a white square, keeping its proportions.

    Parameters
    ----------
    picture : ndarray, (h, w, 3) uint8
        Any size.
    side : int
        Of the square, in pixels.
    """
    from PIL import Image, ImageOps

    return ImageOps.pad(Image.fromarray(picture), (side, side), color="white")


def thumbnail_uri(picture: Picture, side: int = THUMBNAIL_SIZE) -> str:
    """Return a thumbnail as data URI of a PNG.

    A palette bounds it: at most side * side + 1,000 bytes before base64, whatever the picture.
    """
    return png_uri(_png(thumbnail(picture, side).quantize(256)))


def png_uri(png: bytes) -> str:
    """Data URI of the bytes of a PNG."""
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")


def smaller_png(png: bytes, *, palette: bool = True) -> bytes:
    """Write a PNG again, without transparency, and with a palette of 256 colours or all."""
    from PIL import Image

    with Image.open(io.BytesIO(png)) as image:
        return small_png(image, palette=palette)


def small_png(image: Image, *, palette: bool = True) -> bytes:
    """Write a picture as PNG, without transparency, and with a palette of 256 colours or all."""
    opaque = image.convert("RGB")
    return _png(opaque.quantize(256) if palette else opaque)


def _png(image: Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format="PNG")
    return buffer.getvalue()
