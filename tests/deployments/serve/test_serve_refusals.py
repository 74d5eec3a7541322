"""What the search page refuses, and whom; nothing that is sent breaks it."""

from __future__ import annotations

import asyncio
import base64
import struct
import zlib
from threading import Event
from typing import Any

import numpy as np
import pytest
from PIL import Image

from deployments.serve import app as serve_app
from deployments.serve import uploads
from deployments.serve.work import BusyError, WorkQueue
from deployments.web.security import access_for
from tests.deployments.serve.serving import encoded, saved

DRAWN = np.full((40, 60, 3), 255, np.uint8)
DRAWN[10:30, 15:18] = 0
SEARCH = "/api/search"


def png(width: int, height: int, rows: bytes = b"") -> bytes:
    """PNG whose head says this size, whatever its rows are."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + content))
        return struct.pack(">I", len(content)) + kind + content + check

    head = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    data = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + data


SVG = b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9">%s</svg>'
ENTITY = b'<!DOCTYPE svg [<!ENTITY e SYSTEM "file:///etc/passwd">]>' + SVG % b"<text>&e;</text>"
JPEG = saved(DRAWN, "JPEG")
REFUSED = {
    "nothing": (b"", 415, "none of PNG"),
    "text": (b"no picture", 415, "none of PNG"),
    "SVG": (SVG % b"<rect/>", 415, "SVG or other XML"),
    "SVG with a script": (SVG % b"<script>alert(1)</script>", 415, "SVG or other XML"),
    "SVG with an external entity": (ENTITY, 415, "SVG or other XML"),
    "SVG of UTF-16": ("<svg/>".encode("utf-16"), 415, "SVG or other XML"),
    "PDF": (b"%PDF-1.4\n%%EOF", 415, "none of PNG"),
    "EPS": (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", 415, "none of PNG"),
    "TIFF": (saved(DRAWN, "TIFF"), 415, "none of PNG"),
    "PNG cut off": (saved(DRAWN)[:-30], 422, "truncated"),
    "JPEG cut off": (JPEG[:-20], 422, "truncated"),
    "PNG of other rows": (png(9, 9, b"\xff"), 422, "truncated"),
    "bomb": (png(100_000, 100_000), 413, "100000 x 100000|too many"),
    "large": (png(5000, 4000, bytes(4000 * 626)), 413, "5000 x 4000 pixels"),
    "long": (png(20_000, 1), 413, "20000 x 1 pixels"),
    "of no size": (png(0, 0), 415, "damaged"),
    "of one colour": (saved(np.full((9, 9, 3), 255, np.uint8)), 422, "of one colour"),
    "JPEG of many scans": (JPEG + 65 * b"\xff\xda", 422, "65|64 scans"),
    "floats": (saved(Image.fromarray(np.ones((9, 9), np.float32)), "TIFF"), 415, "none of"),
}


class TestPictures:
    @pytest.mark.parametrize("kind", REFUSED)
    def test_what_is_no_picture_or_too_much(self, kind, search_page):
        content, status, word = REFUSED[kind]
        response = search_page.post(SEARCH, json={"picture": encoded(content)}, status=status)
        assert any(part in response.json()["error"] for part in word.split("|"))

    @pytest.mark.parametrize(
        ("form", "options"),
        [
            ("PNG", {}),
            ("JPEG", {}),
            ("JPEG", {"progressive": True}),
            ("WEBP", {"lossless": True}),
            ("GIF", {}),
            ("GIF", {"save_all": True, "append_images": [Image.new("RGB", (60, 40))]}),
            ("BMP", {}),
        ],
    )
    def test_what_is_taken(self, form, options, search_page):
        response = search_page.post(
            SEARCH, json={"picture": encoded(saved(DRAWN, form, **options)), "k": 2}, status=200
        )
        expected = search_page.post(SEARCH, json={"picture": encoded(saved(DRAWN)), "k": 2})
        if form != "JPEG":
            assert response.json()["matches"] == expected.json()["matches"]

    def test_two_hundred_damaged_uploads(self, search_page):
        """Never a 5xx: cut, flipped, mixed up, and bodies that are no JSON."""
        rng = np.random.default_rng(0)
        good = [saved(DRAWN, form) for form in uploads.FORMATS]
        statuses = []
        for number in range(200):
            content = bytearray(good[number % len(good)])
            for _ in range(int(rng.integers(1, 8))):
                how, place = rng.integers(4), int(rng.integers(len(content) or 1))
                if how == 0:
                    del content[place:]
                elif how == 1 and content:
                    content[place % len(content)] ^= 1 << int(rng.integers(8))
                elif how == 2:
                    content[place:place] = rng.bytes(int(rng.integers(1, 40)))
                else:
                    content[place : place + 4] = struct.pack(">I", int(rng.integers(2**32)))
            body: Any = f'{{"picture": "{encoded(bytes(content))}"}}'.encode()
            if number % 10 == 0:
                body = body[: int(rng.integers(len(body)))] + rng.bytes(3)
            statuses.append(search_page.post(SEARCH, content=body).status_code)
        assert set(statuses) <= {200, 413, 415, 422}
        assert statuses.count(200) < 150

    def test_a_photograph_without_a_sketch(self, search_page):
        dark = np.full((90, 90, 3), 20, np.uint8)
        dark[:5] = 30
        response = search_page.post(
            SEARCH, json={"picture": encoded(saved(dark)), "photo": True}, status=422
        )
        assert "the picture" in response.json()["error"]

    def test_the_file_may_not_be_large(self, search_page):
        content = bytes(uploads.LARGEST_FILE + 1)
        search_page.post(SEARCH, json={"picture": encoded(content)}, status=413)
        with pytest.raises(uploads.UploadError, match="larger than 6 MiB"):
            uploads.decode_upload(content, longest_side=40)
        with pytest.raises(uploads.UploadError, match="larger than 6 MiB"):
            uploads.decode_base64("A" * serve_app.LARGEST_BODY)


class TestRequests:
    @pytest.mark.parametrize(
        ("body", "word"),
        [
            (b"", "Invalid JSON"),
            (b"\xff\xfe", "Invalid JSON"),
            (b"[]", "valid dictionary|Input should be an object"),
            (b"{}", "not none"),
            (b'{"picture": "QQ==", "example": 1}', "not picture and example"),
            (b'{"picture": 5}', "picture: "),
            (b'{"picture": "%%%"}', "not sent as base64"),
            (b'{"picture": "QQ"}', "not sent as base64"),
            ('{"picture": "ä"}'.encode(), "not sent as base64"),
            (b'{"picture": "data:image/svg+xml,<svg/>"}', "not sent as base64"),
            (b'{"picture": "file:///etc/passwd"}', "not sent as base64"),
            (b'{"picture": "QQ==", "k": 0}', "k: "),
            (b'{"picture": "QQ==", "k": 101}', "k: "),
            (b'{"picture": "QQ==", "path": "/etc/passwd"}', "path: "),
            (b'{"picture": "QQ==", "model": "../shapes"}', "model='../shapes' must be one of"),
            (b'{"example": 1, "photo": true}', "photo needs a picture"),
            (b'{"example": -1}', "example: "),
            (b'{"example": 99999}', "none of the example sketches"),
            (b'{"image": 99999}', "image=99999 is no picture"),
            (b'{"image": 1e400}', "image: "),
            (b'{"a":' * 3000, "JSON"),
        ],
    )
    def test_malformed_questions(self, body, word, search_page):
        response = search_page.post(SEARCH, content=body, status=422)
        assert any(part in response.json()["error"] for part in word.split("|")), response.text

    def test_rows_of_what_is_served_no_more(self, search_page):
        response = search_page.post(SEARCH, json={"image": 1, "key": "0" * 32}, status=409)
        assert "anew meanwhile" in response.json()["error"]

    @pytest.mark.parametrize(
        "address",
        [
            "/pictures/{key}/image/60",
            "/pictures/{key}/image/-1",
            "/pictures/{key}/other/1",
            "/pictures/{key}/__class__/1",
            "/pictures/00000000000000000000000000000000/image/1",
            "/originals/../image/1",
            "/originals/{key}/image/..%2f..%2fetc%2fpasswd",
            "/originals/{key}/image/1/../../../x",
            "/static/../app.py",
            "/static/..%2fapp.py",
            "/static//etc/passwd",
            "/templates/search.html",
            "/docs",
            "/redoc",
            "/store",
        ],
    )
    def test_nothing_else_is_served(self, address, search_page, live):
        key = live.get(None).reference.key
        response = search_page.get(address.format(key=key))
        assert response.status_code in (404, 422)

    def test_sketches_beyond_those_of_the_data_set_are_not_served(self, search_page, live):
        model = live.get(None)
        for kind in ("pictures", "originals"):
            place = f"/{kind}/{model.reference.key}/sketch"
            for row, status in ((model.examples[0], 200), (59, 200), (60, 404)):
                assert search_page.get(f"{place}/{row}").status_code == status


class TestStrangers:
    def test_a_failure_carries_them_too(self, search_page, live, monkeypatch):
        monkeypatch.setattr(type(live.get(None)), "like", lambda *_: 1 / 0)
        response = search_page.post(SEARCH, json={"image": 1}, status=500)
        assert "division" not in response.text
        assert "default-src 'none'" in response.headers["content-security-policy"]
        assert response.headers["cache-control"] == "no-store"

    def test_a_program_shows_the_token_in_a_header(self, live):
        from tests.deployments.conftest import Browser

        access = access_for("192.0.2.1", 9000, "serve")
        stranger = Browser(serve_app.make_app(live, access), base="http://192.0.2.1:9000")
        refused = stranger.get("/healthz", status=401)
        assert "that cppcl serve printed" in refused.text
        for header, status in (
            (f"Bearer {access.token}", 200),
            (f"bearer {access.token}", 200),
            ("Bearer x", 401),
            ("Bearer", 401),
            (f"Basic {access.token}", 401),
        ):
            stranger.get("/healthz", headers={"Authorization": header}, status=status)


class TestBusy:
    def test_what_is_too_much_at_once_is_told_to_come_again(self, live):
        from tests.deployments.conftest import Browser

        work = WorkQueue(n_threads=1, n_waiting=1)
        page = Browser(serve_app.make_app(live, access_for("127.0.0.1", 1), work))
        go, begun = Event(), Event()

        async def fill_and_ask() -> Any:
            held = [asyncio.create_task(work.run(wait_for, begun, go)) for _ in range(2)]
            await asyncio.to_thread(begun.wait)
            assert not work.idle.is_set()
            response = await page.client.post(SEARCH, json={"image": 1})
            go.set()
            await asyncio.gather(*held)
            return response

        assert work.idle.is_set()
        response = asyncio.run(fill_and_ask())
        assert work.idle.wait(60)
        assert response.status_code == 503
        assert response.headers["retry-after"] == "1"
        assert "too many searches at once" in response.json()["error"]
        assert page.post(SEARCH, json={"image": 1}).status_code == 200

    def test_what_takes_too_long_is_given_up_but_keeps_its_place(self):
        work, go, begun = WorkQueue(n_threads=1, n_waiting=0, seconds=0.5), Event(), Event()

        async def ask() -> None:
            with pytest.raises(BusyError, match=r"took more than 0\.5 s"):
                await work.run(wait_for, begun, go)
            assert not work.idle.is_set()
            with pytest.raises(BusyError, match="too many"):
                await work.run(len, "")
            go.set()
            while True:
                try:
                    assert await work.run(len, "ab") == 2
                    return
                except BusyError:
                    await asyncio.sleep(0)

        asyncio.run(asyncio.wait_for(ask(), 30))


def wait_for(begun: Event, go: Event) -> None:
    begun.set()
    assert go.wait(60)


def test_a_changed_file_is_not_shown(served_place, live, tmp_path):
    from cppcl.errors import PictureError
    from deployments.web.pictures import PictureFile, PictureReader

    content = saved(DRAWN)
    (tmp_path / "a.png").write_bytes(content)
    pictures = PictureReader(tmp_path, {("image", 0): PictureFile("a.png", "0" * 64)})
    for show in (pictures.content, pictures.__getitem__):
        with pytest.raises(PictureError, match="changed since the experiment was run"):
            show(("image", 0))


def test_base64_is_that_of_the_standard():
    content = bytes(range(256))
    assert uploads.decode_base64(base64.b64encode(content).decode()) == content
    with pytest.raises(uploads.UploadError, match="base64"):
        uploads.decode_base64(base64.urlsafe_b64encode(b"\xff\xfe\xfd").decode())


def test_pictures_are_reduced_as_the_model_wants():
    large = np.kron(DRAWN, np.ones((20, 20, 1), np.uint8))
    assert uploads.decode_upload(saved(large), longest_side=40).shape == (27, 40, 3)
