"""The annotation page in a real browser."""

from __future__ import annotations

import csv
import json
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest

from deployments.annotate.app import make_app
from deployments.web.security import access_for
from tests.deployments.annotate.annotating import serving
from tests.deployments.browsing import (
    SCREENS,
    accessibility_faults,
    artifacts,
    launched,
    missing,
    opened,
)
from tests.deployments.processes import SECONDS
from tests.deployments.serve.serving import in_thread

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())
READY = "#answer[aria-busy=false]"
TABLES_FIT = (
    "[...document.querySelectorAll('.scroll')].every((one) => one.scrollWidth <= one.clientWidth)"
)
KEYS = {"ArrowLeft": "a", "ArrowRight": "b", "s": "skip", "u": "undo"}
# The server's word is there: an error, or a number of answers. Then, which pair is shown.
HEARD = """([ready, n]) => {
  const form = document.querySelector(ready), error = document.querySelector("#error").textContent;
  const lost = error.startsWith("Not saved");
  return form && (lost || document.querySelector("#mine").textContent === n)
    ? [lost, form.elements.left.value, form.elements.right.value] : null;
}"""
N_ANSWERS = 80
Click = tuple[str, str, str]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with launched() as browser:
        yield browser


@pytest.fixture
def serve(session) -> Iterator[Callable[..., tuple[int, Callable[[], None]]]]:
    """Start a server of the session on a port, in a thread; ends it after the test."""
    app = make_app(session, access_for("127.0.0.1", 0))
    with ExitStack() as running:

        def start(port: int = 0) -> tuple[int, Callable[[], None]]:
            one = running.enter_context(ExitStack())
            return one.enter_context(in_thread(app, port)), one.close

        yield start


@pytest.fixture(params=SCREENS)
def page(request, chromium) -> Iterator[Any]:
    """Page as wide as a desktop, light, or as a phone, dark; nothing wrong is logged."""
    with opened(chromium, request.param) as made:
        yield made


def begin(page: Any, port: int, name: str = "Ada", ready: str = READY) -> None:
    page.goto(f"http://127.0.0.1:{port}/")
    page.get_by_label("Your name").fill(name)
    page.get_by_role("button", name="Compare sketches").click()
    page.wait_for_selector(ready)


def press(page: Any, key: str, address: str = "**/answer") -> None:
    page.wait_for_selector(READY)
    with page.expect_response(address):
        page.keyboard.press(key)
    page.wait_for_selector(READY)


def shown(page: Any) -> tuple[str, str]:
    return page.input_value("[name=left]"), page.input_value("[name=right]")


def test_keys_answer_skip_and_undo(page, serve, database):
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


def test_pictures_are_buttons(page, serve, database):
    port, _ = serve()
    begin(page, port)
    with page.expect_response("**/answer"):
        page.get_by_role("button", name="Right sketch Right is easier").click()
    page.wait_for_selector(READY)
    assert [answer.easier for answer in database.answers()] == ["b"]
    for name in ("Left sketch Left is easier", "Skip", "Undo"):
        assert page.get_by_role("button", name=name).is_enabled()


def test_nothing_is_wider_than_the_screen(page, serve):
    port, _ = serve()
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    for width in (page.viewport_size["width"], 320):
        page.set_viewport_size({"width": width, "height": 740})
        page.goto(f"http://127.0.0.1:{port}/")
        assert page.evaluate(wide) == 0
        begin(page, port)
        assert page.evaluate(wide) == 0
        left, right = (page.locator(f"#{side}").bounding_box() for side in ("left", "right"))
        assert left["y"] == right["y"]
        assert left["x"] + left["width"] < right["x"]


def test_axe_finds_no_fault(page, serve, session):
    port, _ = serve()
    begin(page, port)
    assert accessibility_faults(page) == ""
    press(page, "ArrowLeft")
    assert accessibility_faults(page) == ""
    page.goto(f"http://127.0.0.1:{port}/")
    assert accessibility_faults(page) == ""
    while (question := session.question("Ada", "sketch")) is not None:
        session.answer("Ada", "sketch", question.left.id, question.right.id, "a", 1)
    begin(page, port, ready="text=No pair is left")
    assert accessibility_faults(page) == ""
    page.goto(f"http://127.0.0.1:{port}/nowhere")
    assert accessibility_faults(page) == ""


@pytest.mark.parametrize("page", ["desktop"], indirect=True)
def test_an_answer_that_is_not_kept_is_told_and_can_be_given_again(page, serve, database):
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


@pytest.mark.parametrize("page", ["desktop"], indirect=True)
def test_only_a_skip_counts_while_a_picture_cannot_be_shown(page, serve, database):
    port, _ = serve()
    page.route("**/picture?*", lambda route: route.abort(), times=1)
    begin(page, port)
    before = shown(page)
    assert page.inner_text("#error") == "A picture cannot be shown. Load the page again, or skip."
    page.keyboard.press("ArrowLeft")
    press(page, "s")
    assert page.inner_text("#error") == ""
    press(page, "ArrowRight")
    kept = [(a.sample_a, a.sample_b, a.easier) for a in database.answers()]
    assert [(*before, "skip"), "b"] == [kept[0], kept[1][2]]


@pytest.mark.parametrize("page", ["desktop"], indirect=True)
def test_a_file_is_imported(page, serve, annotated, tmp_path):
    port, _ = serve()
    s, t = (sample.id for sample in annotated.modalities["sketch"].samples[:2])
    file = tmp_path / "answers.csv"
    file.write_text(f"sample_a,sample_b,easier\n{s},{t},a\n{s},<b>gone</b>,a\n")
    page.goto(f"http://127.0.0.1:{port}/")
    page.get_by_label("Import answers").set_input_files(file)
    page.wait_for_selector("#import-report li")
    said = page.inner_text("#import-report")
    assert "1 answers are new, 0 were here, 1 lines were left out" in said
    assert "line 3: '<b>gone</b>' is no sample" in said


@pytest.mark.parametrize("page", ["desktop"], indirect=True)
def test_what_was_answered_in_another_window_is_told_and_passed(page, serve, session):
    port, _ = serve()
    begin(page, port)
    before = shown(page)
    session.answer("Ada", "sketch", *before, "b", 1)
    press(page, "ArrowLeft")
    # A function: the page's policy forbids to evaluate an expression again and again.
    page.wait_for_function(
        "id => document.querySelector('[name=left]').value !== id", arg=before[0]
    )
    assert "Not saved: 'Ada' answered" in page.inner_text("#error")
    assert page.inner_text("#mine") == "1"


class Annotator:
    """Someone who answers by keyboard, and all that was acknowledged to them."""

    def __init__(self, page: Any, name: str) -> None:
        self.page, self.name = page, name
        self.clicks: list[Click] = []
        self.pair = ("", "")
        self.pressed = ""

    def begin(self, port: int) -> None:
        begin(self.page, port, self.name)
        self.pair = shown(self.page)

    def press(self, key: str) -> None:
        """Answer, or take back; what the server says comes later."""
        self.pressed = KEYS[key]
        self.page.keyboard.press(key)

    def hear(self) -> bool:
        """Wait for the server's word on the last key; whether it acknowledged it."""
        undo = self.pressed == "undo"
        n = len(self.clicks) + (-1 if undo else 1)
        lost, *pair = self.page.wait_for_function(HEARD, arg=[READY, str(n)]).json_value()
        if lost:
            return False
        if undo:
            assert tuple(pair) == self.clicks.pop()[:2]
        else:
            self.clicks.append((*self.pair, self.pressed))
        self.pair = tuple(pair)
        return True

    def exported(self, port: int, link: str) -> str:
        """Text of the file behind the last link of a name on the start page."""
        self.page.goto(f"http://127.0.0.1:{port}/")
        with self.page.expect_download() as waited:
            self.page.get_by_role("link", name=link, exact=True).last.click()
        return str(waited.value.path().read_text(encoding="utf-8"))


def answer_together(people: list[Annotator], n_answers: int, seed: int) -> None:
    """Everyone presses a key, then everyone waits, until so many answers are acknowledged."""
    rng = np.random.default_rng(seed)
    rounds = 0
    while sum(len(one.clicks) for one in people) < n_answers:
        rounds += 1
        for one in people:
            one.press(
                "u" if rounds % 20 == 0 else str(rng.choice(["ArrowLeft", "ArrowRight", "s"]))
            )
        for one in people:
            assert one.hear()


def test_two_annotators_at_once_and_a_server_that_is_killed(chromium, record_shapes, tmp_path):
    """80 answers by keyboard; the server is killed while two are on their way."""
    place = record_shapes(tmp_path / "place", per_class=20)
    folder = artifacts(tmp_path)
    with opened(chromium, "phone") as phone, opened(chromium, "desktop") as desktop:
        people = [Annotator(phone, "Ada"), Annotator(desktop, "Bo")]
        with serving(place) as (process, address):
            port = int(address.rstrip("/").rpartition(":")[2])
            for one in people:
                one.begin(port)
            answer_together(people, N_ANSWERS // 2, seed=0)
            for one in people:
                one.press("ArrowRight")
            process.kill()
            assert process.wait(SECONDS) == -signal.SIGKILL
            heard = {one.name: one.hear() for one in people}
        with serving(place, "--port", port):
            for one in people:
                if heard[one.name]:
                    one.begin(port)  # the next pictures could not be had any more
                    continue
                assert "the server does not answer" in one.page.inner_text("#error")
                assert shown(one.page) == one.pair
                one.press("ArrowRight")  # whether or not it was kept, it is given once
                one.page.wait_for_selector("#error:empty", state="attached")
                assert one.hear()
            answer_together(people, N_ANSWERS, seed=1)
            for screen, one in zip(("phone", "desktop"), people, strict=True):
                one.page.screenshot(path=folder / f"annotate-{screen}.png")
            text, lines = (people[0].exported(port, link) for link in ("CSV", "JSON Lines"))
            for screen, one in zip(("phone", "desktop"), people, strict=True):
                one.page.goto(f"http://127.0.0.1:{port}/")
                assert one.page.evaluate(TABLES_FIT)
                one.page.screenshot(path=folder / f"annotate-start-{screen}.png", full_page=True)
    rows = list(csv.DictReader(text.splitlines()))
    assert len(rows) == N_ANSWERS
    for one in people:
        mine = [row for row in rows if row["annotator"] == one.name]
        assert [(r["sample_a"], r["sample_b"], r["easier"]) for r in mine] == one.clicks
        assert all(0 <= float(row["seconds"]) < SECONDS for row in mine)
    assert [json.loads(line) for line in lines.splitlines()] == [
        {**row, "seconds": float(row["seconds"])} for row in rows
    ]
