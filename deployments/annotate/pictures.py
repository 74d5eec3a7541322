"""Pictures of an experiment as the page shows them, by the id of a sample."""

from __future__ import annotations

import hashlib
import io
from collections import OrderedDict
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from cppcl.errors import PictureError
from cppcl.images import decode_picture
from deployments.annotate.samples import AnnotationSet

LONGEST_SIDE = 640
LARGEST_FILE = 64 * 2**20
KEPT_BYTES = 64 * 2**20
"""Encoded pictures that are kept in memory."""


class Encoded(NamedTuple):
    """Bytes of a picture and their type."""

    content: bytes
    media_type: str


class Pictures:
    """Reads and encodes pictures; the files are those of the sample table and no others.

    Parameters
    ----------
    annotated : AnnotationSet
        Pictures that may be seen.
    """

    def __init__(self, annotated: AnnotationSet) -> None:
        self._root = annotated.root
        self._samples = {s.id: s for side in annotated.sides.values() for s in side.samples}
        self._kept: OrderedDict[str, Encoded] = OrderedDict()
        self._size = 0
        self._lock = Lock()

    def __contains__(self, name: object) -> bool:
        return name in self._samples

    def __getitem__(self, name: str) -> Encoded:
        """Picture of a sample, its longer side 640 pixels at most.

        Raises
        ------
        KeyError
            No sample has this id.
        PictureError
            The file is gone, no picture, too large, or another one than when the experiment ran.
        """
        with self._lock:
            if name in self._kept:
                self._kept.move_to_end(name)
                return self._kept[name]
        sample = self._samples[name]
        content = _read(self._root / sample.path, sample.path)
        if hashlib.sha256(content).hexdigest() != sample.sha256:
            raise PictureError(
                f"{sample.path}: changed since the experiment was run; run it again"
            )
        encoded = _encode(content, sample.path)
        with self._lock:
            if name not in self._kept:
                self._kept[name] = encoded
                self._size += len(encoded.content)
            while self._size > KEPT_BYTES and len(self._kept) > 1:
                _, oldest = self._kept.popitem(last=False)
                self._size -= len(oldest.content)
        return encoded


def _read(path: Path, name: str) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise PictureError(f"{name}: cannot be read ({error.strerror})") from error
    if len(content) > LARGEST_FILE:
        raise PictureError(f"{name}: larger than {LARGEST_FILE // 2**20} MiB; reduce the picture")
    return content


def _encode(content: bytes, name: str) -> Encoded:
    """PNG where that is small, as for drawings; else JPEG."""
    from PIL import Image

    image = Image.fromarray(decode_picture(content, longest_side=LONGEST_SIDE, name=name))
    if image.getcolors(maxcolors=4096):
        form, options = "PNG", {}
    else:
        form, options = "JPEG", {"quality": 90}
    buffer = io.BytesIO()
    image.save(buffer, format=form, **options)
    return Encoded(buffer.getvalue(), f"image/{form.lower()}")
