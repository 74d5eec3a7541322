"""Raster pictures of any format as 8-bit sRGB, upright, with their transparency."""

from __future__ import annotations

import io
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np

from cppcl.errors import PictureError
from cppcl.pictures.profiles import in_srgb
from cppcl.pictures.transparency import declared_alpha, readable_bmp

if TYPE_CHECKING:
    from PIL import Image

# Formats that Pillow opens but that are no pictures by themselves, or that it hands to another
# program (PostScript would be executed by Ghostscript).
EXCLUDED_FORMATS = frozenset({"BUFR", "EPS", "FITS", "GRIB", "HDF5", "MPEG", "PDF", "WMF"})

HEIC_SUFFIXES = frozenset({".heic", ".heif", ".hif"})
HEIC_HINT = "HEIC pictures need pip install 'cppcl[heic]', or to be saved as JPEG"
_HEIF_BRANDS = frozenset({b"heic", b"heix", b"hevc", b"heim", b"heis", b"mif1", b"msf1"})

_ORIENTATION_TAG = 0x0112
_BITS_TAG, _PHOTOMETRIC_TAG, _PLANAR_TAG = 258, 262, 284


def formats() -> list[str]:
    """Formats of Pillow that are pictures; HEIF where the package pillow-heif is installed."""
    from PIL import Image

    Image.init()
    _register_heif()
    return [name for name in Image.ID if name in Image.OPEN and name not in EXCLUDED_FORMATS]


@lru_cache(maxsize=1)
def _register_heif() -> None:
    if find_spec("pillow_heif"):
        from pillow_heif import register_heif_opener

        register_heif_opener()


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
        data = readable_bmp(data)
        image = Image.open(io.BytesIO(data), formats=formats())
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise PictureError(
            f"{label}: more than the limit of {limit} pixels; reduce the picture first"
        ) from error
    except UnidentifiedImageError as error:
        if data[4:8] == b"ftyp" and data[8:12] in _HEIF_BRANDS:
            raise PictureError(f"{label}: {HEIC_HINT}") from error
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
            if image.info.get("default_image"):  # an animation that does not begin with it
                image.seek(1)
            image.load()
            _check_planes(image, label)
            alpha = declared_alpha(image, data, label)
            return _upright(layer(image, label, alpha), image)
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


def layer(image: Image.Image, label: str, alpha: Image.Image | None = None) -> Image.Image:
    """RGB or RGBA, in sRGB, of a picture of any mode.

    Parameters
    ----------
    image : Image
        As Pillow loaded it.
    label : str
        What error messages call it.
    alpha : Image, optional
        Alpha that the picture does not hold itself, mode L.
    """
    from PIL import ImageChops

    info = image.info
    if image.mode.startswith("I") or image.mode == "F":
        image = _grey_8_bit(image, label)
    elif image.mode == "CMYK" and image.format == "JPEG" and "adobe" not in info:
        # Pillow inverts every CMYK JPEG, but only files with Adobe's marker store it inverted.
        image = ImageChops.invert(image)
    if image.mode == "La":
        image = image.convert("LA")
    grey = image.mode in ("1", "L", "LA")
    if alpha is None and image.has_transparency_data:
        rgba = image.convert("RGBA")
        alpha = rgba.getchannel("A")
        image = rgba.convert("RGB")
    if grey:
        image = image.convert("L")
    elif image.mode != "CMYK":
        image = image.convert("RGB")
    image = in_srgb(image, info).convert("RGB")
    if alpha is not None:
        image.putalpha(alpha)
    return image


def _check_planes(image: Image.Image, label: str) -> None:
    """Refuse a TIFF that Pillow reads wrongly: separate planes of other than 8 bits."""
    tags = getattr(image, "tag_v2", {})
    bits = tags.get(_BITS_TAG, (8,))
    if tags.get(_PLANAR_TAG, 1) == 2 and len(bits) > 1 and set(bits) != {8}:
        raise PictureError(
            f"{label}: TIFF with {bits[0]} bits in separate planes; save it with interleaved "
            "channels, or as PNG"
        )


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
