"""The page of an audit in a real browser: keys, and nothing that keeps anyone out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from deployments.audit.app import make_app
from deployments.web.security import access_for
from tests.deployments.browsing import SCREENS, accessibility_faults, launched, missing, opened
from tests.deployments.serve.serving import in_thread

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with launched() as browser:
        yield browser


@pytest.mark.parametrize("screen", SCREENS)
def test_verdicts_are_given_by_keys(screen, chromium, audit_session):
    app = make_app(audit_session, access_for("127.0.0.1", 0))
    with in_thread(app, 0) as port, opened(chromium, screen) as page:
        page.goto(f"http://127.0.0.1:{port}/")
        assert not accessibility_faults(page)
        page.fill("#annotator", "Ada")
        page.press("#annotator", "Enter")
        for key, heading in (
            ("t", "Is this \u201csquare\u201d?"),
            ("u", "Is this \u201ccircle\u201d?"),
            ("ArrowLeft", "Is this \u201csquare\u201d?"),
            ("ArrowRight", "Nothing is left"),
        ):
            page.wait_for_selector("form")
            assert not accessibility_faults(page)
            page.keyboard.press(key)
            page.wait_for_selector(f"h1:text-is('{heading}')")
        wide = "document.documentElement.scrollWidth <= window.innerWidth"
        assert page.evaluate(wide)
    found = [(v.sketch or v.image, v.verdict, v.label) for v in audit_session.database.verdicts()]
    assert found == [("sketches/circle/0", "wrong", ""), ("images/square/0", "right", "")]
    assert all(v.seconds is not None for v in audit_session.database.verdicts())
