"""Pictures embedded in an SVG, decoded as every other picture is."""

from __future__ import annotations

import base64
import binascii
import io
import re

from cppcl.errors import PictureError
from cppcl.pictures.svg.refusal import NotDrawnError

_EMBEDDED = re.compile(
    r"data:image/(?:png|jpe?g|gif|webp|bmp|x-png|pjpeg)(?:;[^;,]*)*?;base64,(.*)",
    re.DOTALL | re.IGNORECASE,
)


def embedded_png(reference: str, limit: int) -> str:
    """An embedded picture as a data URI of a PNG, whatever kind its own says that it is.

    Parameters
    ----------
    reference : str
        What the drawing refers to.
    limit : int
        Largest number of pixels.

    Raises
    ------
    NotDrawnError
        It is no picture embedded as base64, a damaged one or one that is too large.
    """
    match = _EMBEDDED.fullmatch(reference)
    if match is None:
        raise NotDrawnError(
            f"refers to {reference[:80]!r}; only PNG, JPEG, GIF and WebP pictures embedded as "
            "base64 data URIs are drawn, other files are never read"
        )
    from cppcl.pictures.raster import open_raster

    try:
        data = base64.b64decode("".join(match[1].split()))
        image = open_raster(data, "the picture", limit)
    except (PictureError, binascii.Error) as error:
        raise NotDrawnError(f"embeds a damaged or too large picture ({error})") from error
    file = io.BytesIO()
    image.save(file, format="PNG", compress_level=1)
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()
