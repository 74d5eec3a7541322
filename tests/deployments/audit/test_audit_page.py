"""The page of an audit: who is asked what, what is kept, exported, refused."""

from __future__ import annotations

from html import unescape

import pytest

from cppcl.audit.verdicts import read_verdicts
from cppcl.errors import InputError
from deployments.audit.app import make_app
from deployments.audit.database import VerdictDatabase
from deployments.web.security import access_for
from tests.deployments.conftest import Browser

SHOWN = {"Accept": "text/html"}


@pytest.fixture
def page(audit_session):
    return Browser(make_app(audit_session, access_for("127.0.0.1", 8765)))


def asked(page, annotator):
    """What the page asks, by the names of its fields; None where nothing is left."""
    text = page.get("/ask", params={"annotator": annotator}, status=200).text
    if 'name="given"' not in text:
        return None
    return {
        name: unescape(text.split(f'name="{name}" value="')[1].split('"')[0])
        for name in ("sketch", "image", "given")
    }


def say(page, annotator, shown, verdict, status=303):
    form = {"annotator": annotator, "seconds": "1.5", "verdict": verdict, **shown}
    return page.post("/answer", data=form, status=status)


def test_the_most_suspect_comes_first_and_others_where_someone_was(page):
    first = asked(page, "Ada")
    assert first == {"sketch": "sketches/circle/0", "image": "", "given": "circle"}
    say(page, "Ada", first, "suggested")
    assert asked(page, "Bo")["image"] == "images/square/0"
    say(page, "Bo", asked(page, "Bo"), "right")
    assert asked(page, "Bo") == first
    say(page, "Bo", first, "wrong")
    assert asked(page, "Bo") is None
    exported = read_verdicts(page.get("/verdicts.csv").text)
    found = [(v.annotator, v.sketch or v.image, v.verdict, v.label) for v in exported]
    assert found == [
        ("Ada", "sketches/circle/0", "wrong", "square"),
        ("Bo", "images/square/0", "right", ""),
        ("Bo", "sketches/circle/0", "wrong", ""),
    ]
    assert {v.seconds for v in exported} == {1.5}
    assert "2 of 2 judged, 1 of them wrong" in page.get("/").text


def test_a_label_is_shown_beside_the_surest_of_both_labels(page):
    text = page.get("/ask", params={"annotator": "Ada"}).text
    addresses = [part.split('"')[0] for part in text.split('<img src="')[1:]]
    assert len(addresses) == 3
    for address in addresses:
        assert page.get(unescape(address), status=200).headers["content-type"] == "image/png"


def test_the_last_verdict_is_taken_back(page):
    shown = asked(page, "Ada")
    page.post("/undo", data={"annotator": "Ada"}, status=409)
    say(page, "Ada", shown, "skip")
    assert asked(page, "Ada") != shown
    page.post("/undo", data={"annotator": "Ada"}, status=303)
    assert asked(page, "Ada") == shown


def test_what_is_no_verdict_is_refused(page):
    shown = asked(page, "Ada")
    say(page, "Ada", {**shown, "given": "triangle"}, "wrong", status=422)
    say(page, "Ada", {**shown, "sketch": "sketches/square/0"}, "wrong", status=422)
    assert "verdict='perhaps'" in say(page, "Ada", shown, "perhaps", status=422).text
    say(page, "", shown, "wrong", status=422)
    say(page, "Ada", shown, "wrong")
    say(page, "Ada", shown, "wrong")
    refused = say(page, "Ada", shown, "right", status=409)
    assert "undo that first" in refused.json()["error"]
    page.get("/picture?id=../shapes", status=404, headers=SHOWN)


def test_a_file_of_another_experiment_is_refused(verdicts):
    with pytest.raises(InputError, match="holds answers of the experiment 'shapes'"):
        VerdictDatabase(verdicts.path, "others")
