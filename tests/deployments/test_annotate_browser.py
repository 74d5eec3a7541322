"""The annotation page in a real browser, where Playwright and Chromium are installed."""

from __future__ import annotations

import importlib.util
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
MISSING = importlib.util.find_spec("playwright") is None or CHROMIUM is None

pytestmark = pytest.mark.skipif(MISSING, reason="Playwright or Chromium is not installed")
READY = "#answer[aria-busy=false]"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def serve(session: Any) -> Iterator[Callable[..., Any]]:
    """Start a server of the session on a port, in a thread; ends it after the test."""
    import uvicorn

    from deployments.annotate.app import make_app
    from deployments.web.listening import listening_socket
    from deployments.web.security import access_for

    running = []

    def start(port: int = 0) -> tuple[int, Callable[[], None]]:
        listener = listening_socket("127.0.0.1", port)
        port = listener.getsockname()[1]
        app = make_app(session, access_for("127.0.0.1", port))
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()

        def stop() -> None:
            server.should_exit = True
            thread.join(60)
            listener.close()

        running.append(stop)
        return port, stop

    yield start
    for stop in running:
        stop()


@pytest.fixture(params=["desktop", "phone"])
def page(request: pytest.FixtureRequest, chromium: Any) -> Iterator[Any]:
    """Page as wide as a desktop, light, or as a phone, dark; nothing wrong is logged."""
    phone = request.param == "phone"
    context = chromium.new_context(
        viewport={"width": 360, "height": 740} if phone else {"width": 1280, "height": 900},
        color_scheme="dark" if phone else "light",
        has_touch=phone,
        is_mobile=phone,
    )
    made = context.new_page()
    said: list[str] = []
    made.on("console", lambda message: said.append(message.text))
    made.on("pageerror", lambda error: said.append(str(error)))
    yield made
    context.close()
    # What the browser itself says of a server that is gone, or of an answer that is refused.
    assert [text for text in said if "Failed to load resource" not in text] == []


def begin(page: Any, port: int) -> None:
    page.goto(f"http://127.0.0.1:{port}/")
    page.get_by_label("Your name").fill("Ada")
    page.get_by_role("button", name="Compare sketches").click()
    page.wait_for_selector(READY)


def press(page: Any, key: str, address: str = "**/answer") -> None:
    page.wait_for_selector(READY)
    with page.expect_response(address):
        page.keyboard.press(key)
    page.wait_for_selector(READY)


def shown(page: Any) -> tuple[str, str]:
    return page.input_value("[name=left]"), page.input_value("[name=right]")


def test_keys_answer_skip_and_undo(page: Any, serve: Any, database: Any) -> None:
    port, _ = serve()
    begin(page, port)
    expected = []
    for key, easier in (("ArrowLeft", "a"), ("ArrowRight", "b"), ("s", "skip")):
        expected.append((*shown(page), easier))
        press(page, key)
    assert page.inner_text("#status").startswith("Skipped. Next: class ")
    press(page, "u", "**/undo")
    assert shown(page) == expected.pop()[:2]
    kept = database.answers()
    assert [(a.sample_a, a.sample_b, a.easier) for a in kept] == expected
    assert all(answer.seconds is not None and answer.seconds < 60 for answer in kept)
    assert page.inner_text("#mine") == "2"


def test_pictures_are_buttons(page: Any, serve: Any, database: Any) -> None:
    port, _ = serve()
    begin(page, port)
    with page.expect_response("**/answer"):
        page.get_by_role("button", name="Right sketch Right is easier").click()
    page.wait_for_selector(READY)
    assert [answer.easier for answer in database.answers()] == ["b"]
    for name in ("Left sketch Left is easier", "Skip", "Undo"):
        assert page.get_by_role("button", name=name).is_enabled()


def test_nothing_is_wider_than_the_screen(page: Any, serve: Any) -> None:
    port, _ = serve()
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    page.goto(f"http://127.0.0.1:{port}/")
    assert page.evaluate(wide) == 0
    begin(page, port)
    assert page.evaluate(wide) == 0
    left, right = (page.locator(f"#{side}").bounding_box() for side in ("left", "right"))
    assert left["y"] == right["y"]
    assert left["x"] + left["width"] < right["x"]


def test_an_answer_that_is_not_kept_is_told_and_can_be_given_again(
    page: Any, serve: Any, database: Any
) -> None:
    port, stop = serve()
    begin(page, port)
    before = shown(page)
    stop()
    page.keyboard.press("ArrowLeft")
    page.wait_for_selector("#error:not(:empty)")
    assert "Not saved: the server does not answer" in page.inner_text("#error")
    assert shown(page) == before
    serve(port)
    press(page, "ArrowLeft")
    assert page.inner_text("#error") == ""
    assert [(a.sample_a, a.sample_b) for a in database.answers()] == [before]


def test_a_file_is_imported(page: Any, serve: Any, annotated: Any, tmp_path: Path) -> None:
    port, _ = serve()
    s, t = (sample.id for sample in annotated.sides["sketch"].samples[:2])
    file = tmp_path / "answers.csv"
    file.write_text(f"sample_a,sample_b,easier\n{s},{t},a\n{s},<b>gone</b>,a\n")
    page.goto(f"http://127.0.0.1:{port}/")
    page.get_by_label("Import answers").set_input_files(file)
    page.wait_for_selector("#import-report li")
    said = page.inner_text("#import-report")
    assert "1 answers are new, 0 were here, 1 lines were left out" in said
    assert "line 3: '<b>gone</b>' is no sample" in said


def test_what_was_answered_in_another_window_is_told_and_passed(
    page: Any, serve: Any, session: Any
) -> None:
    port, _ = serve()
    begin(page, port)
    before = shown(page)
    session.answer("Ada", "sketch", *before, "b", 1)
    press(page, "ArrowLeft")
    page.wait_for_function(f"document.querySelector('[name=left]').value != {before[0]!r}")
    assert "Not saved: 'Ada' answered" in page.inner_text("#error")
    assert page.inner_text("#mine") == "1"
