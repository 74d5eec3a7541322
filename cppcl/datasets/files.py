"""Files of data sets: found below a folder, checked, hashed, and written as a whole."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import tempfile
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from cppcl.errors import InputError
from cppcl.pictures.decoding import picture_suffixes
from cppcl.pictures.raster import HEIC_HINT, HEIC_SUFFIXES
from cppcl.regular_files import open_regular, read_bytes, special_kind
from cppcl.validation import counted

_TEXT = re.compile(rb"<(?:[\w.-]+:)?text[\s>]")
_LONGEST_PATH = 4096  # of Linux, with the zero at its end
SYSTEM_NAMES = frozenset({"thumbs.db", "desktop.ini", "__macosx", "ehthumbs.db", "@eadir"})


N_NAMED = 20
"""Files that a finding names."""


@dataclass(frozen=True)
class Scan:
    """Pictures found below one folder.

    Parameters
    ----------
    folder : str
        The folder, relative to the root of the data set.
    files : dict of str to str
        Path relative to `folder`, Unicode NFC, to path relative to the root as it is on disk;
        ordered by the former.
    system : tuple of str
        Hidden files and those that operating systems leave behind; ignored.
    others : tuple of str
        Files without the extension of a picture; ignored.
    unusable : tuple of str
        Pictures that cannot be read whatever they hold, each with the reason; skipped.
    """

    folder: str
    files: dict[str, str]
    system: tuple[str, ...]
    others: tuple[str, ...]
    unusable: tuple[str, ...] = ()

    def findings(self) -> list[str]:
        """Sentences about the files that were ignored."""
        found = []
        heic = [name for name in self.others if name.lower().endswith(tuple(HEIC_SUFFIXES))]
        if heic:
            found.append(f"Skipped {counted(len(heic), 'picture')} in {self.folder}: {HEIC_HINT}.")
        for names, noun, label in (
            (self.system, "hidden or system file", ""),
            (self.others, "file", " without the extension of a picture"),
        ):
            if names:
                shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
                found.append(
                    f"Ignored {counted(len(names), noun)}{label} in {self.folder} ({shown})."
                )
        if self.unusable:
            shown = ", ".join(self.unusable[:N_NAMED])
            more = len(self.unusable) - N_NAMED
            found.append(
                f"Skipped {counted(len(self.unusable), 'picture')} in {self.folder} that cannot "
                f"be read: {shown}{f' and {more} more' if more > 0 else ''}."
            )
        return found


def undrawn_text(root: Path, scan: Scan) -> list[str]:
    """A sentence about the SVG drawings that hold text, which is not drawn; none without any."""
    found = [
        path
        for path in scan.files.values()
        if path.lower().endswith(".svg") and _TEXT.search(_content(root / path))
    ]
    if not found:
        return []
    shown = ", ".join(found[:N_NAMED])
    more = f" and {len(found) - N_NAMED} more" if len(found) > N_NAMED else ""
    return [
        f"{counted(len(found), 'drawing')} in {scan.folder} with text, which is not drawn: "
        f"{shown}{more}; "
        "convert it to paths if it matters."
    ]


def _content(path: Path) -> bytes:
    try:
        return read_bytes(path)
    except (OSError, InputError):
        return b""  # said by what decodes it


def scan_pictures(root: Path, folder: str) -> Scan:
    """Walk ``root/folder`` at any depth, following symbolic links.

    Raises
    ------
    InputError
        The folder is missing, cannot be listed or holds no picture, or a link to a folder leads
        back to one of its parents.
    """
    top = Path(root) / folder
    if not top.is_dir():
        here = sorted(p.name for p in Path(root).iterdir() if p.is_dir())
        more = f" and {len(here) - N_NAMED} more" if len(here) > N_NAMED else ""
        raise InputError(
            f"folder {folder!r} is not in {root}; there is "
            f"{', '.join(map(printable, here[:N_NAMED])) or 'no folder'}{more}"
        )
    suffixes = picture_suffixes()
    files: dict[str, str] = {}
    system: list[str] = []
    others: list[str] = []
    unusable: list[str] = []
    for entry, is_system in walk(top):
        path = Path(entry.path)
        shown = path.relative_to(root).as_posix()
        if is_system:
            system.append(printable(shown))
        elif (reason := why_unusable(entry)) and (
            path.suffix.casefold() in suffixes or reason == "its path is too long"
        ):
            unusable.append(f"{printable(shown)} ({reason})")
        elif path.suffix.casefold() not in suffixes:
            others.append(printable(shown))
        else:
            _add(files, path, path.relative_to(top), shown)
    if not files:
        raise InputError(
            f"{top} holds no pictures{_instead(unusable, others)}; known are .jpg, .png, .svg "
            "and all that Pillow reads"
        )
    return Scan(
        folder,
        dict(sorted(files.items())),
        tuple(sorted(system)),
        tuple(sorted(others)),
        tuple(sorted(unusable)),
    )


def _instead(unusable: list[str], others: list[str]) -> str:
    """Words about what there is where there are no pictures."""
    found = [*sorted(unusable), *sorted(others)]
    return f" that can be read, but {', '.join(found[:3])}" if found else ""


def walk(top: Path) -> Iterator[tuple[os.DirEntry[str], bool]]:
    """Every file below a folder, links followed, in no order; hidden ones are not entered.

    Yields
    ------
    (os.DirEntry, bool)
        A file, and whether it, or the folder that stands for all its files, is hidden or left
        behind by an operating system.

    Raises
    ------
    InputError
        A folder cannot be listed, or a link leads back to itself or one of its parents.
    """
    stack: list[tuple[str, tuple[str, ...]]] = [(str(top), (os.path.realpath(top),))]
    while stack:
        directory, ancestors = stack.pop()
        for entry in _entries(directory):
            if is_system_name(entry.name):
                yield entry, True
            elif _is_dir(entry) and len(os.fsencode(entry.path)) < _LONGEST_PATH:
                real = os.path.realpath(entry.path)
                if real in ancestors:
                    raise InputError(
                        f"{entry.path} is a symbolic link to {real}, which holds it: remove the "
                        "link"
                    )
                stack.append((entry.path, (*ancestors, real)))
            else:
                yield entry, False


def is_system_name(name: str) -> bool:
    """True if a file or folder is hidden or left behind by an operating system."""
    return name.startswith(".") or name.casefold() in SYSTEM_NAMES


def why_unusable(entry: os.DirEntry[str]) -> str | None:
    """Why a file cannot be a sample, whatever its content; None where nothing is wrong."""
    try:
        entry.name.encode()
    except UnicodeEncodeError:
        return "its name is not valid Unicode"
    if len(os.fsencode(entry.path)) >= _LONGEST_PATH:
        return "its path is too long"
    try:
        return special_kind(entry.stat().st_mode)
    except FileNotFoundError:
        return "a link to a file that is gone"
    except OSError as error:
        return "a link to itself" if error.errno == errno.ELOOP else str(error.strerror)


def printable(path: str) -> str:
    """A path that can be printed and stored: bytes that are no Unicode as escapes."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def check_readable(path: str | Path) -> None:
    """Raise `InputError` for a broken link, or a file that may not be read."""
    if os.access(path, os.R_OK):
        return
    if os.path.exists(path):  # noqa: PTH110
        raise InputError(f"{path}: not allowed to read it; change its permissions")
    raise InputError(f"{path}: no such file, or a link to one that is gone; remove it")


def file_sha256(path: Path) -> str:
    """Hexadecimal sha256 of a file, read in pieces.

    Raises
    ------
    InputError
        The file is not there or may not be read.
    """
    try:
        with open_regular(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError as error:
        raise InputError(f"{path}: no such file, or a link to one that is gone") from error
    except PermissionError as error:
        raise InputError(f"{path}: not allowed to read it; change its permissions") from error


@contextmanager
def made_whole(target: Path, *, unless: Callable[[], bool] | None = None) -> Iterator[Path]:
    """Give a temporary folder that becomes `target` by one rename when the block succeeds.

    When another process made `target` meanwhile, that one stays; where `unless` is true at the
    end, nothing is made.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{target.name}.partial-", dir=target.parent))
    try:
        yield partial
        if unless is not None and unless():
            return
        partial.chmod(0o755)
        try:
            partial.rename(target)
        except OSError:
            if not target.is_dir():
                raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _entries(directory: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            return list(entries)
    except PermissionError as error:
        raise InputError(f"{directory}: not allowed to list it; change its permissions") from error


def _is_dir(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False  # a link to itself, or a path that is too long


def _add(files: dict[str, str], path: Path, relative: Path, shown: str) -> None:
    key = unicodedata.normalize("NFC", PurePosixPath(relative).as_posix())
    if key in files:
        raise InputError(
            f"{shown!r} and {files[key]!r} have the same name in two Unicode forms; rename one"
        )
    files[key] = shown
