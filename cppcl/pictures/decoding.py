"""The one picture decoder: any raster format or SVG to (height, width, 3) uint8 sRGB on white."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import InputError, PictureError

if TYPE_CHECKING:
    from PIL import Image

Picture = NDArray[np.uint8]
"""A decoded picture: (height, width, 3) uint8, sRGB, composited on white."""

MAXIMUM_PIXELS = 89_478_485
"""Largest picture that is decoded, in pixels (the default limit of Pillow): a quarter of a
gigabyte of RGB. A small file can claim to be far larger (a decompression bomb)."""

# Formats that Pillow opens but that are no pictures by themselves, or that it hands to another
# program (PostScript would be executed by Ghostscript).
EXCLUDED_FORMATS = frozenset({"BUFR", "EPS", "FITS", "GRIB", "HDF5", "MPEG", "PDF", "WMF"})

_ORIENTATION_TAG = 0x0112
_BITS_TAG, _PHOTOMETRIC_TAG = 258, 262
_MATRIX_ROW = re.compile(r"(?P<file>.+\.npy)#(?P<row>\d+)")
# ITU-R BT.601 weights of red, green and blue.
_LUMA = np.array([0.299, 0.587, 0.114], dtype=np.float32)


def decode_picture(
    source: Path | bytes, *, longest_side: int | None = 256, name: str | None = None
) -> Picture:
    """Decode a picture, upright and composited on white.

    The EXIF orientation is applied and the first frame of an animation is taken. 16-bit grey is
    scaled linearly (65535 is white); integer pictures with values beyond 16 bits are refused, as
    nothing says which value is white. Floating-point pictures must lie in [0, 1], 1 is white.
    16-bit colour keeps its upper 8 bits. Embedded colour profiles are not applied. SVG text is
    not drawn, since fonts differ between machines; an SVG that refers to other files is refused.

    Parameters
    ----------
    source : Path or bytes
        A file, or the bytes of one.
    longest_side : int or None
        An SVG is rendered so that its longer side has this many pixels, with the aspect of its
        view box. A larger raster picture is reduced to it (bicubic, antialiased, aspect kept),
        a smaller one is kept. None keeps every raster picture and renders an SVG at its own size.
    name : str, optional
        What error messages call the picture; the path by default.

    Returns
    -------
    (height, width, 3) uint8
        sRGB, C-contiguous, owned by the caller.

    Raises
    ------
    PictureError
        The file is missing, empty, truncated, no picture, or larger than `MAXIMUM_PIXELS`.
    OSError
        The storage failed while reading; another try may succeed.
    """
    if longest_side is not None and longest_side < 1:
        raise InputError(f"longest_side is {longest_side}; it must be at least 1 or None")
    label = name or ("picture" if isinstance(source, bytes) else str(source))
    data = source if isinstance(source, bytes) else _read(source, label)
    if not data:
        raise PictureError(f"{label}: the file is empty")
    if _looks_like_xml(data):
        from cppcl.pictures.svg import render_svg

        data = render_svg(data, longest_side=longest_side, name=label, limit=MAXIMUM_PIXELS)
    return _decode_raster(data, longest_side, label)


def read_sample(root: Path, path: str, *, longest_side: int | None = 256) -> NDArray[Any]:
    """Read one sample of a table.

    Parameters
    ----------
    root : Path
        Root of the data set.
    path : str
        Path of the sample relative to it: a picture, or ``matrix.npy#17`` for row 17 of a
        matrix of features.
    longest_side : int or None
        See `decode_picture`.

    Returns
    -------
    (height, width, 3) uint8 or (m,) float32
        A decoded picture, or a row of features (read through a memory map).
    """
    match = _MATRIX_ROW.fullmatch(path)
    if match is None:
        return decode_picture(Path(root) / path, longest_side=longest_side, name=path)
    row = int(match["row"])
    file = Path(root) / match["file"]
    try:
        matrix = np.load(file, mmap_mode="r", allow_pickle=False)
    except (FileNotFoundError, ValueError) as error:
        raise InputError(f"{match['file']}: no readable .npy matrix ({error})") from error
    if matrix.ndim != 2 or row >= len(matrix):
        raise InputError(f"{match['file']} has shape {matrix.shape}: there is no row {row}")
    return np.array(matrix[row], dtype=np.float32)


def picture_suffixes() -> frozenset[str]:
    """File name extensions that `decode_picture` knows, lower case, with the dot."""
    from PIL import Image

    formats = _formats()
    raster = {s for s, f in Image.registered_extensions().items() if f in formats}
    return frozenset(raster | {".svg"})


def pad_to_square(picture: Picture, value: int = 255) -> Picture:
    """Centre a picture on a square canvas of one grey value; an odd row or column goes last."""
    height, width = picture.shape[:2]
    side = max(height, width)
    if height == width:
        return picture
    canvas = np.full((side, side, *picture.shape[2:]), value, dtype=picture.dtype)
    top, left = (side - height) // 2, (side - width) // 2
    canvas[top : top + height, left : left + width] = picture
    return canvas


def to_gray(picture: Picture) -> NDArray[np.float32]:
    """Luma (ITU-R BT.601) of an (height, width, 3) uint8 picture, float32 in [0, 1]."""
    gray: NDArray[np.float32] = picture.astype(np.float32) @ (_LUMA / np.float32(255))
    return np.minimum(gray, np.float32(1))


def _read(path: Path, label: str) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise PictureError(f"{label}: there is no such file") from error
    except (IsADirectoryError, NotADirectoryError) as error:
        raise PictureError(f"{label}: this is a folder, not a picture file") from error
    except PermissionError as error:
        raise PictureError(f"{label}: not allowed to read it; change its permissions") from error


def _looks_like_xml(data: bytes) -> bool:
    """True if data start with '<', after any byte order mark: no raster format does."""
    start = data[:256].removeprefix(b"\xef\xbb\xbf").lstrip()
    return start[:1] == b"<" or start[:4] in (b"\xff\xfe<\x00", b"\xfe\xff\x00<")


def _formats() -> list[str]:
    from PIL import Image

    Image.init()
    return [name for name in Image.ID if name in Image.OPEN and name not in EXCLUDED_FORMATS]


def _decode_raster(data: bytes, longest_side: int | None, label: str) -> Picture:
    from PIL import Image, UnidentifiedImageError

    # Pillow's readers raise almost anything on a damaged file, so everything that is not a lack
    # of memory says the same thing here: this file is no picture.
    try:
        image = Image.open(io.BytesIO(data), formats=_formats())
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise PictureError(
            f"{label}: more than the limit of {MAXIMUM_PIXELS} pixels; reduce the picture first"
        ) from error
    except UnidentifiedImageError as error:
        raise PictureError(f"{label}: not a picture in any known format") from error
    except MemoryError:
        raise
    except Exception as error:
        raise PictureError(f"{label}: damaged picture ({error})") from error
    with image:
        width, height = image.size
        if width * height > MAXIMUM_PIXELS:
            raise PictureError(
                f"{label}: {width} x {height} pixels exceed the limit of {MAXIMUM_PIXELS} pixels; "
                "reduce the picture first"
            )
        try:
            image.load()
            upright = _upright(_on_white(image, label), image)
            return np.array(_reduce(upright, longest_side), dtype=np.uint8)
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


def _on_white(image: Image.Image, label: str) -> Image.Image:
    """RGB picture of any mode, transparent parts on white."""
    from PIL import Image, ImageChops

    if image.mode.startswith("I") or image.mode == "F":
        image = _grey_8_bit(image, label)
    elif image.mode == "CMYK" and image.format == "JPEG" and "adobe" not in image.info:
        # Pillow inverts every CMYK JPEG, but only files with Adobe's marker store it inverted.
        image = ImageChops.invert(image)
    if image.has_transparency_data or image.mode == "La":
        if image.mode == "La":
            image = image.convert("LA")
        layer = image.convert("RGBA")
        white = Image.new("RGBA", image.size, (255, 255, 255, 255))
        return Image.alpha_composite(white, layer).convert("RGB")
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


def _reduce(image: Image.Image, longest_side: int | None) -> Image.Image:
    from PIL.Image import Resampling

    longest = max(image.size)
    if longest_side is None or longest <= longest_side:
        return image
    width, height = (max(1, round(side * longest_side / longest)) for side in image.size)
    return image.resize((width, height), Resampling.BICUBIC)
