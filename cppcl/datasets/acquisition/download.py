"""Download one file over HTTP, resuming where an earlier try stopped."""

from __future__ import annotations

import errno
import json
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cppcl.errors import DataUnavailableError

if TYPE_CHECKING:
    from requests import Response

_BUSY = frozenset({408, 425, 429, 500, 502, 503, 504})
_BLOCK = 1 << 16


class DownloadError(DataUnavailableError):
    """An address did not give its file."""


class DiskFullError(DataUnavailableError):
    """The disk has no room for a data set."""


class _TemporaryError(Exception):
    """Worth another try, after `wait` seconds where the server says how long."""

    def __init__(self, message: str, wait: float | None = None) -> None:
        super().__init__(message)
        self.wait = wait


@dataclass(frozen=True)
class Patience:
    """How often, and after which waits, a failing server is asked again.

    Parameters
    ----------
    tries : int
        Tries in a row without new bytes before giving up.
    first_wait, longest_wait : float
        Seconds before the second try, doubled after each up to the longest; a server's own
        ``Retry-After`` counts up to the longest too.
    timeout : float
        Seconds without a byte after which a connection counts as broken.
    sleep : callable
        Waits for a number of seconds.
    """

    tries: int = 5
    first_wait: float = 1.0
    longest_wait: float = 60.0
    timeout: float = 30.0
    sleep: Callable[[float], None] = time.sleep


class ResumingDownloader:
    """A downloader for pooch that resumes; pooch's own starts again from the beginning.

    What was received stays in `partial`, with a note of its address and version beside it; a later
    try asks for the rest of that version.

    Parameters
    ----------
    partial : Path
        Where the file grows.
    patience : Patience
        Tries and waits.
    progress : callable
        Called with bytes received and bytes in all (0 if the server does not say).
    """

    def __init__(
        self,
        partial: Path,
        *,
        patience: Patience = Patience(),
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> None:
        self.partial = partial
        self.note = partial.with_name(f"{partial.name}.json")
        self.patience = patience
        self.progress = progress

    def __call__(self, url: str, output_file: str, pooch: Any) -> None:
        """Download `url` to `output_file`, as pooch asks.

        Raises
        ------
        DownloadError
            The address does not answer, refuses, or answers with a web page.
        DiskFullError
            There is no room; what was received is kept.
        """
        self.download(url)
        Path(self.partial).replace(output_file)
        self.note.unlink(missing_ok=True)

    def download(self, url: str) -> None:
        """Complete `partial` from an address."""
        most = self._received(url)
        failures, wait = 0, self.patience.first_wait
        while True:
            try:
                return self._continue(url)
            except _TemporaryError as error:
                received = self._received(url)
                failures = 0 if received > most else failures + 1
                most = max(most, received)
                if failures >= self.patience.tries:
                    raise DownloadError(f"{url}: {error}, {failures} times in a row") from error
                if failures <= 1:
                    wait = self.patience.first_wait
                pause = wait if error.wait is None else error.wait
                self.patience.sleep(min(pause, self.patience.longest_wait))
                wait *= 2

    def _continue(self, url: str) -> None:
        import requests
        from urllib3.exceptions import HTTPError

        received = self._received(url)
        headers = {"Accept-Encoding": "identity"}
        if received:
            headers["Range"] = f"bytes={received}-"
            if validator := self._noted("validator"):
                headers["If-Range"] = validator
        try:
            with requests.get(
                url, headers=headers, stream=True, timeout=self.patience.timeout
            ) as response:
                self._receive(url, response, received)
        except (requests.ConnectionError, requests.Timeout, HTTPError) as error:
            raise _TemporaryError(f"the connection failed ({_innermost(error)})") from error
        except requests.RequestException as error:
            raise DownloadError(f"{url}: {error}") from error

    def _receive(self, url: str, response: Response, received: int) -> None:
        status = response.status_code
        if status in _BUSY:
            raise _TemporaryError(
                f"the server answers {status} {response.reason}", _retry_after(response)
            )
        if status == 416 and received:
            if self._noted("total") == received:
                return
            self._discard()
            raise _TemporaryError("the server does not have the rest of what was received")
        if status not in (200, 206):
            raise DownloadError(f"{url}: the server answers {status} {response.reason}")
        if response.headers.get("Content-Type", "").startswith("text/html"):
            raise DownloadError(f"{url}: answers with a web page, not with the file")
        if status == 206:
            start, total = _content_range(response)
            if start != received:
                self._discard()
                raise _TemporaryError(f"the server sends bytes from {start}, not {received}")
        else:
            received, total = 0, int(response.headers.get("Content-Length") or 0)
        check_room(self.partial.parent, total - received)
        if not received:  # Before the note that would take old bytes for those of this address.
            self._discard()
        self._write_note(url, response, total)
        self._append(response, received, total)
        size = self.partial.stat().st_size
        if total and size != total:
            if size > total:
                self._discard()
            raise _TemporaryError(f"the transfer ended after {size} of {total} bytes")

    def _append(self, response: Response, received: int, total: int) -> None:
        with self._disk_errors(), self.partial.open("r+b" if received else "wb") as file:
            file.seek(received)
            # Whatever has arrived, at once: where the connection breaks, all of it is kept.
            while block := response.raw.read1(_BLOCK, decode_content=False):
                file.write(block)
                received += len(block)
                self.progress(received, total)

    def _write_note(self, url: str, response: Response, total: int) -> None:
        etag = response.headers.get("ETag", "")
        validator = etag if etag.startswith('"') else response.headers.get("Last-Modified")
        note = {"url": url, "validator": validator, "total": total}
        with self._disk_errors():
            self.partial.parent.mkdir(parents=True, exist_ok=True)
            self.note.write_text(json.dumps(note), encoding="utf-8")

    def _disk_errors(self) -> DiskErrors:
        return DiskErrors(self.partial.parent, "what was received is kept")

    def _received(self, url: str) -> int:
        """Bytes of this address that are here already."""
        if not self.partial.is_file() or self._noted("url") != url:
            return 0
        return self.partial.stat().st_size

    def _noted(self, key: str) -> Any:
        try:
            return json.loads(self.note.read_text(encoding="utf-8")).get(key)
        except (FileNotFoundError, ValueError, AttributeError):
            return None

    def _discard(self) -> None:
        self.partial.unlink(missing_ok=True)
        self.note.unlink(missing_ok=True)


class DiskErrors:
    """A ``with`` block in which errors of a full or read-only disk get a hint.

    Parameters
    ----------
    folder : Path
        Where the block writes.
    kept : str
        What became of the work done so far.
    """

    def __init__(self, folder: Path, kept: str) -> None:
        self.folder = folder
        self.kept = kept

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFullError(
                f"{self.folder}: the disk is full; make room, or let CPPCL_DATA name a folder "
                f"on another disk ({self.kept})"
            ) from error
        if isinstance(error, OSError) and error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise DataUnavailableError(
                f"{self.folder}: not allowed to write there ({os.strerror(error.errno)}); change "
                "its permissions, or let CPPCL_DATA name another folder"
            ) from error
        if isinstance(error, FileExistsError | NotADirectoryError | IsADirectoryError):
            raise DataUnavailableError(
                f"{error.filename or self.folder}: a file where a folder is wanted, a folder "
                "where a file is, or a link to nowhere; remove it, or let CPPCL_DATA name another "
                "folder"
            ) from error


def check_room(folder: Path, n_bytes: int) -> None:
    """Check that the disk has room for so many bytes.

    Raises
    ------
    DiskFullError
        Fewer than `n_bytes` are free where `folder` is or would be made.
    """
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    if n_bytes > free:
        raise DiskFullError(
            f"{folder}: {n_bytes / 1e6:,.0f} MB are needed and {free / 1e6:,.0f} MB are free; "
            "make room, or let CPPCL_DATA name a folder on another disk"
        )


def _content_range(response: Response) -> tuple[int, int]:
    """First byte and size of the whole file."""
    text = response.headers.get("Content-Range", "")
    try:
        span, _, total = text.removeprefix("bytes ").partition("/")
        return int(span.partition("-")[0]), 0 if total == "*" else int(total)
    except ValueError:
        return -1, 0


def _retry_after(response: Response) -> float | None:
    text = response.headers.get("Retry-After", "")
    if text.isdecimal():
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (TypeError, ValueError):
        return None


def _innermost(error: BaseException) -> str:
    """What happened, without the layers of the HTTP libraries around it."""
    while error.args and isinstance(error.args[-1], BaseException):
        error = error.args[-1]
    reason = getattr(error, "reason", None)
    return str(reason if isinstance(reason, BaseException) else error) or type(error).__name__
