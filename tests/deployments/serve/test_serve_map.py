"""The map of the collection: as it is answered, and in a real browser."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from deployments.serve.app import make_app
from deployments.serve.work import WorkQueue
from deployments.web.security import access_for
from tests.deployments.browsing import SCREENS, accessibility_faults, launched, missing, opened
from tests.deployments.processes import SECONDS
from tests.deployments.serve.serving import in_thread


@pytest.fixture(scope="module")
def address(live) -> Iterator[str]:
    app = make_app(live, access_for("127.0.0.1", 0, "serve"), WorkQueue(seconds=SECONDS))
    with in_thread(app) as port:
        yield f"http://127.0.0.1:{port}"


def test_it_is_laid_out_once_and_waited_for(search_page, live):
    key = live.get(None).reference.key
    until = time.monotonic() + SECONDS
    while (answered := search_page.get(f"/api/map/{key}")).status_code == 503:
        assert answered.headers["retry-after"] == "1"
        assert "being laid out" in answered.json()["error"]
        assert time.monotonic() < until
    found = answered.json()
    assert answered.status_code == 200
    images, sketches = found["images"], found["sketches"]
    assert images["row"] == sketches["row"] == list(range(60))
    for side in (images, sketches):
        assert {len(column) for column in side.values()} == {60}
    for i, near in enumerate(found["nearest"]):
        assert found["right"][i] == (images["label"][near] == sketches["label"][i])
    held_out = [row for row, held in zip(sketches["row"], found["held_out"], strict=True) if held]
    assert held_out == sorted(live.get(None).examples)
    search_page.get("/api/map/0123", status=404)


@pytest.mark.skipif(bool(missing()), reason=missing())
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("screen", SCREENS)
def test_it_is_looked_at(screen, scheme, address):
    with launched() as chromium, opened(chromium, screen, color_scheme=scheme) as page:
        page.goto(f"{address}/")
        page.wait_for_selector("#examples img")
        page.locator("#map-link").click()
        page.wait_for_selector("#legend li")
        assert page.locator("#legend li").count() == 3
        assert accessibility_faults(page) == ""
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert page.evaluate(wide) == 0
        before = page.evaluate("view")
        page.locator("#plane").focus()
        for key in ("+", "ArrowLeft"):
            page.keyboard.press(key)
        after = page.evaluate("view")
        assert after["scale"] == pytest.approx(1.4 * before["scale"])
        page.evaluate("goTo({ side: 'sketches', i: visibleSketches()[0] })")
        page.wait_for_selector("#chosen figure:nth-of-type(2)")
        assert "did not learn from this sketch" in page.inner_text("#chosen")
        assert accessibility_faults(page) == ""
        assert painted(page) > 20
        # This model does not pace; one that does gives rounds.
        assert page.is_hidden("#colouring")
        page.evaluate("map.images.entered = map.images.entered.map((_, i) => i % 4)")
        page.evaluate("byId('colouring').hidden = false")
        page.select_option("#colour", "entered")
        said = [text.strip() for text in page.locator("#legend li").all_inner_texts()]
        assert said == [
            "not in the training (60)",
            "never entered (15)",
            *(f"round {number} (15)" for number in (1, 2, 3)),
        ]
        assert accessibility_faults(page) == ""
        page.locator("#chosen a").click()
        page.wait_for_selector("#matches li")
        page.go_back()
        page.wait_for_selector("#legend li")


def painted(page: Any) -> int:
    """Number of different colours on the canvas."""
    page.wait_for_load_state("networkidle")
    return int(
        page.evaluate(
            """new Promise((done) => requestAnimationFrame(() => {
              const { width, height } = plane;
              const { data } = plane.getContext("2d").getImageData(0, 0, width, height);
              const found = new Set();
              for (let i = 0; i < data.length; i += 4) {
                found.add((data[i] << 16) + (data[i + 1] << 8) + data[i + 2]);
              }
              done(found.size);
            }))"""
        )
    )
