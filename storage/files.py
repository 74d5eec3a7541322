"""Files that are whole or absent: atomic writes, sealed JSON, locks, publishing."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import hashlib
import json
import logging
import os
import re
import shutil
import stat
import sys
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from storage.errors import DamagedArtifactError, RecipeError, StoreAccessError
from storage.recipe import plain

TEMPORARY_SUFFIX = ".partial"
LARGEST_FILE = 2**31
"""Bytes of a file that is read at once."""
LARGEST_SEALED = 2**27
_MOST_PARTS = 2**21
_SYNCING = 8
_SEGMENT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_HINTS = {
    errno.ENOSPC: "The disk is full: free some space ('cppcl store gc' removes what no run needs)"
    " and run again; what is written so far is kept",
    errno.EDQUOT: "The disk quota is used up: free some space and run again",
    errno.EACCES: "Change the owner or mode of the folder, or use another workspace",
    errno.EPERM: "Change the owner or mode of the folder, or use another workspace",
    errno.EIO: "The disk reports an error: see the system's log, and use another disk",
    errno.ESTALE: "The file server was restarted or the folder replaced: run again",
    errno.ENOLCK: "The file system grants no locks: use a workspace on another one",
    errno.ENOTDIR: "A file is where a folder is needed: move it away, or use another workspace",
    errno.EROFS: "The file system is read-only: use a workspace that can be written",
}
logger = logging.getLogger(__name__)


@contextlib.contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn a refusal by the file system into a `StoreAccessError` with path and a hint."""
    try:
        yield
    except StoreAccessError:
        raise
    except OSError as error:
        if error.errno not in _HINTS:
            raise
        where = error.filename or path
        message = f"{where}: {error.strerror}. {_HINTS[error.errno]}."
        raise StoreAccessError(message) from error


def check_name(name: str, *, nested: bool = False) -> str:
    """Return `name`, or raise `RecipeError` if it cannot name an array (or, nested, a file)."""
    segments = name.split("/") if nested else [name]
    if not all(_SEGMENT.fullmatch(segment) for segment in segments):
        slash = ", '/' between folders" if nested else ""
        raise RecipeError(
            f"{name!r} cannot be a name: use ASCII letters, digits, '_', '-' and '.'{slash}, "
            "not beginning with '.' or '-'"
        )
    return name


def write_atomically(path: Path, data: bytes | memoryview, *, make_folder: bool = True) -> None:
    """Write a file under a temporary name, then rename it, so that it is whole or absent."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}{TEMPORARY_SUFFIX}")
    with explained(path):
        if make_folder:
            path.parent.mkdir(parents=True, exist_ok=True)
        try:
            temporary.write_bytes(data)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def pretty_json(value: Any, place: str) -> bytes:
    """Return JSON for people, in the order given, in UTF-8, ending in a newline."""
    document = plain(value, place)
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    return text.encode("utf-8", errors="surrogatepass")


def sealed(document: dict[str, Any]) -> bytes:
    """Return `document` as JSON that carries the sha256 of itself as its last entry."""
    digest = hashlib.sha256(pretty_json(document, "document")).hexdigest()
    return pretty_json({**document, "sha256": digest}, "document")


def unseal(path: Path, hint: str) -> dict[str, Any]:
    """Read a file that `sealed` wrote.

    Raises
    ------
    DamagedArtifactError
        The file is missing, or any bit of it differs.
    """
    return unsealed(read_checked(path, hint, LARGEST_SEALED), str(path), hint)


def unsealed(data: bytes, place: str, hint: str) -> dict[str, Any]:
    """Return the document in what `sealed` returned; `place` names it in an error.

    Raises
    ------
    DamagedArtifactError
        Any bit of it differs.
    """
    try:
        if data.count(b"[") + data.count(b"{") > _MOST_PARTS:  # each takes many times its bytes
            raise ValueError("too many parts")
        document = json.loads(data)
        digest = document.pop("sha256")
        intact = sealed(document) == data and isinstance(digest, str)
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        intact = False
    if not intact:
        raise DamagedArtifactError(f"{place} is not as it was published (digest). {hint}")
    return dict(document)


def read_checked(path: Path, hint: str, most: int = LARGEST_FILE) -> bytes:
    """Return the bytes of a published file.

    Raises
    ------
    DamagedArtifactError
        It is missing, or the disk cannot read it.
    OSError
        It cannot be read, for a reason other than damage.
    """
    try:
        return read_regular(path, most)
    except FileNotFoundError as error:
        raise DamagedArtifactError(f"{path} is missing. {hint}") from error
    except OSError as error:
        if not is_damage(error):
            raise
        raise DamagedArtifactError(f"{path} cannot be read ({error.strerror}). {hint}") from error


def check_regular(path: Path) -> int:
    """Refuse a pipe, a socket or a device in the place of a stored file: it would be waited for.

    Returns
    -------
    int
        Bytes of the file.

    Raises
    ------
    OSError
        ENXIO where it is no regular file; the path is not there.
    """
    found = path.stat()
    if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
        raise OSError(errno.ENXIO, "a pipe, a socket or a device is in its place", str(path))
    return found.st_size


def is_damage(error: Exception) -> bool:
    """True if reading failed because of the stored bytes, not because of the reading process.

    A process may lack memory, file handles, permission or a module. That must not count as damage,
    or a repair would remove whole artifacts.
    """
    if isinstance(error, OSError):
        return error.errno in (
            errno.EIO,
            errno.EISDIR,
            errno.ENOTDIR,
            errno.ENXIO,
            errno.EFBIG,
        )
    return not isinstance(error, MemoryError | ImportError)


def read_regular(path: Path, most: int = LARGEST_FILE) -> bytes:
    """Return the bytes of a regular file; OSError for any other, and for one that is too large."""
    if (size := check_regular(path)) > most:
        raise OSError(errno.EFBIG, f"has {size} bytes, more than {most}", str(path))
    return path.read_bytes()


def sha256_of_file(path: Path) -> tuple[str, int]:
    """Return the sha256 and the size in bytes of a file."""
    check_regular(path)
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
        return digest, stream.tell()


def sync_tree(folder: Path) -> None:
    """Flush every file and folder below `folder`, and itself, to the disk."""

    def sync_file(path: Path) -> None:
        # A worker that was given up may still be writing its block, and renaming the file.
        with contextlib.suppress(FileNotFoundError):
            _sync(path)

    # Several at once: a disk flushes waiting files together.
    with ThreadPoolExecutor(_SYNCING, thread_name_prefix="sync") as pool:
        for directory, _, names in os.walk(folder):
            for _ in pool.map(sync_file, (Path(directory, name) for name in names)):
                pass
            _sync(Path(directory))


def identity(path: Path) -> tuple[int, int, int] | None:
    """What tells a folder from one that took its place; None where there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def locked(path: Path, *, shared: bool = False, wait: bool = True) -> Iterator[None]:
    """Hold an flock on `path`. The operating system frees it even after ``kill -9``.

    Raises
    ------
    BlockingIOError
        Another process holds it and `wait` is false.
    """
    operation = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        try:
            with explained(path):
                fcntl.flock(descriptor, operation | fcntl.LOCK_NB)
        except BlockingIOError:
            if not wait:
                raise
            logger.info("waiting for %s, which another run holds", path)
            fcntl.flock(descriptor, operation)
        yield
    finally:
        # A child forked meanwhile shares the description, so closing alone might not free it.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def publish(folder: Path, destination: Path, trash: Path) -> None:
    """Flush `folder` to the disk and move it to `destination` in one step.

    A folder that it replaces goes to `trash` and is deleted there.
    """
    with explained(destination):
        sync_tree(folder)
        if destination.exists():
            if _exchange(folder, destination):
                discard(folder, trash)
            else:
                discard(destination, trash, successor=folder)
        else:
            folder.rename(destination)
        _sync(destination.parent)


def _exchange(first: Path, second: Path) -> bool:
    """Swap two folders atomically (Linux renameat2); false where the system cannot."""
    if not sys.platform.startswith("linux"):
        return False
    function = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if function is None:
        return False
    at_working_folder, exchange = -100, 2
    names = os.fsencode(first), os.fsencode(second)
    return bool(function(at_working_folder, names[0], at_working_folder, names[1], exchange) == 0)


def discard(folder: Path, trash: Path, *, successor: Path | None = None) -> None:
    """Move `folder` to `trash`, put `successor` in its place, then delete `folder`."""
    grave = trash / f"{folder.parent.name}-{folder.name}-{uuid.uuid4().hex}"
    with explained(folder):
        try:
            trash.mkdir(parents=True, exist_ok=True)
            folder.rename(grave)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            # The disk is full, and deleting is to make room: rename it where it is.
            grave = folder.with_name(f".{folder.name}.{uuid.uuid4().hex}{TEMPORARY_SUFFIX}")
            folder.rename(grave)
        if successor is not None:
            successor.rename(folder)
        if grave.is_dir() and not grave.is_symlink():
            shutil.rmtree(grave)
        else:
            grave.unlink()
