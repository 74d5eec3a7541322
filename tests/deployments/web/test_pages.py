"""What the search page and the annotation page have in common: bodies, HEAD, refusals."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple

import pytest
from fastapi import Request
from starlette.exceptions import HTTPException

from deployments.annotate import app as annotate_app
from deployments.serve import app as serve_app
from deployments.web import requests
from deployments.web.requests import read_body
from deployments.web.security import Access, access_for
from tests.deployments.annotate.annotating import SHOWN
from tests.deployments.conftest import Browser
from tests.deployments.processes import SECONDS
from tests.deployments.serve.serving import in_thread

TAKEN_IN = {
    "search": ["/api/search"],
    "annotate": ["/answer", "/undo", "/import?kind=csv", "/import?kind=jsonl"],
}
SHOWS = {
    "search": ["/", "/static/serve.js", "/openapi.json", "/api/models", "/metrics"],
    "annotate": ["/", "/static/annotate.js", "/ask?annotator=A&modality=sketch", "/answers.csv"],
}


class Page(NamedTuple):
    """One of the pages."""

    make: Callable[[Access], Any]
    takes_in: list[str]
    shows: list[str]

    def open(self, access: Access | None = None) -> Browser:
        return Browser(self.make(access or access_for("127.0.0.1", 8765)))


@pytest.fixture(params=["search", "annotate"])
def page(request) -> Page:
    name = request.param
    if name == "search":
        live = request.getfixturevalue("live")
        make: Any = lambda access: serve_app.make_app(live, access)  # noqa: E731
    else:
        session = request.getfixturevalue("session")
        make = lambda access: annotate_app.make_app(session, access)  # noqa: E731
    return Page(make, TAKEN_IN[name], SHOWS[name])


class TestBodies:
    def test_one_that_is_said_to_be_too_large_is_not_waited_for(self, page):
        with in_thread(page.make(access_for("127.0.0.1", 0))) as port:
            for address in page.takes_in:
                with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as connection:
                    head = f"POST {address} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                    connection.sendall(f"{head}Content-Length: {10**12}\r\n\r\n".encode())
                    assert connection.recv(4096).startswith(b"HTTP/1.1 413 ")

    def test_one_that_does_not_end(self, page, monkeypatch):
        monkeypatch.setattr(serve_app, "BODY_SECONDS", 0.05)
        monkeypatch.setattr(requests, "FORM_SECONDS", 0.05)
        monkeypatch.setattr(annotate_app, "IMPORT_SECONDS", 0.05)

        async def endless() -> AsyncIterator[bytes]:
            yield b"a"
            await asyncio.Event().wait()

        for address in page.takes_in:
            response = page.open().post(address, content=endless())
            assert response.status_code == 408
            assert "0.05 s" in response.json()["error"]

    @pytest.mark.parametrize("coding", ["gzip", "GZIP", "br", "identity, deflate", "x y z"])
    def test_one_that_is_compressed_is_refused_by_name(self, coding, page):
        for address in page.takes_in:
            headers = {"Content-Encoding": coding}
            response = page.open().post(address, content=gzip.compress(b"{}"), headers=headers)
            assert response.status_code == 415
            assert coding.split(", ")[-1].lower() in response.json()["error"]
            assert response.headers["accept-encoding"] == "identity"

    @pytest.mark.parametrize("coding", ["identity", "Identity", ""])
    def test_identity_is_no_compression(self, coding, page):
        for address in page.takes_in:
            response = page.open().post(address, headers={"Content-Encoding": coding})
            assert response.status_code in (200, 422)


class TestHead:
    def test_it_is_answered_as_get_is_without_a_body(self, page):
        browser = page.open()
        for address in (*page.shows, "/favicon.ico", "/nowhere"):
            got, head = (browser.request(m, address, headers=SHOWN) for m in ("GET", "HEAD"))
            assert head.status_code == got.status_code
            assert head.content == b""
            # What is counted may have grown by a digit.
            varies = {"content-length"} if address == "/metrics" else set()
            kept = head.headers.keys() - varies
            assert {n: head.headers[n] for n in kept} == {n: got.headers[n] for n in kept}
        assert browser.request("HEAD", "/").headers["content-length"] != "0"

    def test_it_is_named_where_get_is(self, page):
        browser = page.open()
        for address in (*page.shows, *page.takes_in):
            response = browser.request("DELETE", address, status=405)
            allowed = set(response.headers["allow"].split(", "))
            assert allowed == ({"POST"} if address in page.takes_in else {"GET", "HEAD"})
        for address in page.takes_in:
            assert browser.request("HEAD", address).status_code == 405


class TestRefusals:
    def test_programs_get_json_and_browsers_what_can_be_shown(self, page):
        mine, theirs = access_for("127.0.0.1", 8765), access_for("192.0.2.1", 9000)
        (address, *_), (_, *shown) = page.takes_in, page.shows
        cases: list[tuple[int, Access, str, str, dict[str, str]]] = [
            (421, mine, "GET", shown[0], {"Host": "evil.example"}),
            (421, mine, "POST", address, {"Host": "evil.example"}),
            (403, mine, "POST", address, {"Origin": "https://evil.example"}),
            (403, mine, "POST", address, {"Sec-Fetch-Site": "cross-site"}),
            (401, theirs, "GET", shown[0], {}),
            (401, theirs, "POST", address, {}),
            (404, mine, "GET", "/nowhere", {}),
            (405, mine, "DELETE", "/", {}),
        ]
        for status, access, method, place, headers in cases:
            for accept in ("*/*", "application/json"):
                browser = page.open(access)
                response = browser.request(
                    method, place, headers={"Accept": accept, **headers}, status=status
                )
                assert response.headers["content-type"] == "application/json"
                assert response.json().keys() == {"error"}
                assert response.headers["cache-control"] == "no-store"
            response = page.open(access).request(method, place, headers={**SHOWN, **headers})
            assert response.status_code == status
            if place.startswith("/api/"):
                assert response.json()["error"]
            else:
                assert response.headers["content-type"].startswith("text/")
                assert "{" not in response.text
        assert "www-authenticate" in page.open(theirs).get("/").headers

    def test_every_answer_carries_the_headers(self, page):
        browser, stranger = page.open(), page.open(access_for("192.0.2.1", 9000))
        answers = [*map(browser.get, (*page.shows, "/nowhere")), stranger.get("/")]
        for answer in (*answers, browser.post(page.takes_in[0], content=b"{}")):
            policy = answer.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["x-frame-options"] == "DENY"
        assert browser.get("/").headers["cache-control"] == "no-store"

    def test_pages_keep_to_their_policy(self, page):
        for address in page.shows:
            text = page.open().get(address).text
            if "<html" in text:
                assert "style=" not in text
                assert " onclick" not in text
                assert "http" not in text.replace("http-equiv", "")
                assert text.count("<script") == text.count('<script src="/static/') > 0


def test_numbers_and_truth_are_what_they_are_and_not_taken_for_one_another(search_page):
    picture = serve_app.documented.SKETCH
    for k in (3, 3.0):  # to JSON, both are integers
        answer = search_page.post("/api/search", json={"picture": picture, "k": k}).json()
        assert len(answer["matches"]) == 3
    wrong: list[dict[str, Any]] = [
        *({"picture": picture, "k": k} for k in (True, "3", 3.5, None, [3])),
        *({"picture": picture, "photo": photo} for photo in (1, "yes", "true", None)),
        *({"image": row} for row in (True, "1", 1.5)),
        *({"example": row} for row in (False, "0", 0.5)),
        *({"picture": picture, name: 5} for name in ("model", "key")),
        {"picture": 5},
    ]
    for asked in wrong:
        response = search_page.post("/api/search", content=json.dumps(asked))
        (name, *_) = [n for n in asked if n != "picture" or len(asked) == 1]
        assert response.status_code == 422, asked
        assert response.json()["error"].startswith(f"{name}: Input should be"), asked


def test_whoever_leaves_while_sending_is_no_failure_of_the_server():
    messages: list[dict[str, Any]] = [
        {"type": "http.request", "body": b"{", "more_body": True},
        {"type": "http.disconnect"},
    ]

    async def receive() -> Any:
        return messages.pop(0)

    request = Request({"type": "http", "method": "POST", "headers": []}, receive)
    with pytest.raises(HTTPException, match="connection") as raised:
        asyncio.run(read_body(request, 100, 5.0))
    assert raised.value.status_code == 400
