"""The one picture decoder: any raster format or SVG to (height, width, 3) uint8 sRGB on white."""

from __future__ import annotations

import errno
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import InputError, PictureError
from cppcl.pictures.raster import formats, open_raster
from cppcl.regular_files import check_regular, read_bytes

if TYPE_CHECKING:
    from PIL import Image

Picture = NDArray[np.uint8]
"""A decoded picture: (height, width, 3) uint8, sRGB, composited on white."""

MAXIMUM_PIXELS = 89_478_485
"""Largest picture that is decoded, in pixels (the default limit of Pillow): a quarter of a
gigabyte of RGB. A small file can claim to be far larger (a decompression bomb)."""

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
    16-bit colour keeps its upper 8 bits. Colour profiles, and gamma and primaries of PNG, are
    converted to sRGB.

    SVG is rendered in a process of its own, within bounds of time and memory: text is not drawn,
    since fonts differ between machines, and what is not drawn as browsers do is refused by name
    (`cppcl.pictures.svg`).

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
        from cppcl.pictures.svg.process import render_apart

        data = render_apart(data, longest_side=longest_side, name=label, limit=MAXIMUM_PIXELS)
    image = _on_white(open_raster(data, label, MAXIMUM_PIXELS))
    return np.array(_reduce(image, longest_side), dtype=np.uint8)


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
    check_regular(file)
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

    known = formats()
    raster = {s for s, f in Image.registered_extensions().items() if f in known}
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


def is_of_one_colour(picture: Picture) -> bool:
    """True if nothing can be seen: a blank page, or a drawing of which nothing is drawn."""
    return bool((picture == picture[0, 0]).all())


def to_gray(picture: Picture) -> NDArray[np.float32]:
    """Luma (ITU-R BT.601) of an (height, width, 3) uint8 picture, float32 in [0, 1]."""
    gray: NDArray[np.float32] = picture.astype(np.float32) @ (_LUMA / np.float32(255))
    return np.minimum(gray, np.float32(1))


def _read(path: Path, label: str) -> bytes:
    try:
        return read_bytes(path)
    except FileNotFoundError as error:
        raise PictureError(f"{label}: there is no such file") from error
    except (IsADirectoryError, NotADirectoryError) as error:
        raise PictureError(f"{label}: this is a folder, not a picture file") from error
    except PermissionError as error:
        raise PictureError(f"{label}: not allowed to read it; change its permissions") from error
    except InputError as error:
        raise PictureError(str(error).replace(str(path), label, 1)) from error
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        raise PictureError(f"{label}: the path is too long; shorten it") from error


def _looks_like_xml(data: bytes) -> bool:
    """True if data start with '<', after any byte order mark: no raster format does."""
    start = data[:256].removeprefix(b"\xef\xbb\xbf").lstrip()
    return start[:1] == b"<" or start[:4] in (b"\xff\xfe<\x00", b"\xfe\xff\x00<")


def _on_white(image: Image.Image) -> Image.Image:
    """RGB of a picture, transparent parts on white."""
    from PIL import Image

    if image.mode != "RGBA":
        return image
    white = Image.new("RGBA", image.size, (255, 255, 255, 255))
    return Image.alpha_composite(white, image).convert("RGB")


def _reduce(image: Image.Image, longest_side: int | None) -> Image.Image:
    from PIL.Image import Resampling

    longest = max(image.size)
    if longest_side is None or longest <= longest_side:
        return image
    width, height = (max(1, round(side * longest_side / longest)) for side in image.size)
    return image.resize((width, height), Resampling.BICUBIC)
