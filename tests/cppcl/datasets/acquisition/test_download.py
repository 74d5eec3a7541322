"""Downloads that go wrong, against a server on this machine."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import random
import subprocess
import sys
import threading
import zipfile
from email.utils import formatdate
from pathlib import Path

import pytest

from cppcl.datasets.acquisition.download import (
    DiskFullError,
    DownloadError,
    Patience,
    ResumingDownloader,
)
from cppcl.datasets.acquisition.mirrors import Archive, Listener, obtain
from cppcl.errors import DataUnavailableError
from tests.cppcl.datasets.conftest import Answer

FILE = random.Random(5).randbytes(300_000)
ETAG = {"ETag": '"v1"'}


class Pauses(list):
    """Waits in place of sleeping."""

    def patience(self, **options):
        return Patience(sleep=self.append, timeout=20, **options)


@pytest.fixture
def pauses():
    return Pauses()


@pytest.fixture
def download(tmp_path, pauses):
    """Download an address to tmp_path/file and return its content."""

    def run(url, **options):
        target = tmp_path / "file"
        target.touch()  # as pooch does
        downloader = ResumingDownloader(tmp_path / "part", patience=pauses.patience(**options))
        downloader(url, str(target), None)
        return target.read_bytes()

    return run


def whole(content=FILE, **changes):
    return Answer(content, headers=ETAG, **changes)


def test_plain_download(server, download, tmp_path, pauses):
    assert download(server.put("file", whole())) == FILE
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file"]
    assert pauses == []


def test_a_connection_that_breaks_is_resumed(server, download, pauses):
    url = server.put("file", whole(drop=100_000), whole(drop=50_000), whole())
    assert download(url) == FILE
    assert server.sent["/file"] == len(FILE)
    assert [asked for _, asked in server.requests] == [None, "bytes=100000-", "bytes=150000-"]
    assert pauses == [1.0, 1.0]  # what brings something new starts the waits anew


def test_a_later_process_fetches_the_rest_only(server, download, tmp_path):
    """Killed at half by SIGKILL, then resumed."""
    half = len(FILE) // 2
    let_go = threading.Event()
    url = server.put("file", whole(drop=half, block=let_go), whole())
    code = f"""
from pathlib import Path
from cppcl.datasets.acquisition.download import ResumingDownloader
tell = lambda done, total: print(done, total, flush=True)
ResumingDownloader(Path({str(tmp_path / "part")!r}), progress=tell)({url!r}, "nowhere", None)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        received = 0
        while received < half // 65536 * 65536:
            received = int(child.stdout.readline().split()[0])
        child.kill()
    let_go.set()
    kept = (tmp_path / "part").stat().st_size
    assert 0 < kept <= half
    assert download(url) == FILE
    assert server.requests[1:] == [("/file", f"bytes={kept}-")]
    assert server.sent["/file"] == half + len(FILE) - kept


@pytest.mark.parametrize(
    "answers",
    [
        # The file changed meanwhile, its length was wrong, another range than asked for.
        (whole(FILE[::-1], drop=100_000), Answer(FILE, headers={"ETag": '"v2"'})),
        (Answer(FILE[:-10], headers={**ETAG, "Content-Length": str(len(FILE))}), whole()),
        (
            whole(drop=1000),
            Answer(FILE, status=206, headers={**ETAG, "Content-Range": "bytes 7-9/300000"}),
            whole(),
        ),
    ],
)
def test_what_does_not_fit_starts_again(server, download, answers):
    assert download(server.put("file", *answers)) == FILE


def test_redirects_are_followed(server, download):
    end = server.put("end", whole())
    middle = server.put("middle", Answer(status=302, headers={"Location": end}))
    assert download(server.put("file", Answer(status=301, headers={"Location": middle}))) == FILE


PAGE = Answer(b"<html>log in</html>", headers={"Content-Type": "text/html; charset=utf-8"})
CIRCLE = Answer(status=302, headers={"Location": "/file"})


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        *((Answer(status=status), f"answers {status}") for status in (401, 403, 404, 410)),
        (CIRCLE, "redirects"),
        (PAGE, "a web page"),
    ],
)
def test_a_refusal_is_final(answer, words, server, download, pauses):
    with pytest.raises(DownloadError, match=words):
        download(server.put("file", answer))
    assert pauses == []


def test_without_ranges_it_starts_again(server, download):
    url = server.put("file", whole(drop=100_000, ranges=False), whole(ranges=False))
    assert download(url) == FILE
    assert server.sent["/file"] == 100_000 + len(FILE)


def test_bytes_of_another_address_are_not_continued(server, download, tmp_path):
    other = server.put("other", whole(FILE[::-1], drop=1000), Answer(status=404))
    with pytest.raises(DownloadError, match="404"):
        download(other)
    assert (tmp_path / "part").stat().st_size == 1000
    assert download(server.put("file", whole())) == FILE


def test_killed_before_the_first_byte_of_another_address(server, download, tmp_path, monkeypatch):
    other = server.put("other", whole(FILE[::-1], drop=1000), Answer(status=404))
    with pytest.raises(DownloadError):
        download(other)
    url = server.put("file", whole())

    def kill(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ResumingDownloader, "_append", kill)
        with pytest.raises(KeyboardInterrupt):
            download(url)
    assert download(url) == FILE


def test_a_server_that_sends_pieces_is_asked_until_the_end(server, download):
    piece = {**ETAG, "Content-Range": "bytes 1000-200999/300000"}
    pieces = Answer(FILE[1000:201_000], status=206, headers=piece)
    assert download(server.put("file", whole(drop=1000), pieces, whole())) == FILE
    assert [asked for _, asked in server.requests] == [None, "bytes=1000-", "bytes=201000-"]


def test_a_note_that_is_damaged_counts_as_none(server, download, tmp_path):
    url = server.put("file", whole(drop=1000), Answer(status=404), whole())
    with pytest.raises(DownloadError):
        download(url)
    (tmp_path / "part.json").write_text("{")
    assert download(url) == FILE


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_a_busy_server_is_asked_again(status, server, download, pauses):
    busy = Answer(status=status)
    assert download(server.put("file", busy, busy, busy, whole())) == FILE
    assert pauses == [1.0, 2.0, 4.0]


def test_the_server_says_how_long_to_wait(server, download, pauses, monkeypatch):
    monkeypatch.setattr("cppcl.datasets.acquisition.download.time.time", lambda: 1_000_000.0)
    later = formatdate(1_000_007, usegmt=True)
    answers = [
        Answer(status=429, headers={"Retry-After": text}) for text in ("7", later, "9999", "x")
    ]
    assert download(server.put("file", *answers, whole())) == FILE
    assert pauses == [7.0, 7.0, 60.0, 8.0]


def test_patience_ends(server, download, pauses):
    url = server.put("file", Answer(status=503))
    with pytest.raises(DownloadError, match="503 Service Unavailable, 5 times in a row"):
        download(url)
    assert len(server.requests) == 5
    assert pauses == [1.0, 2.0, 4.0, 8.0]


def test_a_server_that_never_gets_further_is_given_up(server, download):
    url = server.put("file", whole(drop=1000, ranges=False))
    with pytest.raises(DownloadError, match="5 times in a row"):
        download(url)
    assert len(server.requests) == 6


def test_a_dead_address_is_told(download, server):
    url = server.put("file", whole())
    server.server.server_close()
    with pytest.raises(DownloadError, match="refused"):
        download(url, tries=2)


def test_everything_was_received_but_the_end(server, download, tmp_path):
    """Killed between the last byte and the renaming."""
    url = server.put("file", whole())
    downloader = ResumingDownloader(tmp_path / "part")
    downloader.download(url)
    assert download(url) == FILE
    assert server.sent["/file"] == len(FILE)


def test_more_than_the_file_was_received(server, download, tmp_path):
    url = server.put("file", whole())
    ResumingDownloader(tmp_path / "part").download(url)
    with (tmp_path / "part").open("ab") as file:
        file.write(b"x")
    assert download(url) == FILE


def test_a_disk_without_room_is_told_before(server, download, monkeypatch, tmp_path):
    usage = type("Usage", (), {"free": 200_000})
    monkeypatch.setattr(
        "cppcl.datasets.acquisition.download.shutil.disk_usage", lambda folder: usage
    )
    with pytest.raises(DiskFullError, match=r"0 MB are needed .* CPPCL_DATA"):
        download(server.put("file", whole()))
    assert not (tmp_path / "part").exists()


def test_a_disk_that_fills_up_keeps_what_was_received(server, download, monkeypatch, tmp_path):
    url = server.put("file", whole())
    open_path = Path.open

    class Full(io.FileIO):
        def write(self, block):
            if self.tell() >= 100_000:
                raise OSError(errno.ENOSPC, "No space left on device")
            return super().write(block)

    def open_full(path, mode="r", *arguments, **options):
        if path.name == "part" and mode != "r":
            return Full(path, mode.replace("b", ""))
        return open_path(path, mode, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", open_full)
        with pytest.raises(DiskFullError, match="what was received is kept"):
            download(url)
    kept = (tmp_path / "part").stat().st_size
    assert kept >= 100_000
    assert download(url) == FILE
    assert server.requests[-1] == ("/file", f"bytes={kept}-")


def zipped(content=b"hello"):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a", content)
    return buffer.getvalue()


GOOD = zipped()
MD5 = "md5:" + hashlib.md5(GOOD).hexdigest()


@pytest.fixture
def get(tmp_path, pauses):
    """Obtain an archive into tmp_path; returns its bytes and what was said."""

    def run(*addresses, checksum=None, file="a.zip", remark="ask the authors"):
        said = []
        listener = Listener(log=said.append, patience=pauses.patience(tries=2))
        archive = Archive(file, addresses, checksum=checksum, remark=remark)
        return obtain(archive, tmp_path / "downloads", listener).read_bytes(), said

    return run


def test_the_first_mirror_that_works_is_taken(server, get):
    dead = server.put("dead", Answer(status=404))
    page = server.put("page", Answer(b"<html>", headers={"Content-Type": "text/html"}))
    good = server.put("good", Answer(GOOD))
    unused = server.put("unused", Answer(GOOD))
    content, said = get(dead, page, good, unused, checksum=MD5)
    assert content == GOOD
    assert [path for path, _ in server.requests] == ["/dead", "/page", "/good"]
    assert "404" in said[1]
    assert "web page" in said[3]


def test_all_mirrors_fail(server, get):
    first = server.put("1", Answer(status=404))
    second = server.put("2", Answer(status=503))
    with pytest.raises(DataUnavailableError) as error:
        get(first, second)
    message = str(error.value)
    assert message.startswith("a.zip could not be downloaded\n")
    assert message.index("404") < message.index("503")
    assert message.endswith("ask the authors")


def test_a_wrong_checksum_is_refused_and_the_next_mirror_asked(server, get, tmp_path):
    bad = server.put("bad", Answer(zipped(b"other")))
    with pytest.raises(DataUnavailableError, match=MD5):
        get(bad, checksum=MD5)
    assert not (tmp_path / "downloads" / "a.zip").exists()
    assert get(bad, server.put("good", Answer(GOOD)), checksum=MD5)[0] == GOOD


def test_what_is_no_archive_is_refused(server, get, tmp_path):
    url = server.put("file", Answer(b"quota exceeded"))
    with pytest.raises(DataUnavailableError, match="neither a ZIP nor a TAR archive"):
        get(url)
    assert not (tmp_path / "downloads" / "a.zip").exists()
    assert get(url, file="truth.txt")[0] == b"quota exceeded"


def test_the_checksum_of_the_first_download_is_noted(server, get, tmp_path):
    url = server.put("file", Answer(GOOD))
    get(url)
    folder = tmp_path / "downloads"
    noted = json.loads((folder / "checksums.json").read_text())["a.zip"]
    assert noted["sha256"] == hashlib.sha256(GOOD).hexdigest()
    assert (noted["n_bytes"], noted["address"]) == (len(GOOD), url)
    assert get(url)[0] == GOOD
    assert get(server.put("other", Answer(GOOD)))[0] == GOOD
    assert json.loads((folder / "checksums.json").read_text())["a.zip"] == noted
    assert len(server.requests) == 1  # it is here
    (folder / "a.zip").write_bytes(GOOD[:-1])
    assert get(url)[0] == GOOD  # it was damaged here
    assert len(server.requests) == 2
    (folder / "a.zip").unlink()
    changed = server.put("changed", Answer(zipped(b"other")))
    with pytest.raises(DataUnavailableError, match=r"differs .* remove .a\.zip"):
        get(changed)
    (folder / "checksums.json").write_text("[]")
    assert get(changed)[0] == zipped(b"other")


def test_a_folder_that_cannot_be_written_is_told(server, get, monkeypatch):
    def refuse(*arguments, **options):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("os.makedirs", refuse)
    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(DataUnavailableError, match=r"not allowed to write there .* CPPCL_DATA"):
        get(server.put("file", Answer(GOOD)))
