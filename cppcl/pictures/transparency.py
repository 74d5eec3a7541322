"""Transparency that files declare and Pillow passes over, or compares with other values."""

from __future__ import annotations

import io
import struct
from typing import TYPE_CHECKING

import numpy as np

from cppcl.errors import PictureError

if TYPE_CHECKING:
    from PIL import Image

_BITFIELDS, _ALPHA_BITFIELDS = 3, 6
_ALPHA_MASK, _COLOUR_MASKS = 0xFF000000, (0xFF0000, 0xFF00, 0xFF)
_PLAIN_BMP, _LEAST_WITH_ALPHA = 40, 56


def readable_bmp(data: bytes) -> bytes:
    """A BMP of alpha masks (compression 6) as one of masks, which Pillow reads."""
    if data[:2] == b"BM" and data[30:34] == struct.pack("<I", _ALPHA_BITFIELDS):
        return data[:30] + struct.pack("<I", _BITFIELDS) + data[34:]
    return data


def declared_alpha(image: Image.Image, data: bytes, label: str) -> Image.Image | None:
    """Alpha of a loaded picture where Pillow is not right about it; None elsewhere.

    These are the colour keys of PNG with 2 or 4 bits of grey, or 16 bits of colour, and the
    fourth byte of BMP. A colour key that is taken care of is removed from ``image.info``.

    Parameters
    ----------
    image : Image
        As Pillow opened and loaded it.
    data : bytes
        Its file.
    label : str
        What error messages call it.

    Returns
    -------
    Image or None
        Mode L, 255 is opaque.

    Raises
    ------
    PictureError
        Nothing says whether the fourth byte of a BMP is alpha.
    """
    if image.format == "PNG":
        return _of_key(image, data)
    if image.format == "BMP" and image.mode == "RGB":
        return _of_bmp(image, data, label)
    return None


def _of_key(image: Image.Image, data: bytes) -> Image.Image | None:
    from PIL import Image

    key, bits = image.info.get("transparency"), data[24]
    if isinstance(key, int) and image.mode == "L" and bits in (2, 4):
        clear = np.asarray(image) == key * 255 // (2**bits - 1)
    elif isinstance(key, tuple) and image.mode == "RGB" and bits == 16:
        upper = np.asarray(image).astype(np.uint16)
        with Image.open(io.BytesIO(data), formats=["PNG"]) as second:
            # Read as of the other order of bytes, the upper byte is the lower one.
            second.tile = [tile._replace(args="RGB;16L") for tile in second.tile]
            lower = np.asarray(second)
        clear = (upper * 256 + lower == np.array(key)).all(axis=-1)
    else:
        return None
    del image.info["transparency"]
    return Image.fromarray(np.where(clear, np.uint8(0), np.uint8(255)))


def _of_bmp(image: Image.Image, data: bytes, label: str) -> Image.Image | None:
    from PIL import Image

    (start,), (header,) = struct.unpack_from("<I", data, 10), struct.unpack_from("<I", data, 14)
    if header < _PLAIN_BMP:
        return None
    _, height, _, bits, compression = struct.unpack_from("<iiHHI", data, 18)
    if bits != 32 or compression not in (0, _BITFIELDS):
        return None
    shape = image.height, image.width
    fourth = np.frombuffer(data, np.uint8, 4 * shape[0] * shape[1], start)[3::4].reshape(shape)
    fourth = fourth if height < 0 else fourth[::-1]
    masks = struct.unpack_from("<4I", data, 54) if len(data) >= 70 else (0, 0, 0, 0)
    # Pillow makes files of masks readable: behind a plain header four of them were alpha masks.
    has_alpha_mask = header >= _LEAST_WITH_ALPHA or (
        compression == _BITFIELDS and start >= 14 + header + 16
    )
    if has_alpha_mask and masks == (*_COLOUR_MASKS, _ALPHA_MASK):
        return Image.fromarray(np.ascontiguousarray(fourth))
    if compression == 0 and (fourth != fourth[0, 0]).any():
        raise PictureError(
            f"{label}: the fourth byte of its pixels varies, and nothing says whether it is "
            "alpha; save the picture as PNG"
        )
    return None
