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
    page.locator("#canvas").scroll_into_view_if_needed()
    box = page.locator("#canvas").bounding_box()
    at = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in points]
    page.mouse.move(*at[0])
    page.mouse.down()
    for point in at[1:]:
        page.mouse.move(*point)
    page.mouse.up()


def put_line(page: Any) -> None:
    """Draw a line at once, so that nothing is searched while it is drawn."""
    line = "densified([{x: 0, y: 0, p: 1}, {x: 1, y: 1, p: 1}])"
    page.evaluate(f"drawing.set({{strokes: [{line}], base: null}})")


def circle(x: float, y: float, radius: float) -> list[Point]:
    angles = np.linspace(0, 2 * math.pi, 25)
    return [(x + radius * math.cos(a), y + radius * math.sin(a)) for a in angles]


def searched(page: Any, act: Callable[[], None]) -> dict[str, Any]:
    """Do something that searches; what the page sent last, what it showed then, and the answer.

    What it showed depends on whether half a stroke was searched by, too.
    """
    answered: list[Any] = []
    page.on("response", heard := lambda response: answered.append(response))
    with page.expect_response("**/api/search"):
        act()
    page.wait_for_selector(IDLE)
    page.remove_listener("response", heard)
    response = [one for one in answered if one.url.endswith("/api/search")][-1]
    assert response.status == 200
    sent = response.request.post_data_json
    return {"shown": sent.pop("shown", []), "sent": sent, "answer": response.json()}


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
    rows = [match["row"] for match in first["answer"]["matches"]]
    second = searched(page, lambda: draw(page, [(0.1, 0.1), (0.9, 0.9)]))
    assert set(second["shown"]) & set(rows), "a drawing that grows keeps its pictures in places"
    again = searched(page, undo.click)
    assert again["sent"] == first["sent"]
    assert again["shown"] == [], "one that is taken back does not"
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


def test_redo_does_again_what_undo_took_back(page):
    first = searched(page, lambda: draw(page, circle(0.4, 0.4, 0.2)))
    second = searched(page, lambda: draw(page, [(0.1, 0.1), (0.9, 0.9)]))
    assert page.locator("#redo").is_disabled()
    assert searched(page, lambda: page.keyboard.press("Control+z"))["sent"] == first["sent"]
    assert searched(page, lambda: page.keyboard.press("Control+Shift+Z"))["sent"] == second["sent"]
    searched(page, page.locator("#undo").click)
    assert searched(page, lambda: page.keyboard.press("Control+y"))["sent"] == second["sent"]
    searched(page, page.locator("#undo").click)
    searched(page, lambda: draw(page, [(0.9, 0.1), (0.1, 0.9)]))
    assert page.locator("#redo").is_disabled()


def test_results_settle_while_a_stroke_is_drawn(page):
    searched(page, lambda: draw(page, circle(0.5, 0.5, 0.3)))
    said = page.inner_text("#status")
    page.evaluate("document.querySelectorAll('#matches li').forEach((one) => { one.old = true; })")
    box = page.locator("#canvas").bounding_box()
    page.mouse.move(box["x"] + 0.2 * box["width"], box["y"] + 0.2 * box["height"])
    with page.expect_response("**/api/search"):
        page.mouse.down()
        page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 0.4 * box["height"], steps=5)
    page.wait_for_selector(BUSY)  # the pen is down
    assert page.inner_text("#status") == said
    page.mouse.up()
    page.wait_for_selector(IDLE)
    shown = page.evaluate("latest.map((match) => match.row)")
    cards = "[...document.querySelectorAll('#matches li')]"
    assert page.evaluate(cards + ".map((one) => one.match.row)") == shown
    # Pictures that stay are not made anew.
    assert page.evaluate(cards + ".filter((one) => one.old).length") > 0


def test_an_example_is_a_picture_once_it_is_drawn_on(page, live):
    found = searched(page, page.locator("#examples button").nth(2).click)
    assert found["sent"]["example"] == live.get(None).examples[2]
    # What is of a gallery that was replaced meanwhile is searched by as a picture.
    page.evaluate("model.key = 'another'")
    again = searched(page, lambda: page.evaluate("search()"))
    assert again["sent"]["picture"].startswith("data:image/png;base64,")
    drawn = searched(page, lambda: draw(page, [(0.1, 0.1), (0.9, 0.2)]))
    assert drawn["sent"]["picture"].startswith("data:image/png;base64,")
    page.locator("#others").click()
    assert page.locator("#examples button").count() == 8


def test_more_like_this_and_not_like_this_move_the_query(page):
    found = searched(page, page.locator("#examples button").nth(2).click)
    rows = [match["row"] for match in found["answer"]["matches"]]
    moved = searched(page, page.locator(".like").nth(5).click)
    assert moved["sent"] == found["sent"] | {"liked": [rows[5]], "key": found["answer"]["key"]}
    (place,) = [m["rank"] for m in moved["answer"]["matches"] if m["row"] == rows[5]]
    assert place < 6
    liked = page.locator(".like[aria-pressed=true]")
    assert liked.get_attribute("aria-label").startswith(f"More like number {place},")
    away = searched(page, page.locator(".unlike").nth(23).click)
    assert len(away["sent"]["disliked"]) == 1
    assert page.locator(".chip").count() == 2
    assert searched(page, page.locator(".chip").nth(1).click)["sent"] == moved["sent"]
    # A new drawing is about something else.
    searched(page, page.locator("#examples button").nth(3).click)
    assert page.locator(".chip").count() == 0


def test_a_picture_is_opened_large(page):
    found = searched(page, page.locator("#examples button").first.click)["answer"]["matches"]
    page.locator("#matches a").first.click()
    page.wait_for_selector("#neighbours img")
    assert page.inner_text("#large-title") == found[0]["title"]
    assert found[0]["name"] in page.inner_text("#large-facts")
    page.wait_for_selector(f"#large-image[src='{found[0]['original']}']")
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#large-title") == found[1]["title"]
    with page.context.expect_page() as waited:
        page.locator("#large-open").click()
    waited.value.wait_for_url("**" + found[1]["original"])
    page.keyboard.press("Escape")
    assert page.is_hidden("#large")
    page.locator("#matches a").nth(1).click()
    page.go_back()
    assert page.is_hidden("#large")
    assert page.locator("#matches li").count() == 24
    page.locator("#matches a").nth(1).click()
    more = searched(page, page.locator("#large-by").click)
    assert more["sent"]["image"] == found[1]["row"]
    assert page.is_hidden("#large")


def test_back_stays_on_the_page_and_an_address_holds_the_query(page, chromium):
    drawn = searched(page, lambda: draw(page, circle(0.5, 0.5, 0.3)))
    searched(page, lambda: draw(page, [(0.1, 0.5), (0.9, 0.5)]))
    rows = [match["row"] for match in drawn["answer"]["matches"]]
    searched(page, page.locator(".like").nth(3).click)
    linked = page.url
    example = searched(page, page.locator("#examples button").first.click)
    back = searched(page, page.go_back)
    assert len(back["sent"]["liked"]) == 1
    before = searched(page, page.go_back)
    assert "liked" not in before["sent"]
    assert page.evaluate("drawing.state.strokes.length") == 2
    page.go_back()
    page.wait_for_selector(EMPTY, state="attached")
    for _ in range(2):
        searched(page, page.go_forward)
    assert searched(page, page.go_forward)["sent"] == example["sent"]
    with opened(chromium, "desktop") as other:
        found = searched(other, lambda: other.goto(linked))
        assert other.evaluate("drawing.state.strokes.length") == 2
        assert found["sent"]["liked"] == back["sent"]["liked"]
        overlap = {match["row"] for match in found["answer"]["matches"][:5]} & set(rows)
        assert overlap
        replaced = linked.replace("key=", "key=0")
        other.goto("about:blank")
        found = searched(other, lambda: other.goto(replaced))
        assert "liked" not in found["sent"]
        assert "were replaced since it was made" in other.inner_text("#error")


def test_favourites_are_kept_in_the_browser(page):
    found = searched(page, page.locator("#examples button").first.click)["answer"]["matches"]
    assert page.is_hidden("#kept")
    page.locator(".keep").nth(2).click()
    assert page.locator(".keep[aria-pressed=true]").count() == 1
    page.reload()
    page.wait_for_selector("#favourites img")
    page.locator("#favourites button").first.click()
    assert page.inner_text("#large-title") == found[2]["title"]
    page.locator("#large-keep").click()
    page.locator("#large-close").click()
    assert page.is_hidden("#kept")


def test_favourites_of_a_gallery_that_was_replaced_are_named_and_removed(page):
    found = searched(page, page.locator("#examples button").first.click)["answer"]["matches"]
    for place in (1, 2):
        page.locator(".keep").nth(place).click()
    page.evaluate("""localStorage.setItem(FAVOURITES,
      JSON.stringify(favourites().map((one, i) => (i ? { ...one, key: "before" } : one))))""")
    page.reload()
    page.locator("#favourites .gone").click()
    said = page.inner_text("#error")
    assert found[1]["title"] in said
    assert "a gallery that was replaced" in said
    page.locator("#forget").click()
    assert page.inner_text("#favourites li") == found[2]["title"] + "\n×"
    assert page.is_hidden("#forget")


@pytest.mark.parametrize("page", ["desktop"], indirect=True)
def test_an_address_or_favourites_of_another_make_do(page, address):
    page.evaluate('localStorage.setItem(FAVOURITES, \'[null, 1, [], {}, {"model": "shapes"}]\')')
    rows = ".".join(map(str, range(5000)))
    query = f"#s=AAAA____&words={'c' * 199}%F0%9F%98%80&liked={rows}&disliked=1.2.77"
    page.goto("about:blank")
    with page.expect_request("**/api/search") as sent:
        page.goto(address + query)
    asked = sent.value.post_data_json
    assert (asked["text"], asked["liked"], asked["disliked"]) == ("c" * 199, list(range(50)), [77])
    page.goto("about:blank")
    page.goto(f"{address}#s={'AAAA____' * 10000}")
    page.wait_for_selector("#examples img")
    page.wait_for_selector(IDLE)
    page.get_by_text("The drawing in this address is too long").wait_for()
    assert page.evaluate("drawing.isEmpty && location.hash === ''")


def test_words_are_in_the_address(page):
    first = searched(page, lambda: draw(page, [(0.2, 0.2), (0.6, 0.6)]))["answer"]["matches"][0]
    given = searched(page, lambda: page.fill("#words", first["title"]))
    assert given["sent"]["text"] == first["title"]
    again = searched(page, page.reload)
    assert again["sent"]["text"] == page.input_value("#words") == first["title"]
    assert "text" not in searched(page, page.go_back)["sent"]
    assert page.input_value("#words") == ""
    page.locator("#clear").click()
    page.fill("#words", "house")
    page.get_by_text("Words alone find nothing").wait_for()


@pytest.mark.parametrize("page", ["desktop"], indirect=True)
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
    assert page.locator("#link").is_disabled()
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
    searched(page, page.locator("#examples button").first.click)
    page.locator(".like").first.focus()
    searched(page, lambda: page.keyboard.press("Enter"))
    assert page.evaluate("document.activeElement.className") == "like"
    page.locator(".unlike").first.focus()
    searched(page, lambda: page.keyboard.press("Enter"))  # this picture goes
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


@pytest.mark.parametrize("page", ["desktop"], indirect=True)
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


@pytest.mark.parametrize("page", ["desktop"], indirect=True)
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


@pytest.mark.parametrize("page", ["desktop"], indirect=True)
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
    put_line(page)
    page.wait_for_selector("#matches li")
    assert len(tries) == 2
    assert page.inner_text("#error") == ""


def test_a_server_that_is_away_is_asked_again(page):
    tries = []

    def away_twice(route: Any) -> None:
        tries.append(route)
        route.abort() if len(tries) < 3 else route.continue_()

    page.route("**/api/search", away_twice)
    put_line(page)
    page.get_by_role("button", name="Try now").click()
    page.wait_for_selector("#matches li")
    assert len(tries) == 3
    assert page.inner_text("#error") == ""


def test_a_slow_answer_is_waited_for_and_seen(page):
    held: list[Any] = []
    page.route("**/api/search", lambda route: held.append(route))
    put_line(page)
    page.wait_for_selector("#status:has-text('Still searching')")
    held[0].continue_()
    page.wait_for_selector("#matches li")
    assert "nearest" in page.inner_text("#status")


def test_svg_and_large_pictures_are_sent_as_the_browser_shows_them(page, tmp_path):
    svg = tmp_path / "drawn.svg"
    svg.write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 20">'
        '<circle cx="20" cy="10" r="8" fill="none" stroke="black"/></svg>'
    )
    sent = searched(page, lambda: page.set_input_files("#file", svg))["sent"]["picture"]
    with Image.open(io.BytesIO(decode_base64(sent))) as image:
        assert image.size == (1024, 512)
        assert image.convert("L").getextrema() == (0, 255)
    rng = np.random.default_rng(0)
    large = tmp_path / "large.png"
    noise = rng.integers(0, 255, (1500, 2500, 3), dtype=np.uint8)
    large.write_bytes(saved(noise, compress_level=1))
    assert large.stat().st_size > 6 * 2**20
    sent = searched(page, lambda: page.set_input_files("#file", large))["sent"]["picture"]
    with Image.open(io.BytesIO(decode_base64(sent))) as image:
        assert image.size == (2048, 1229)
    assert page.inner_text("#error") == ""


def test_nothing_is_wider_than_the_screen_and_buttons_can_be_hit(page):
    searched(page, page.locator("#examples button").first.click)
    for summary in page.locator("summary:visible").all():
        summary.click()
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(wide) == 0
    page.set_viewport_size({"width": 360, "height": 740})
    assert page.evaluate(wide) == 0
    for button in page.locator("button:visible, .button:visible").all():
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
        for summary in page.locator("summary:visible").all():
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
        searched(page, page.locator(".like").first.click)
        page.locator(".keep").nth(1).click()
        look("moved by a picture, another one kept")
        page.locator("#matches a").first.click()
        page.wait_for_selector("#neighbours img")
        look("a picture large")
        page.keyboard.press("Escape")
        good, bad = tmp_path / "drawn.png", tmp_path / "bad.png"
        good.write_bytes(saved(np.eye(40, dtype=np.uint8) * 255))
        bad.write_bytes(b"no picture")
        searched(page, lambda: page.set_input_files("#file", good))
        page.set_input_files("#file", bad)
        page.wait_for_selector("#error:not(:empty)")
        assert page.get_by_label("It is a photograph").is_visible()
        look("a file that is none")


@pytest.mark.parametrize("page", ["desktop"], indirect=True)
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
