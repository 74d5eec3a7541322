"""``cppcl serve`` as a process: what it says, what it refuses, how it ends."""

from __future__ import annotations

import re
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import numpy as np
import pytest

from tasks.model import Model
from tasks.workspace import Workspace
from tests.deployments.processes import SECONDS
from tests.deployments.serve.serving import encoded, saved, serving, train_shapes


def test_it_searches_and_ends_in_order(served_place):
    model = Model(served_place, served_place.find_model("shapes"))
    key = model.codes.reference.key
    path = model.pictures.root / model.pictures.table.column("paths", "sketch")[7]
    expected = [match.similarity for match in model.search(path, 24)]
    with (
        serving(served_place, "shapes", key) as (process, address),
        httpx.Client(base_url=address, timeout=SECONDS) as client,
    ):
        assert "Search by drawing" in client.get("/").text
        for name in ("shapes", key):
            asked = {"model": name, "picture": encoded(path.read_bytes())}
            answer = client.post("/api/search", json=asked).json()
            assert [m["similarity"] for m in answer["matches"]] == expected
        assert client.get("/healthz").json()["models"].keys() == {"shapes", key}
        process.terminate()
        _, said = process.communicate(timeout=SECONDS)
        assert process.returncode == 128 + signal.SIGTERM
        assert "shapes: 60 pictures, " in said
        assert "what was finished is kept" in said
        assert "Traceback" not in said


def test_an_open_address_comes_with_a_token(served_place):
    with serving(served_place, "shapes", "--host", "0.0.0.0") as (_, address):
        found = re.fullmatch(r"http://[^/]+:(\d+)/\?token=([\w-]{32})", address)
        with httpx.Client(base_url=f"http://127.0.0.1:{found[1]}", timeout=SECONDS) as client:
            assert client.get("/healthz").status_code == 401
            bearer = {"Authorization": f"Bearer {found[2]}"}
            assert client.get("/healthz", headers=bearer).status_code == 200
            assert client.get(f"/?token={found[2]}", follow_redirects=True).status_code == 200
            assert client.post("/api/search", json={"image": 1}).status_code == 200


def test_a_newer_run_is_served_without_a_request_that_fails(
    tmp_path, draw_pictures, inline_blocks
):
    place = Workspace(tmp_path / "workspace")
    train_shapes(place, draw_pictures(tmp_path / "shapes", per_class=4))
    with (
        serving(place, "shapes") as (_, address),
        httpx.Client(base_url=address, timeout=SECONDS) as client,
    ):
        old = client.get("/healthz").json()["models"]["shapes"]["key"]
        newer = train_shapes(place, draw_pictures(tmp_path / "more", per_class=6)).key
        keys, end = [old], time.monotonic() + SECONDS
        while keys[-1] == old and time.monotonic() < end:
            answer = client.post("/api/search", json={"image": 1, "k": 1})
            assert answer.status_code == 200
            keys.append(answer.json()["key"])
            assert client.get(answer.json()["matches"][0]["thumbnail"]).status_code == 200
        assert keys[-1] == newer
        before = client.get(f"/pictures/{old}/image/1")
        assert before.status_code == 200


def test_fifty_at_once_are_answered_or_told_to_come_again(served_place):
    drawn = np.full((40, 40, 3), 255, np.uint8)
    drawn[5:30, 20:23] = 0
    asked = {"picture": encoded(saved(drawn))}
    with (
        serving(served_place, "shapes") as (_, address),
        httpx.Client(base_url=address, timeout=60) as client,
        ThreadPoolExecutor(50) as pool,
    ):
        futures = [pool.submit(client.post, "/api/search", json=asked) for _ in range(50)]
        answers = [future.result() for future in futures]
        assert {answer.status_code for answer in answers} <= {200, 503}
        assert any(answer.status_code == 200 for answer in answers)
        assert all(a.headers["retry-after"] == "1" for a in answers if a.status_code == 503)
        assert client.post("/api/search", json=asked).status_code == 200


def test_what_is_wrong_is_said(served_place, cppcl, tmp_path):
    unknown = cppcl("serve", "nothing", "--workspace", served_place.root, code=2)
    assert "no run 'nothing'" in unknown.stderr
    twice = cppcl("serve", "shapes", "shapes", "--workspace", served_place.root, code=2)
    assert "given twice" in twice.stderr
    port = cppcl("serve", "shapes", "--port", 70000, "--workspace", served_place.root, code=2)
    assert "--port 70000" in port.stderr
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        result = cppcl("serve", "shapes", "--port", number, "--workspace", served_place.root)
    assert result.code == 1
    assert "is cppcl serve running already?" in result.stderr


@pytest.mark.parametrize(
    "sent",
    [b"\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\x00", b"POST /api/search\r\n\r\n"],
)
def test_what_is_no_http_is_refused(sent, served_server):
    url = httpx.URL(served_server)
    with socket.create_connection((url.host, url.port or 80), timeout=SECONDS) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        said = connection.recv(65536)
    assert said == b"" or said.startswith(b"HTTP/1.1 4")
    assert httpx.get(f"{served_server}healthz").status_code == 200


@pytest.fixture(scope="module")
def served_server(served_place) -> Any:
    """Address of a process."""
    with serving(served_place, "shapes") as (_, address):
        yield address
