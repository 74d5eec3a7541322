"""Pages under the prefix of a reverse proxy, and what browsers keep of them."""

from __future__ import annotations

import http.client
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest

from deployments.annotate import app as annotate_app
from deployments.serve import app as serve_app
from deployments.web.security import Access, access_for
from tests.deployments.annotate.annotating import JSON, SHOWN, answer, ask, pair_of
from tests.deployments.conftest import Browser
from tests.deployments.serve.serving import in_thread

PREFIX = "/tools/cppcl"
PASSED_ON = ("host", "accept", "content-type", "if-none-match", "cookie", "authorization")


@contextmanager
def proxied(port: int, *, stripped: bool) -> Iterator[str]:
    """Run a reverse proxy of a server; gives the address of its root."""

    class Handler(BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            if not self.path.startswith(PREFIX + "/"):
                self.send_error(404)
                return
            path = self.path.removeprefix(PREFIX) if stripped else self.path
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers = {n: v for n, v in self.headers.items() if n.lower() in PASSED_ON}
            behind = http.client.HTTPConnection("127.0.0.1", port)
            behind.request(
                self.command, path, body or None, headers | {"X-Forwarded-Prefix": PREFIX}
            )
            answered = behind.getresponse()
            content = answered.read()
            behind.close()
            self.send_response(answered.status)
            for name, value in answered.getheaders():
                if name.lower() not in ("transfer-encoding", "content-length", "connection"):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = handle_any  # noqa: N815

        def log_message(self, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as proxy:
        thread = threading.Thread(target=proxy.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{proxy.server_address[1]}{PREFIX}"
        finally:
            proxy.shutdown()
            thread.join()


def addresses(text: str) -> list[str]:
    return re.findall(r'(?:href|src|action)="([^"]+)"', text)


@pytest.mark.parametrize("stripped", [True, False])
def test_the_annotation_page_works_under_a_prefix(session, stripped):
    app = annotate_app.make_app(session, access_for("127.0.0.1", 8765))
    with in_thread(app) as port, proxied(port, stripped=stripped) as root:
        origin = root.removesuffix(PREFIX)
        with httpx.Client() as client:
            start = client.get(f"{root}/", headers=SHOWN).text
            shown = client.get(f"{root}/ask?annotator=A&modality=sketch", headers=SHOWN).text
            found = {*addresses(start), *addresses(shown)}
            assert all(address.startswith(f"{PREFIX}/") for address in found)
            assert f'data-root="{PREFIX}"' in shown
            for address in found - {f"{PREFIX}/answer", f"{PREFIX}/undo", f"{PREFIX}/ask"}:
                assert client.get(origin + address.replace("&amp;", "&")).status_code == 200
            asked = client.get(f"{root}/ask?annotator=A&modality=sketch", headers=JSON).json()[
                "question"
            ]
            assert client.get(origin + asked["left"]["address"]).status_code == 200
            form = {"annotator": "A", "modality": "sketch", "easier": "a", "seconds": "1"}
            form |= {side: asked[side]["id"] for side in ("left", "right")}
            sent = client.post(f"{root}/answer", data=form, headers=SHOWN)
            assert sent.status_code == 303
            assert sent.headers["location"].startswith(f"{PREFIX}/ask?")
            missing = client.get(f"{root}/nothing/here", headers=SHOWN)
            assert f'href="{PREFIX}/"' in missing.text


@pytest.mark.parametrize("stripped", [True, False])
def test_the_search_page_and_its_interface_work_under_a_prefix(live, stripped):
    app = serve_app.make_app(live, access_for("127.0.0.1", 8765))
    with in_thread(app) as port, proxied(port, stripped=stripped) as root:
        origin = root.removesuffix(PREFIX)
        with httpx.Client() as client:
            page = client.get(f"{root}/", headers=SHOWN).text
            assert f'data-root="{PREFIX}"' in page
            for address in addresses(page):
                assert address.startswith(f"{PREFIX}/")
                assert client.get(origin + address).status_code == 200
            example = client.get(f"{root}/api/models").json()["models"][0]["examples"][0]
            answered = client.post(f"{root}/api/search", json={"example": example["row"]}).json()
            for one in (example, *answered["matches"][:2]):
                for address in (one["thumbnail"], one["original"]):
                    assert address.startswith(f"{PREFIX}/")
                    assert client.get(origin + address).status_code == 200
            refused = client.post(f"{root}/api/search", json={}, headers=SHOWN)
            assert refused.status_code == 422
            assert "error" in refused.json()
            assert client.get(f"{root}/openapi.json").json()["servers"] == [{"url": "."}]


def test_a_token_under_a_prefix_leads_to_the_same_page(session):
    app = annotate_app.make_app(session, Access("secret", None, "cookie"))
    with in_thread(app) as port, proxied(port, stripped=True) as root, httpx.Client() as client:
        sent = client.get(f"{root}/ask?token=secret&annotator=A&modality=sketch")
        assert sent.headers["location"] == f"{PREFIX}/ask?annotator=A&modality=sketch"


@pytest.mark.parametrize("prefix", ["//evil.example", '/a"><b', "/a?b", "evil", "/" + "a/" * 20])
def test_what_is_no_prefix_is_not_taken_for_one(browser, prefix):
    page = browser.get("/", headers=SHOWN | {"X-Forwarded-Prefix": prefix}, status=200)
    assert 'href="/static/asking.css"' in page.text


@pytest.mark.parametrize("address", ["/static/annotate.js", "picture"])
def test_what_a_browser_has_is_not_sent_again(browser, address):
    if address == "picture":
        question = browser.get(
            "/ask", params={"annotator": "A", "modality": "sketch"}, headers=JSON
        ).json()["question"]
        address = question["left"]["address"]
    first = browser.get(address, status=200)
    again = browser.get(address, headers={"If-None-Match": f'"x", W/{first.headers["etag"]}'})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    assert browser.get(address, headers={"If-None-Match": '"x"'}).content == first.content


def test_thumbnails_have_tags(live):
    page = Browser(serve_app.make_app(live, access_for("127.0.0.1", 8765)))
    example = page.get("/api/models").json()["models"][0]["examples"][0]
    for address in (example["thumbnail"], example["original"], "/static/serve.js"):
        tag = page.get(address, status=200).headers["etag"]
        assert page.get(address, headers={"If-None-Match": tag}).status_code == 304


def test_asking_by_names_that_are_made_up_keeps_nothing_from_others(browser, session):
    first = ask(browser, "honest")
    for number in range(300):
        ask(browser, f"made up {number}")
    assert not session._shown
    answer(browser, "honest", first)
    second = ask(browser, "honest")
    assert second is not None
    assert ask(browser, "honest") == second
    assert pair_of(ask(browser, "another")) != pair_of(second)


def test_pairs_that_others_look_at_are_asked_where_nothing_else_is_left(browser, session):
    from tests.deployments.annotate.annotating import answer_all

    n_pairs = len(answer_all(browser, "one", lambda shown: "a"))
    for number in range(n_pairs):
        session.question(f"looks {number}", "sketch")
    assert ask(browser, "late") is not None


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 200),
        ({"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}, 200),
        ({}, 200),
    ],
)
def test_another_site_may_lead_here_and_ask_for_nothing_else(browser, headers, status):
    query = {"annotator": "A", "modality": "sketch"}
    browser.get("/ask", params=query, headers=headers, status=status)


@pytest.mark.parametrize(("kind", "line"), [("jsonl", "{}\n"), ("csv", "x,x,a\n")])
def test_an_import_of_many_wrong_lines_is_told_in_short(browser, kind, line):
    head = "sample_a,sample_b,easier\n" if kind == "csv" else ""
    n = 2**19 // len(line)
    sent: Any = browser.post(f"/import?kind={kind}", content=head + line * n, status=200)
    report = sent.json()
    assert (report["n_new"], report["n_wrong"], len(report["problems"])) == (0, n, 100)
    assert len(sent.content) < 20_000
