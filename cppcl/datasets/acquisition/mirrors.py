"""Download an archive from the first of its addresses that works, and check it."""

from __future__ import annotations

import hashlib
import json
import logging
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cppcl.datasets.acquisition.archives import is_archive
from cppcl.datasets.acquisition.download import (
    DiskErrors,
    DiskFullError,
    DownloadError,
    Patience,
    ResumingDownloader,
)
from cppcl.errors import DataUnavailableError

CHECKSUMS = "checksums.json"


@dataclass(frozen=True)
class Archive:
    """A published file.

    Parameters
    ----------
    file : str
        Its name.
    addresses : tuple of str
        Where it was or is, official ones first.
    checksum : str or None
        ``md5:...`` or ``sha256:...`` where one is published. Otherwise that of the first
        download is noted and must not change.
    n_bytes : int
        Size, about; 0 where it is not known.
    remark : str
        A hint for people who download it by hand.
    """

    file: str
    addresses: tuple[str, ...] = ()
    checksum: str | None = None
    n_bytes: int = 0
    remark: str = ""


def _ignore(*arguments: object) -> None:
    """Do nothing."""


@dataclass(frozen=True)
class Listener:
    """Callbacks that report what happens, and how often servers are retried.

    Parameters
    ----------
    log : callable
        Called with a remark for the user.
    progress : callable
        Called with the name of the file, bytes done and bytes in all (0 if not known).
    patience : Patience
        Tries and waits of downloads.
    """

    log: Callable[[str], None] = _ignore
    progress: Callable[[str, int, int], None] = _ignore
    patience: Patience = field(default_factory=Patience)


def obtain(archive: Archive, folder: Path, listener: Listener) -> Path:
    """Download an archive into a folder, unless it is there as it should be.

    Raises
    ------
    DataUnavailableError
        No address works: the message says what each answered.
    DiskFullError
        There is no room.
    """
    import pooch

    target = folder / archive.file
    pooch.get_logger().setLevel(logging.WARNING)
    noted = read_checksums(folder).get(archive.file, {})
    checksum = archive.checksum or (f"sha256:{noted['sha256']}" if noted else None)
    problems = []
    for url in archive.addresses:
        if not target.is_file():
            listener.log(f"{archive.file}: from {url}")
        downloader = ResumingDownloader(
            folder / f"{archive.file}.part",
            patience=listener.patience,
            progress=lambda done, total: listener.progress(archive.file, done, total),
        )
        try:
            with DiskErrors(folder, "what was received is kept"):
                pooch.retrieve(
                    url, checksum, fname=archive.file, path=folder, downloader=downloader
                )
        except DiskFullError:
            raise
        except DownloadError as error:
            problems.append(str(error))
        except ValueError:  # how pooch reports a wrong checksum; it has removed the file
            problems.append(_mismatch(url, archive, noted))
        else:
            if archive.checksum or not is_archive(target.name) or _opens(target):
                _note_checksum(folder, archive, url)
                return target
            target.unlink()
            problems.append(f"{url}: its file is neither a ZIP nor a TAR archive")
        listener.log(problems[-1])
    raise DataUnavailableError(
        "\n".join([f"{archive.file} could not be downloaded", *problems, archive.remark]).strip()
    )


def _opens(path: Path) -> bool:
    return zipfile.is_zipfile(path) or tarfile.is_tarfile(path)


def _mismatch(url: str, archive: Archive, noted: dict[str, Any]) -> str:
    if archive.checksum:
        return f"{url}: its file does not have the published checksum {archive.checksum}"
    return (
        f"{url}: its file differs from that of {noted['address']} on {noted['date']}; if it was "
        f"renewed, remove {archive.file!r} from {CHECKSUMS}"
    )


def read_checksums(folder: Path) -> dict[str, Any]:
    """Checksums of earlier downloads, by file; empty where there are none."""
    try:
        noted = json.loads((folder / CHECKSUMS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return noted if isinstance(noted, dict) else {}


def _note_checksum(folder: Path, archive: Archive, url: str) -> None:
    path = folder / archive.file
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    noted = read_checksums(folder)
    if noted.get(archive.file, {}).get("sha256") == digest:
        return
    noted[archive.file] = {
        "sha256": digest,
        "n_bytes": path.stat().st_size,
        "address": url,
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
    }
    partial = folder / f"{CHECKSUMS}.part"
    partial.write_text(json.dumps(noted, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    partial.replace(folder / CHECKSUMS)
