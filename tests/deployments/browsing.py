"""A headless Chromium, the screens that pages are tried on, and where pictures of them go."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
ARTIFACTS = "CPPCL_TEST_ARTIFACTS"
SCREENS: dict[str, dict[str, Any]] = {
    "desktop": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"},
    "phone": {
        "viewport": {"width": 390, "height": 844},
        "color_scheme": "dark",
        "has_touch": True,
        "is_mobile": True,
    },
}


def find_chromium() -> str | None:
    """Path of a Chromium that starts; some distributions have a mere note under its name."""
    for name in NAMES:
        path = shutil.which(name)
        if path and not subprocess.run([path, "--version"], capture_output=True).returncode:
            return path
    return None


CHROMIUM = find_chromium()


def missing() -> str:
    """What keeps tests from a browser, and how to mend it; nothing if nothing does."""
    lacking = []
    if CHROMIUM is None:
        lacking.append(f"no {', '.join(NAMES)} on the PATH that starts: apt-get install chromium")
    for name in ("playwright", "axe_playwright_python"):
        if importlib.util.find_spec(name) is None:
            lacking.append(f"no {name}: pip install --editable '.[demo,dev]'")
    return "NOT TESTED IN A BROWSER, " + "; ".join(lacking) if lacking else ""


@contextmanager
def launched() -> Iterator[Any]:
    """Chromium of this machine; Playwright downloads none."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def opened(chromium: Any, screen: str, **options: Any) -> Iterator[Any]:
    """Open a page on one of the screens, with cookies of its own; nothing wrong is logged."""
    context = chromium.new_context(**(SCREENS[screen] | options))
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    yield page
    context.close()
    # What the browser itself says of a server that is gone, or of an answer that is refused.
    wrong = [text for text in said if "Failed to load resource" not in text]
    assert not wrong, wrong


def artifacts(default: Path) -> Path:
    """Folder for what a test leaves to be looked at: that of the environment, or a default."""
    folder = Path(os.environ.get(ARTIFACTS) or default)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def accessibility_faults(page: Any) -> str:
    """What axe-core finds wrong with a page as it stands: a report, empty if nothing."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page)
    return found.generate_report() if found.violations_count else ""
