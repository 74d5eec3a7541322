"""Files that data sets read and write."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cppcl.errors import InputError


def file_sha256(path: Path) -> str:
    """Hexadecimal sha256 of a file, read in pieces.

    Raises
    ------
    InputError
        The file is not there or may not be read.
    """
    try:
        with path.open("rb") as file:
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
