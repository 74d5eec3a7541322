"""Pictures that strangers send: what is taken, and why not."""

from __future__ import annotations

import binascii
import io
import re

from cppcl.errors import PictureError
from cppcl.pictures.decoding import Picture, decode_picture, is_of_one_colour

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
LARGEST_FILE = 6 * 2**20
MOST_PIXELS = 16_000_000
LONGEST_SIDE = 16_384
MOST_SCANS = 64
"""Passes of a progressive JPEG; each costs the whole picture, and a small file may have many."""

_DATA_ADDRESS = re.compile(r"data:[\w.+/-]{0,100};base64,")
_NAME = "the picture"


class UploadError(PictureError):
    """A picture is refused.

    Parameters
    ----------
    status : int
        Of HTTP.
    reason : str
        What is wrong with it, and a hint.
    """

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


def decode_base64(text: str) -> bytes:
    """Bytes of base64, or of a data address in base64.

    Raises
    ------
    UploadError
        It is none, or too long.
    """
    if len(text) > LARGEST_FILE * 4 // 3 + 200:
        raise UploadError(413, f"{_NAME} is larger than {LARGEST_FILE // 2**20} MiB; reduce it")
    if found := _DATA_ADDRESS.match(text):
        text = text[found.end() :]
    try:
        return binascii.a2b_base64(text.encode("ascii"), strict_mode=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise UploadError(422, f"{_NAME} is not sent as base64 ({error})") from error


def decode_upload(content: bytes, *, longest_side: int) -> Picture:
    """Decode a picture within bounds, as `cppcl.pictures.decoding.decode_picture` does.

    Raises
    ------
    UploadError
        It is too large (413), of another kind (415), or damaged or of one colour (422).
    """
    if len(content) > LARGEST_FILE:
        raise UploadError(413, f"{_NAME} is larger than {LARGEST_FILE // 2**20} MiB; reduce it")
    width, height = _size(content)
    if width * height > MOST_PIXELS or max(width, height) > LONGEST_SIDE:
        raise UploadError(
            413,
            f"{_NAME} has {width} x {height} pixels; at most {MOST_PIXELS} are taken, and "
            f"{LONGEST_SIDE} a side; reduce it",
        )
    if content.count(b"\xff\xda") > MOST_SCANS and content.startswith(b"\xff\xd8"):
        raise UploadError(422, f"{_NAME} is a JPEG of more than {MOST_SCANS} scans; save it anew")
    try:
        picture = decode_picture(content, longest_side=longest_side, name=_NAME)
    except PictureError as error:
        raise UploadError(422, str(error)) from error
    if is_of_one_colour(picture):
        raise UploadError(422, f"{_NAME} is of one colour, so there is nothing to search by")
    return picture


def decode_photo(content: bytes, *, longest_side: int) -> Picture:
    """Decode a photograph of a sketch on paper, and leave its strokes alone, black on white.

    Raises
    ------
    UploadError
        As `decode_upload`; or no sketch can be told from the paper (422).
    """
    from cppcl.pictures.photographs import WORKING_SIDE, clean_photograph

    seen = decode_upload(content, longest_side=WORKING_SIDE)
    try:
        return clean_photograph(seen, longest_side=longest_side, name=_NAME)
    except PictureError as error:
        raise UploadError(422, str(error)) from error


def _size(content: bytes) -> tuple[int, int]:
    """Width and height as the head of a file says."""
    from PIL import Image

    kinds = ", ".join(FORMATS)
    try:
        with Image.open(io.BytesIO(content), formats=FORMATS) as image:
            return image.size
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise UploadError(413, f"{_NAME} has too many pixels; reduce it") from error
    except MemoryError:
        raise
    except Exception as error:  # Pillow's readers raise almost anything on a damaged file
        if content[:256].lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n\0")[:1] == b"<":
            raise UploadError(
                415, f"{_NAME} is SVG or other XML, which is not taken here; send {kinds}"
            ) from error
        raise UploadError(415, f"{_NAME} is none of {kinds}, or damaged") from error
