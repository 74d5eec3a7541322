"""The search page in a real browser, where Playwright and Chromium are installed."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from PIL import Image

from deployments.serve.app import make_app
from deployments.serve.uploads import decode_base64
from deployments.serve.work import WorkQueue
from deployments.web.security import access_for
from tests.deployments.browsing import SCREENS, accessibility_faults, launched, missing, opened
from tests.deployments.processes import SECONDS
from tests.deployments.serve.serving import in_thread, saved

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())

Point = tuple[float, float]
# The page's policy forbids the evaluation that waiting for a function takes.
IDLE, BUSY = "#results[aria-busy=false]", "#results[aria-busy=true]"
EMPTY, FULL = "#matches:not(:has(li))", "#matches li:nth-child(24)"
SCORES = "[...document.querySelectorAll('.score')].map((score) => score.textContent)"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with launched() as browser:
        yield browser


@pytest.fixture
def address(live) -> Iterator[str]:
    app = make_app(live, access_for("127.0.0.1", 0, "serve"), WorkQueue(seconds=SECONDS))
    with in_thread(app) as port:
        yield f"http://127.0.0.1:{port}/"


@pytest.fixture(params=SCREENS)
def page(request, chromium, address) -> Iterator[Any]:
    """Page as wide as a desktop, light, or as a phone, dark, which asks nobody else."""
    with opened(chromium, request.param) as made:
        asked: list[str] = []
        made.on("request", lambda sent: asked.append(sent.url))
        made.goto(address)
        made.wait_for_selector("#examples img")
        yield made
        assert all(url.startswith((address, "blob:", "data:")) for url in asked)


def draw(page: Any, points: list[Point]) -> None:
    """Draw a stroke; points are shares of the drawing area."""
    box = page.locator("#canvas").bounding_box()
    at = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in points]
    page.mouse.move(*at[0])
    page.mouse.down()
    for point in at[1:]:
        page.mouse.move(*point)
    page.mouse.up()


def circle(x: float, y: float, radius: float) -> list[Point]:
    angles = np.linspace(0, 2 * math.pi, 25)
    return [(x + radius * math.cos(a), y + radius * math.sin(a)) for a in angles]


def searched(page: Any, act: Callable[[], None]) -> dict[str, Any]:
    """Do something that searches; what the page sent and was answered."""
    with page.expect_response("**/api/search") as waited:
        act()
    page.wait_for_selector(IDLE)
    response = waited.value
    assert response.status == 200
    return {"sent": response.request.post_data_json, "answer": response.json()}


def seen(page: Any) -> np.ndarray:
    """What was rendered for the model, (height, width) of 0 to 255."""
    address = page.evaluate("document.getElementById('seen').toDataURL('image/png')")
    with Image.open(io.BytesIO(decode_base64(address))) as image:
        return np.asarray(image.convert("L")).astype(int)


def test_a_drawing_is_answered_and_shown(page):
    found = searched(page, lambda: draw(page, circle(0.5, 0.5, 0.3)))
    scores = page.evaluate(SCORES)
    assert scores == [f"{m['similarity']:.3f}" for m in found["answer"]["matches"]]
    assert len(scores) == 24
    first = found["answer"]["matches"][0]
    said = page.inner_text("#status")
    assert first["title"] in said or said.startswith("Nothing close")
    assert f"{first['similarity']:.3f}" in said
    page.wait_for_load_state("networkidle")
    assert page.evaluate("document.querySelector('#matches img').naturalWidth") == 40
    assert page.locator("#matches img").first.get_attribute("alt") == f"Number 1: {first['title']}"


def test_a_drawing_is_rendered_as_the_models_sketches_are(page, live):
    look = live.get(None).look
    for points in (circle(0.2, 0.2, 0.1), circle(0.5, 0.5, 0.45)):
        page.locator("#clear").click() if page.locator("#clear").is_enabled() else None
        searched(page, lambda points=points: draw(page, points))
        drawn = seen(page)
        assert drawn.shape == (look.height, look.width)
        rows, columns = (np.flatnonzero((drawn < 128).any(axis=axis)) for axis in (1, 0))
        for inked, side, centre in (
            (rows, look.height, look.centre[1]),
            (columns, look.width, look.centre[0]),
        ):
            assert inked[-1] + 1 - inked[0] == pytest.approx(look.extent * side, abs=2)
            assert (inked[0] + inked[-1] + 1) / 2 == pytest.approx(centre * side, abs=1.5)
        # The ink of a circle is its length times the width of its line.
        width = look.line * max(look.width, look.height)
        length = math.pi * (look.extent * side - width)
        assert (255 - drawn).sum() / 255 == pytest.approx(length * width, rel=0.1)


def test_undo_clear_and_eraser(page):
    undo, clear = page.locator("#undo"), page.locator("#clear")
    assert undo.is_disabled()
    assert clear.is_disabled()
    first = searched(page, lambda: draw(page, circle(0.4, 0.4, 0.2)))
    searched(page, lambda: draw(page, [(0.1, 0.1), (0.9, 0.9)]))
    again = searched(page, undo.click)
    assert again["sent"] == first["sent"]
    page.locator("#eraser").click()
    assert page.locator("#eraser").get_attribute("aria-pressed") == "true"
    parted = searched(page, lambda: draw(page, [(0.2, 0.3), (0.2, 0.5)]))
    assert parted["sent"] != first["sent"]
    # The arc under the eraser is gone and no more: it parts the stroke.
    assert page.evaluate("drawing.state.strokes.length") == 2
    assert searched(page, undo.click)["sent"] == first["sent"]
    clear.click()
    page.wait_for_selector(EMPTY, state="attached")
    assert page.is_visible("#hint")
    assert searched(page, undo.click)["sent"] == first["sent"]
    assert page.is_hidden("#hint")


def test_examples_and_more_like_this(page, live):
    found = searched(page, page.locator("#examples button").nth(2).click)
    assert found["sent"]["example"] == live.get(None).examples[2]
    more = searched(page, page.locator(".like").nth(1).click)
    assert more["sent"]["image"] == found["answer"]["matches"][1]["row"]
    # What is of a gallery that was replaced meanwhile is searched by as a picture.
    page.evaluate("model.key = 'another'")
    again = searched(page, lambda: page.evaluate("search()"))
    assert again["sent"]["picture"].startswith("data:image/png;base64,")
    # An example can be drawn on; it is a picture then.
    drawn = searched(page, lambda: draw(page, [(0.1, 0.1), (0.9, 0.2)]))
    assert drawn["sent"]["picture"].startswith("data:image/png;base64,")
    page.locator("#others").click()
    assert page.locator("#examples button").count() == 8


def test_a_click_opens_the_original(page):
    found = searched(page, page.locator("#examples button").first.click)
    with page.context.expect_page() as waited:
        page.locator("#matches a").first.click()
    waited.value.wait_for_url("**" + found["answer"]["matches"][0]["original"])
    width = "async (image) => { await image.decode(); return image.naturalWidth; }"
    assert waited.value.locator("img").evaluate(width) == 40


def test_a_picture_is_uploaded_pasted_or_refused(page, tmp_path):
    drawn = np.full((50, 90, 3), 255, np.uint8)
    drawn[10:40, 20:24] = 0
    good, bad = tmp_path / "drawn.png", tmp_path / "bad.png"
    good.write_bytes(saved(drawn))
    bad.write_bytes(b"no picture")
    uploaded = searched(page, lambda: page.set_input_files("#file", good))
    photo = page.get_by_label("It is a photograph")
    assert searched(page, photo.check)["sent"]["photo"] is True
    page.set_input_files("#file", bad)
    page.wait_for_selector("#error:not(:empty)")
    assert "bad.png is no picture" in page.inner_text("#error")
    page.locator("#clear").click()
    paste = """(content) => {
      const bytes = Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0));
      const data = new DataTransfer();
      data.items.add(new File([bytes], "pasted.png", { type: "image/png" }));
      document.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true }));
    }"""
    content = uploaded["sent"]["picture"]
    pasted = searched(page, lambda: page.evaluate(paste, content))
    assert pasted["sent"] == uploaded["sent"]
    searched(page, lambda: draw(page, [(0.1, 0.1), (0.4, 0.4)]))
    assert photo.is_hidden()
    assert pasted["answer"]["matches"] == uploaded["answer"]["matches"]


def test_keys_draw_and_choose(page):
    page.locator("#canvas").focus()
    page.keyboard.press("Space")
    assert page.inner_text("#status") == "Pen down."
    for key in ("ArrowRight", "ArrowDown", "ArrowLeft"):
        for _ in range(5):
            page.keyboard.press(key)
    found = searched(page, lambda: page.keyboard.press("Space"))
    assert found["answer"]["matches"]
    page.locator("#matches a").first.focus()
    page.keyboard.press("e")
    assert page.locator("#eraser").get_attribute("aria-pressed") == "true"
    page.keyboard.press("u")
    page.wait_for_selector(EMPTY, state="attached")
    found = searched(page, page.locator("#examples button").first.click)
    page.locator(".like").first.focus()
    searched(page, lambda: page.keyboard.press("Enter"))
    assert page.evaluate("document.activeElement.id") == "status"


def test_a_pen_that_presses_draws_wider(page):
    stroke = """(pressure) => {
      const canvas = document.getElementById("canvas");
      const box = canvas.getBoundingClientRect();
      const send = (kind, x, y) => canvas.dispatchEvent(new PointerEvent(kind, {
        pointerId: 7, isPrimary: true, pointerType: "pen", pressure, button: 0, buttons: 1,
        clientX: box.left + x * box.width, clientY: box.top + y * box.height, bubbles: true }));
      canvas.setPointerCapture = () => {};
      send("pointerdown", 0.2, 0.2);
      for (let i = 1; i <= 20; i += 1) send("pointermove", 0.2 + i * 0.03, 0.2 + i * 0.02);
      send("pointerup", 0.8, 0.6);
    }"""
    ink = []
    for pressure in (0.1, 0.5, 0.9):
        searched(page, lambda pressure=pressure: page.evaluate(stroke, pressure))
        ink.append((255 - seen(page)).sum())
        page.locator("#clear").click()
    assert ink[0] < 0.75 * ink[1]
    assert ink[2] > 1.2 * ink[1]


def test_nothing_close_is_said(page, live, monkeypatch):
    from deployments.serve.closeness import Closeness

    monkeypatch.setattr(live.get(None), "closeness", Closeness(1.5, 9, 9, 0.75, 1.0))
    page.reload()
    page.wait_for_selector("#examples img")
    searched(page, page.locator("#examples button").first.click)
    said = page.inner_text("#status")
    assert said.startswith("Nothing close.")
    assert "1.500 or more in 75 % of cases" in said
    assert page.locator("#matches.far li").count() == 24


def test_a_late_answer_is_not_shown(page):
    held = []

    def hold_first(route: Any) -> None:
        if held:
            route.continue_()
        else:
            held.append(route)

    page.route("**/api/search", hold_first)
    draw(page, circle(0.5, 0.5, 0.3))
    page.wait_for_selector(BUSY)
    second = searched(page, lambda: draw(page, [(0.1, 0.5), (0.9, 0.5)]))
    shown = page.evaluate(SCORES)
    assert shown == [f"{m['similarity']:.3f}" for m in second["answer"]["matches"]]
    page.unroute("**/api/search")


def test_a_busy_server_is_asked_again(page):
    tries = []

    def busy_once(route: Any) -> None:
        tries.append(route)
        if len(tries) == 1:
            headers = {"Retry-After": "0.01", "Content-Type": "application/json"}
            route.fulfill(status=503, headers=headers, body='{"error": "busy"}')
        else:
            route.continue_()

    page.route("**/api/search", busy_once)
    draw(page, circle(0.5, 0.5, 0.3))
    page.wait_for_selector("#matches li")
    assert len(tries) == 2
    assert page.inner_text("#error") == ""


def test_nothing_is_wider_than_the_screen_and_buttons_can_be_hit(page):
    searched(page, page.locator("#examples button").first.click)
    for summary in page.locator("summary").all():
        summary.click()
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(wide) == 0
    page.set_viewport_size({"width": 360, "height": 740})
    assert page.evaluate(wide) == 0
    for button in page.locator("button:visible, .button").all():
        assert button.bounding_box()["height"] >= 40
    names = page.evaluate(
        "[...document.querySelectorAll('button, a, select, input, canvas')].filter((one) => "
        "!(one.ariaLabel || one.textContent.trim() || one.labels?.length || "
        "one.querySelector('img[alt]'))).length"
    )
    assert names == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("screen", SCREENS)
def test_axe_finds_no_fault(screen, scheme, chromium, address, live, tmp_path, monkeypatch):
    """Before a search, while it runs, with results, close or not, and after a fault."""
    from deployments.serve.closeness import Closeness

    def look(state: str) -> None:
        assert accessibility_faults(page) == "", state

    with opened(chromium, screen, color_scheme=scheme) as page:
        page.goto(address)
        page.wait_for_selector("#examples img")
        look("at first")
        for summary in page.locator("summary").all():
            summary.click()
        look("all there is to read")
        searched(page, lambda: draw(page, circle(0.5, 0.5, 0.3)))
        look("with results")
        page.route("**/api/search", lambda route: None)  # never answered
        draw(page, [(0.1, 0.5), (0.9, 0.5)])
        page.wait_for_selector(BUSY)
        look("while it searches")
        page.unroute("**/api/search")
        monkeypatch.setattr(live.get(None), "closeness", Closeness(1.5, 9, 9, 0.75, 1.0))
        page.reload()
        page.wait_for_selector("#examples img")
        searched(page, page.locator("#examples button").first.click)
        assert page.inner_text("#status").startswith("Nothing close.")
        look("nothing close")
        good, bad = tmp_path / "drawn.png", tmp_path / "bad.png"
        good.write_bytes(saved(np.eye(40, dtype=np.uint8) * 255))
        bad.write_bytes(b"no picture")
        searched(page, lambda: page.set_input_files("#file", good))
        page.set_input_files("#file", bad)
        page.wait_for_selector("#error:not(:empty)")
        assert page.get_by_label("It is a photograph").is_visible()
        look("a file that is none")


def test_two_hundred_random_strokes(page):
    """Ten at a time, as fast as the page takes them, some with the eraser or taken back."""
    strokes = """(all) => {
      const canvas = document.getElementById("canvas");
      canvas.setPointerCapture = () => {};
      const box = canvas.getBoundingClientRect();
      for (const points of all) {
        const send = (kind, [x, y]) => canvas.dispatchEvent(new PointerEvent(kind, {
          pointerId: 1, isPrimary: true, pointerType: "mouse", button: 0, buttons: 1,
          clientX: box.left + x * box.width, clientY: box.top + y * box.height, bubbles: true }));
        send("pointerdown", points[0]);
        points.slice(1).forEach((point) => send("pointermove", point));
        send("pointerup", points.at(-1));
      }
    }"""
    rng = np.random.default_rng(0)
    for number in range(20):
        several = [rng.uniform(-0.1, 1.1, (int(rng.integers(1, 6)), 2)) for _ in range(10)]
        page.evaluate(strokes, [points.tolist() for points in several])
        page.locator(("#pen", "#eraser", "#pen", "#undo")[number % 4]).click()
    page.wait_for_selector(FULL)
    page.locator("#pen").click()
    page.locator("#clear").click()
    page.wait_for_selector(EMPTY, state="attached")
    found = searched(page, lambda: draw(page, [(0.2, 0.2), (0.7, 0.6)]))
    assert page.evaluate(SCORES) == [f"{m['similarity']:.3f}" for m in found["answer"]["matches"]]
