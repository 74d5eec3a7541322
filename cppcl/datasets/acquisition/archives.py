"""Read untrusted archives and folders of files, and archives inside them."""

from __future__ import annotations

import contextlib
import lzma
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from cppcl.datasets.acquisition.download import DiskErrors
from cppcl.datasets.files import check_readable, is_system_name, walk
from cppcl.errors import InputError
from cppcl.regular_files import check_regular

ARCHIVE_SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
READ_ERRORS = (
    EOFError,
    NotImplementedError,  # a compression that zipfile does not know
    RuntimeError,  # a password is needed
    lzma.LZMAError,
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
)
_BLOCK = 1 << 20


@dataclass(frozen=True)
class Limits:
    """What an archive may hold before it is refused.

    Parameters
    ----------
    n_bytes : int
        Unpacked size of the files that are wanted, counted while they are written.
    n_files : int
        Entries of any kind.
    depth : int
        Archives within archives.
    """

    n_bytes: int = 200 * 10**9
    n_files: int = 5_000_000
    depth: int = 3


@dataclass(frozen=True)
class Member:
    """One file of an archive or folder.

    Parameters
    ----------
    name : str
        POSIX path, beginning with that of the archive or folder.
    n_bytes : int
        Size as declared.
    link : bool
        True if it is a link inside an archive, which is never followed.
    open : callable
        Opens its content for reading; only until the next member is asked for.
    path : Path or None
        The file itself, where it lies in a folder.
    """

    name: str
    n_bytes: int
    link: bool
    open: Callable[[], IO[bytes]]
    path: Path | None = None


def is_archive(name: str) -> bool:
    """True if a file name has the extension of an archive."""
    return name.casefold().endswith(ARCHIVE_SUFFIXES)


def members(
    source: Path, name: str, scratch: Path, *, limits: Limits = Limits()
) -> Iterator[Member]:
    """Files of a folder or an archive, and of archives in it; a plain file is its own member.

    Parameters
    ----------
    source : Path
        A folder or an archive.
    name : str
        What the names of its members begin with.
    scratch : Path
        Folder for archives that lie in archives, while they are read.
    limits : Limits
        Larger archives are refused.

    Raises
    ------
    InputError
        The archive is damaged, needs a password, or has members with names that lead out of
        it; or a limit is exceeded.
    """
    if source.is_dir():
        for entry, is_system in walk(source):
            if is_system:
                continue
            path = Path(entry.path)
            inside = f"{name}/{path.relative_to(source).as_posix()}"
            check_regular(path)
            check_readable(path)
            if is_archive(path.name) and limits.depth:
                yield from members(path, inside, scratch, limits=_below(limits))
            else:
                yield Member(inside, path.stat().st_size, False, _opener(path), path)
        return
    check_regular(source)
    if not is_archive(source.name):
        yield Member(name, source.stat().st_size, False, _opener(source), source)
        return
    entries = _zip_entries if zipfile.is_zipfile(source) else _tar_entries
    try:
        for number, member in enumerate(entries(source, name), start=1):
            if number > limits.n_files:
                raise InputError(f"{source}: more than {limits.n_files} entries; not unpacked")
            if any(map(is_system_name, member.name.removeprefix(f"{name}/").split("/"))):
                continue
            if is_archive(member.name) and not member.link and limits.depth:
                yield from _nested(member, scratch, limits)
            else:
                yield member
    except READ_ERRORS as error:
        raise _damaged(source, error) from error
    except OSError as error:
        if error.errno is not None:
            raise
        raise _damaged(source, error) from error  # bz2 reports damage so


def copy(member: Member, target: Path, limit: int) -> bytes:
    """Write the content of a member to a file; returns its first 16 bytes.

    Raises
    ------
    InputError
        It is damaged, or has more than `limit` bytes.
    """
    written, start = 0, b""
    try:
        with member.open() as source, target.open("xb") as file:
            while block := source.read(_BLOCK):
                start = start or block[:16]
                written += len(block)
                if written > limit:
                    raise InputError(
                        f"{member.name}: unpacks to more than the {limit} bytes that are allowed"
                    )
                with DiskErrors(target.parent, "nothing was added"):
                    file.write(block)
    except READ_ERRORS as error:
        raise _damaged(member.name, error) from error
    except OSError as error:
        if error.errno is not None:
            raise
        raise _damaged(member.name, error) from error  # bz2 reports damage so
    return start


def same_content(member: Member, path: Path) -> bool:
    """True if a file holds the same bytes as a member."""
    try:
        with member.open() as ours, path.open("rb") as theirs:
            while True:
                block = ours.read(_BLOCK)
                if block != theirs.read(len(block) or 1):
                    return False
                if not block:
                    return True
    except READ_ERRORS as error:
        raise _damaged(member.name, error) from error


def _nested(member: Member, scratch: Path, limits: Limits) -> Iterator[Member]:
    place = scratch / f"nested-{limits.depth}{''.join(PurePosixPath(member.name).suffixes[-2:])}"
    place.unlink(missing_ok=True)
    copy(member, place, limits.n_bytes)
    try:
        yield from members(place, member.name, scratch, limits=_below(limits))
    finally:
        place.unlink(missing_ok=True)


def _below(limits: Limits) -> Limits:
    return Limits(limits.n_bytes, limits.n_files, limits.depth - 1)


def _zip_entries(source: Path, name: str) -> Iterator[Member]:
    with zipfile.ZipFile(source) as archive:
        for entry in archive.infolist():
            if entry.is_dir():
                continue
            inside = entry.filename
            if not entry.flag_bits & 0x800:
                # Written without saying so: most programs of today write UTF-8 all the same.
                with contextlib.suppress(UnicodeError):
                    inside = inside.encode("cp437").decode("utf-8")
            link = stat.S_ISLNK(entry.external_attr >> 16)
            path = _checked(source, name, inside.replace("\\", "/"))
            yield Member(path, entry.file_size, link, _zip_opener(archive, entry))


def _zip_opener(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Callable[[], IO[bytes]]:
    return lambda: archive.open(entry)


def _tar_entries(source: Path, name: str) -> Iterator[Member]:
    try:
        archive = tarfile.open(source)  # noqa: SIM115
    except tarfile.ReadError as error:
        raise InputError(
            f"{source}: neither a ZIP nor a TAR archive, or a damaged one; get it again"
        ) from error
    with archive:
        for entry in archive:
            if entry.isfile() or entry.issym() or entry.islnk():
                path = _checked(source, name, entry.name.removeprefix("./"))
                yield Member(path, entry.size, not entry.isfile(), _tar_opener(archive, entry))


def _tar_opener(archive: tarfile.TarFile, entry: tarfile.TarInfo) -> Callable[[], IO[bytes]]:
    def open_entry() -> IO[bytes]:
        file = archive.extractfile(entry)
        assert file is not None
        return file

    return open_entry


def _opener(path: Path) -> Callable[[], IO[bytes]]:
    return lambda: path.open("rb")


def _checked(source: Path, name: str, inside: str) -> str:
    """Path below `name`, refused where it would lead elsewhere."""
    parts = inside.split("/")
    if inside.startswith("/") or ".." in parts or ":" in parts[0] or "\0" in inside:
        raise InputError(
            f"{source}: its entry {inside!r} leads out of the archive; the archive is not "
            "to be trusted, and nothing was unpacked"
        )
    return f"{name}/{inside}"


def _damaged(name: object, error: BaseException) -> InputError:
    return InputError(f"{name}: damaged or not readable ({error}); get it again")
