"""Connections without a request are closed, and no others."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from deployments.web import patience
from tests.deployments.processes import SECONDS
from tests.deployments.serve.serving import in_thread

REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Answer with an empty page when the body has come, or at once at `/hasty`."""
    if scope["type"] != "http":
        return
    while scope["path"] != "/hasty" and (await receive()).get("more_body"):
        pass
    head = {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]}
    await send(head)
    await send({"type": "http.response.body", "body": b""})


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    monkeypatch.setattr(patience, "HEAD_SECONDS", 0.2)
    with in_thread(application, lifespan="off") as port:
        yield port


@pytest.mark.parametrize("sent", [b"", b"GET / HT", REQUEST[:-2]])
def test_a_head_that_does_not_end(sent: bytes, port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as connection:
        connection.sendall(sent)
        assert connection.recv(1) == b""


def test_a_further_head_that_does_not_end(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as connection:
        for _ in range(2):
            connection.sendall(REQUEST)
            assert connection.recv(4096).startswith(b"HTTP/1.1 200")
        connection.sendall(REQUEST[:9])
        assert connection.recv(1) == b""


def test_who_is_silent_between_requests_or_sends_a_body_is_left(port: int) -> None:
    """The first connection would be closed before the second one, which is watched later."""
    post = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\na"
    address = ("127.0.0.1", port)
    with (
        socket.create_connection(address, timeout=SECONDS) as silent,
        socket.create_connection(address, timeout=SECONDS) as slow,
    ):
        silent.sendall(REQUEST)
        assert silent.recv(4096).startswith(b"HTTP/1.1 200")
        slow.sendall(post)
        with socket.create_connection(address, timeout=SECONDS) as closed:
            assert closed.recv(1) == b""
        slow.sendall(b"b")
        assert slow.recv(4096).startswith(b"HTTP/1.1 200")
        silent.sendall(REQUEST)
        assert silent.recv(4096).startswith(b"HTTP/1.1 200")


HASTY = b"POST /hasty HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\na"


def test_a_body_that_does_not_end_after_the_answer(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as connection:
        connection.sendall(HASTY)
        assert connection.recv(4096).startswith(b"HTTP/1.1 200")
        connection.sendall(b"b")
        assert connection.recv(1) == b""


def test_a_body_that_ends_after_the_answer(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as connection:
        for _ in range(2):
            connection.sendall(HASTY)
            assert connection.recv(4096).startswith(b"HTTP/1.1 200")
            connection.sendall(b"bc")


def test_who_is_silent_after_such_a_body_is_not_kept_for_ever() -> None:
    with (
        in_thread(application, lifespan="off", timeout_keep_alive=2) as port,
        socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as connection,
    ):
        connection.sendall(HASTY)
        assert connection.recv(4096).startswith(b"HTTP/1.1 200")
        connection.sendall(b"bc")
        assert connection.recv(1) == b""
