"""Pictures as a page shows them, by a name or number of their own and never by a path."""

from __future__ import annotations

import hashlib
import io
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Event, Lock
from typing import Generic, NamedTuple, TypeVar

from cppcl.errors import InputError, PictureError
from cppcl.pictures.decoding import decode_picture
from cppcl.regular_files import open_regular

LONGEST_SIDE = 640
LARGEST_FILE = 64 * 2**20
KEPT_BYTES = 64 * 2**20
"""Encoded pictures that are kept in memory."""
LOOKING_S = 0.2
"""How often a waiting thread checks whether it should stop."""


Name = TypeVar("Name", bound=Hashable)


class PictureFile(NamedTuple):
    """Path of a picture relative to the root, and the sha256 of what it held."""

    path: str
    sha256: str


class Encoded(NamedTuple):
    """Bytes of a picture and their type."""

    content: bytes
    media_type: str


class PictureReader(Generic[Name]):
    """Reads and encodes pictures; the files are those of a table and no others.

    Parameters
    ----------
    root : Path
        Folder that paths are relative to.
    files : mapping of PictureFile
        Pictures that may be shown.
    longest_side : int
        Largest number of pixels of the longer side.
    """

    def __init__(
        self, root: Path, files: Mapping[Name, PictureFile], longest_side: int = LONGEST_SIDE
    ) -> None:
        self._root, self._files, self._longest_side = root, files, longest_side
        self._kept: OrderedDict[Name, Encoded] = OrderedDict()
        self._size = 0
        self._lock = Lock()

    def __contains__(self, name: object) -> bool:
        return name in self._files

    def content(self, name: Name) -> bytes:
        """Bytes of the file itself.

        Raises
        ------
        KeyError
            There is no such picture.
        PictureError
            The file is gone, too large, or another one than when the experiment ran.
        """
        file = self._files[name]
        content = _read(self._root / file.path, file.path)
        if hashlib.sha256(content).hexdigest() != file.sha256:
            raise PictureError(f"{file.path}: changed since the experiment was run; run it again")
        return content

    def __getitem__(self, name: Name) -> Encoded:
        """Picture, reduced to the longest side.

        Raises
        ------
        KeyError
            There is no such picture.
        PictureError
            The file is gone, no picture, too large, or another one than when the experiment ran.
        """
        with self._lock:
            if name in self._kept:
                self._kept.move_to_end(name)
                return self._kept[name]
        encoded = encode(self.content(name), self._files[name].path, self._longest_side)
        with self._lock:
            if name not in self._kept:
                self._kept[name] = encoded
                self._size += len(encoded.content)
            while self._size > KEPT_BYTES and len(self._kept) > 1:
                _, oldest = self._kept.popitem(last=False)
                self._size -= len(oldest.content)
        return encoded

    def prepare(self, stop: Event, idle: Event) -> None:
        """Encode pictures before they are asked for, until another one would not be kept.

        Parameters
        ----------
        stop : Event
            Ends it before the next picture.
        idle : Event
            Set while there is nothing else to do; the next picture waits for it.
        """
        for name in self._files:
            while not (stop.is_set() or idle.wait(LOOKING_S)):
                pass
            with self._lock:
                n, size = len(self._kept), self._size
            if stop.is_set() or size * (n + 1) > KEPT_BYTES * n > 0:
                return
            # The error is raised again when the picture is asked for.
            with suppress(PictureError):
                self[name]


def _read(path: Path, name: str) -> bytes:
    try:
        with open_regular(path) as file:
            content = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise PictureError(f"{name}: cannot be read ({error.strerror})") from error
    except InputError as error:
        raise PictureError(f"{name}: cannot be read ({error})") from error
    if len(content) > LARGEST_FILE:
        raise PictureError(f"{name}: larger than {LARGEST_FILE // 2**20} MiB; reduce the picture")
    return content


def encode(content: bytes, name: str, longest_side: int) -> Encoded:
    """PNG where that is small, as for drawings; else JPEG.

    Raises
    ------
    PictureError
        The content is no picture.
    """
    from PIL import Image

    image = Image.fromarray(decode_picture(content, longest_side=longest_side, name=name))
    if image.getcolors(maxcolors=4096):
        form, options = "PNG", {}
    else:
        form, options = "JPEG", {"quality": 90}
    buffer = io.BytesIO()
    image.save(buffer, format=form, **options)
    return Encoded(buffer.getvalue(), f"image/{form.lower()}")
