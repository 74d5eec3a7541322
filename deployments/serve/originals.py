"""Pictures as they are stored, where a browser can show them without running anything."""

from __future__ import annotations

import io

from deployments.serve.served_model import LARGE, PictureRow
from deployments.web.pictures import Encoded, PictureReader, encode

SHOWN_AS_THEY_ARE = {
    "PNG": "image/png",
    "JPEG": "image/jpeg",
    "GIF": "image/gif",
    "WEBP": "image/webp",
}


def original(pictures: PictureReader[PictureRow], place: PictureRow) -> Encoded:
    """File of a picture; drawings (SVG) and kinds that no browser shows are encoded anew.

    Raises
    ------
    PictureError
        The file is gone, damaged, or another one than when the experiment ran.
    """
    from PIL import Image, UnidentifiedImageError

    content = pictures.content(place)
    try:
        with Image.open(io.BytesIO(content), formats=tuple(SHOWN_AS_THEY_ARE)) as image:
            return Encoded(content, SHOWN_AS_THEY_ARE[str(image.format)])
    except (UnidentifiedImageError, Image.DecompressionBombError, OSError):
        return encode(content, f"picture {place[1]}", LARGE)
