"""Which files of a folder or archive belong to a data set, in any known layout."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import IO

from cppcl.datasets.acquisition.archives import is_archive
from cppcl.datasets.acquisition.mirrors import Archive
from cppcl.datasets.files import check_readable, printable, walk
from cppcl.errors import InputError
from cppcl.modality import Modality
from cppcl.regular_files import check_regular

LONGEST_NAME = 255
"""Bytes of a name that file systems take."""

Placer = Callable[[str], str | None]
"""From the path of any file to its place in the data set's own layout, or None."""


@dataclass(frozen=True)
class Part:
    """A part of a data set that is present or missing as a whole.

    Parameters
    ----------
    name : str
        Its name, in words.
    modality : {'sketch', 'image'} or None
        Modality of its pictures; None for labels and lists.
    place : callable
        Place of a file of this part in the data set's own layout, None for any other file. It
        must also recognise such places, below any folder.
    expected : int
        Number of files in the published archive.
    archives : tuple of Archive
        Where it can be downloaded; the first that works is used.
    size : (width, height) or None
        Size in pixels that its pictures have; others of the same names are ignored.
    """

    name: str
    modality: Modality | None
    place: Placer
    expected: int
    archives: tuple[Archive, ...] = ()
    size: tuple[int, int] | None = None


@dataclass(frozen=True)
class Contents:
    """What a folder holds of a data set.

    Parameters
    ----------
    files : dict of str to dict of str to str
        By name of the part, then by key (the place without its extension): path relative to
        the root.
    repeated : tuple of str
        Paths whose key another file has.
    others : tuple of str
        Paths of files that belong to no part.
    other_sizes : tuple of str
        Paths of pictures of another size than the part's.
    """

    files: dict[str, dict[str, str]] = field(default_factory=dict)
    repeated: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    other_sizes: tuple[str, ...] = ()


def by_pattern(*patterns: str, to: str) -> Placer:
    """Recognise files by regular expressions that match the end of their paths.

    Parameters
    ----------
    *patterns : str
        Tried in order, whatever the case; each begins where a path or a component begins.
    to : str
        The place: a format string over the groups of the pattern.
    """
    compiled = [re.compile(f"(?:^|/){pattern}$", re.IGNORECASE) for pattern in patterns]

    def place(path: str) -> str | None:
        for pattern in compiled:
            if match := pattern.search(path):
                return to.format_map(match.groupdict())
        return None

    return place


def key_of(place: str) -> str:
    """Name of a sample: its place without the extension."""
    folder, slash, name = place.rpartition("/")
    stem, dot, _ = name.rpartition(".")
    return f"{folder}{slash}{stem if dot and stem else name}"


def part_of(path: str, parts: Sequence[Part]) -> tuple[Part, str] | None:
    """Part of a file and its place in it; None for a file of no part."""
    path = unicodedata.normalize("NFC", path)
    for part in parts:
        if (place := part.place(path)) is not None:
            return part, place
    return None


def can_be_kept(path: str) -> bool:
    """False for a path that is no Unicode, or of a name too long for a file."""
    try:
        return max(map(len, path.encode().split(b"/"))) <= LONGEST_NAME
    except UnicodeEncodeError:
        return False


def whole_name(path: Path, levels: int = 3) -> str:
    """Last components of an absolute path, since a layout may be recognised by parent folders."""
    return "/".join([p for p in path.absolute().parts if p != "/"][-levels:])


def read_layout(root: Path, parts: Sequence[Part]) -> Contents:
    """Find the files of a data set below a folder, in any layout that its parts know.

    Raises
    ------
    InputError
        A folder cannot be listed, a link leads back to where it is, or a file is no file.
    """
    prefix = whole_name(root)
    files: dict[str, dict[str, str]] = {part.name: {} for part in parts}
    repeated, others, other_sizes = [], [], []
    top = len(str(root)) + 1
    entries = {entry.path[top:]: entry for entry, is_system in walk(root) if not is_system}
    for path, entry in sorted(entries.items(), key=itemgetter(0)):
        known = part_of(f"{prefix}/{path}", parts) if can_be_kept(path) else None
        if known is None:
            others.append(printable(path))
            continue
        part, place = known
        check_regular(Path(entry.path))
        check_readable(entry.path)
        if part.size is not None and picture_size(root / path) != part.size:
            other_sizes.append(path)
        elif files[part.name].setdefault(key_of(place), path) != path:
            repeated.append(path)
    ordered = {name: dict(sorted(keys.items())) for name, keys in files.items()}
    return Contents(ordered, tuple(repeated), tuple(others), tuple(other_sizes))


def picture_size(file: Path | IO[bytes]) -> tuple[int, int] | None:
    """Width and height from the head of a picture; None where it is none."""
    from PIL import Image

    try:
        with Image.open(file) as picture:
            return picture.size
    except (OSError, ValueError, Image.DecompressionBombError):
        return None


def is_picture(start: bytes) -> bool:
    """True if a file's first 16 bytes are those of a picture in a common format."""
    return start.startswith(_PICTURE_STARTS) or b"<svg" in start or b"<?xml" in start


_PICTURE_STARTS = (
    b"\x89PNG",
    b"\xff\xd8\xff",
    b"GIF8",
    b"BM",
    b"II*\x00",
    b"MM\x00*",
    b"RIFF",
)


def first_paths(paths: Sequence[str], most: int = 4) -> str:
    """Words for the first few of some paths, and how many more there are."""
    if not paths:
        return "no file"
    shown = ", ".join(paths[:most])
    return shown if len(paths) <= most else f"{shown} and {len(paths) - most} more"


def check_source(path: Path, parts: Sequence[Part]) -> None:
    """Check that a path is a folder, an archive or a file of a data set.

    Raises
    ------
    InputError
        It does not exist or cannot be opened as an archive.
    """
    if not path.exists():
        raise InputError(f"{path} does not exist; give an archive or a folder")
    if not path.is_dir():
        check_regular(path)
    if path.is_file() and not is_archive(path.name) and part_of(whole_name(path), parts) is None:
        raise InputError(
            f"{path} is neither a folder nor a ZIP or TAR archive; unpack it and give the folder"
        )
