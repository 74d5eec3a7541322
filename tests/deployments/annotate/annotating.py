"""What a browser does on the annotation page, what the page says, and a server of it."""

from __future__ import annotations

import csv
import io
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import unescape
from typing import Any

from tests.deployments.processes import started

JSON = {"Accept": "application/json"}
SHOWN = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
Question = dict[str, Any]


def ask(browser: Any, annotator: str, modality: str = "sketch") -> Question | None:
    """The pair that the page shows."""
    response = browser.get(
        "/ask", params={"annotator": annotator, "modality": modality}, status=200
    )
    page = response.text
    if 'name="left"' not in page:
        return None
    return {
        side: unescape(page.split(f'name="{side}" value="')[1].split('"')[0]) for side in SIDES
    }


SIDES = ("left", "right")


def begin(browser: Any, annotator: str, modality: str = "sketch") -> Question | None:
    """The pair that the page shows to someone who comes from the start."""
    browser.post("/ask", data={"annotator": annotator, "modality": modality}, status=303)
    return ask(browser, annotator, modality)


def answer(browser: Any, annotator: str, shown: Question, easier: str = "a", **more: Any) -> Any:
    """Post an answer as the script of the page does."""
    form = {"annotator": annotator, "modality": "sketch", "seconds": "1.5", "easier": easier}
    form |= {side: shown[side] for side in SIDES} | more
    return browser.post("/answer", data=form, headers=JSON)


def pair_of(shown: Question) -> frozenset[str]:
    return frozenset(shown[side] for side in SIDES)


def answer_all(browser: Any, annotator: str, rule: Callable[[Question], str]) -> list[Question]:
    """Answer until nothing is left."""
    asked = []
    shown = ask(browser, annotator)
    while shown is not None:
        asked.append(shown)
        state = answer(browser, annotator, shown, rule(shown)).json()
        found = state["question"]
        shown = None if found is None else {side: found[side]["id"] for side in SIDES}
    return asked


def exported(browser: Any, **query: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(browser.get("/answers.csv", params=query).text)))


@contextmanager
def serving(place: Any, *arguments: object) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start a server as a user does; gives its process and its address.

    A port among the arguments comes last and so holds.
    """
    with started(
        *("annotate", "shapes", "--port", "0", "--workspace", place.root, *arguments)
    ) as found:
        yield found
