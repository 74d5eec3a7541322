"""Raster pictures of any format as 8-bit sRGB, upright, with their transparency."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np

from cppcl.errors import PictureError

if TYPE_CHECKING:
    from PIL import Image

# Formats that Pillow opens but that are no pictures by themselves, or that it hands to another
# program (PostScript would be executed by Ghostscript).
EXCLUDED_FORMATS = frozenset({"BUFR", "EPS", "FITS", "GRIB", "HDF5", "MPEG", "PDF", "WMF"})

_ORIENTATION_TAG = 0x0112
_BITS_TAG, _PHOTOMETRIC_TAG = 258, 262


def formats() -> list[str]:
    """Formats of Pillow that are pictures."""
    from PIL import Image

    Image.init()
    return [name for name in Image.ID if name in Image.OPEN and name not in EXCLUDED_FORMATS]


def open_raster(data: bytes, label: str, limit: int) -> Image.Image:
    """Decode a raster picture: RGB, or RGBA where parts of it are transparent.

    Parameters
    ----------
    data : bytes
        A file.
    label : str
        What error messages call it.
    limit : int
        Largest number of pixels.

    Raises
    ------
    PictureError
        No picture, truncated, damaged or too large.
    """
    from PIL import Image, UnidentifiedImageError

    # Pillow's readers raise almost anything on a damaged file, so everything that is not a lack
    # of memory says the same thing here: this file is no picture.
    try:
        image = Image.open(io.BytesIO(data), formats=formats())
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise PictureError(
            f"{label}: more than the limit of {limit} pixels; reduce the picture first"
        ) from error
    except UnidentifiedImageError as error:
        raise PictureError(f"{label}: not a picture in any known format") from error
    except MemoryError:
        raise
    except Exception as error:
        raise PictureError(f"{label}: damaged picture ({error})") from error
    with image:
        width, height = image.size
        if width * height > limit:
            raise PictureError(
                f"{label}: {width} x {height} pixels exceed the limit of {limit} pixels; "
                "reduce the picture first"
            )
        try:
            image.load()
            return _upright(layer(image, label), image)
        except (MemoryError, PictureError):
            raise
        except Exception as error:
            raise PictureError(f"{label}: truncated or damaged picture ({error})") from error


def _upright(picture: Image.Image, source: Image.Image) -> Image.Image:
    """Apply the EXIF orientation of `source` (read after loading, which TIFF needs)."""
    from PIL.Image import Transpose

    steps = {
        2: Transpose.FLIP_LEFT_RIGHT,
        3: Transpose.ROTATE_180,
        4: Transpose.FLIP_TOP_BOTTOM,
        5: Transpose.TRANSPOSE,
        6: Transpose.ROTATE_270,
        7: Transpose.TRANSVERSE,
        8: Transpose.ROTATE_90,
    }
    try:
        step = steps.get(source.getexif().get(_ORIENTATION_TAG, 1))
    except Exception:  # damaged EXIF raises almost anything, and then names no orientation
        step = None
    return picture if step is None else picture.transpose(step)


def layer(image: Image.Image, label: str) -> Image.Image:
    """RGB or RGBA of a picture of any mode."""
    from PIL import ImageChops

    if image.mode.startswith("I") or image.mode == "F":
        image = _grey_8_bit(image, label)
    elif image.mode == "CMYK" and image.format == "JPEG" and "adobe" not in image.info:
        # Pillow inverts every CMYK JPEG, but only files with Adobe's marker store it inverted.
        image = ImageChops.invert(image)
    if image.has_transparency_data or image.mode == "La":
        if image.mode == "La":
            image = image.convert("LA")
        return image.convert("RGBA")
    return image.convert("RGB")


def _grey_8_bit(image: Image.Image, label: str) -> Image.Image:
    """Scale 16-bit integers or floats in [0, 1] linearly to 8 bits."""
    from PIL import Image

    values = np.asarray(image)
    if image.mode == "F":
        if not (np.isfinite(values).all() and values.min() >= 0 and values.max() <= 1):
            raise PictureError(
                f"{label}: floating-point pixels must lie in [0, 1] (1 is white), these span "
                f"{values.min():g} to {values.max():g}; scale them or save 8 or 16 bits"
            )
        return Image.fromarray(np.rint(values * 255).astype(np.uint8))
    tags = getattr(image, "tag_v2", {})
    bits = tags.get(_BITS_TAG, (16,))[0]
    white = 2**bits - 1 if image.mode.startswith("I;16") else 65535
    if values.min() < 0 or values.max() > white:
        raise PictureError(
            f"{label}: integer pixels span {values.min()} to {values.max()}, and nothing says "
            "which value is white; save the picture with 8 or 16 bits"
        )
    grey = np.rint(values.astype(np.float64) * (255 / white)).astype(np.uint8)
    if tags.get(_PHOTOMETRIC_TAG) == 0:  # WhiteIsZero, which Pillow leaves as it is
        grey = 255 - grey
    transparent = image.info.get("transparency")
    if isinstance(transparent, int):
        grey[values == transparent] = 255
    return Image.fromarray(grey)
