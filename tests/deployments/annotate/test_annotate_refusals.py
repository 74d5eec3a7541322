"""The annotation page: what it serves, what it refuses, and whom."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from deployments.web.security import access_for
from tests.deployments.annotate.annotating import JSON, SHOWN, answer, ask, exported


class TestPictures:
    def test_pictures_are_served_by_the_ids_of_training_samples(
        self, browser, annotated, shapes_place
    ):
        for side in annotated.modalities.values():
            for sample in side.samples[:3]:
                response = browser.get("/picture", params={"id": sample.id}, status=200)
                with Image.open(io.BytesIO(response.content)) as shown:
                    assert response.headers["content-type"] == f"image/{shown.format.lower()}"
                    with Image.open(annotated.root / sample.path) as drawn:
                        np.testing.assert_array_equal(shown.convert("RGB"), drawn)

    @pytest.mark.parametrize(
        "name",
        [
            "",
            "../workspace/store",
            "/etc/passwd",
            "sketches/circle/0.png",
            "sketches/../../workspace/runs/shapes-20200101T000000000000Z.json",
            "..%2f..%2fetc%2fpasswd",
            "\x00",
            "x" * 5000,
        ],
    )
    def test_paths_are_no_ids(self, name, browser, annotated):
        assert (annotated.root / "sketches/circle/0.png").is_file()
        assert name not in annotated.modality_of
        assert browser.get("/picture", params={"id": name}).status_code == 404

    @pytest.mark.parametrize(
        "address",
        [
            "/static/../app.py",
            "/static/..%2fapp.py",
            "/static/%2e%2e/%2e%2e/cli.py",
            "/static//etc/passwd",
            "/static/asking.css/",
            "/templates/ask.html",
            "/answers.sqlite",
            "/answers.csv/../../x",
            "/docs",
            "/openapi.json",
        ],
    )
    def test_nothing_else_is_served(self, address, browser):
        assert browser.get(address).status_code in (307, 404)

    def test_test_pictures_are_not_served(self, browser, annotated):
        served = {s.id for side in annotated.modalities.values() for s in side.samples}
        others = sorted(set(annotated.modality_of) - served)
        assert others
        assert {browser.get("/picture", params={"id": o}).status_code for o in others} == {404}

    def test_a_changed_or_missing_or_huge_file_is_named(
        self, record_shapes, tmp_path, monkeypatch
    ):
        from cppcl.errors import PictureError
        from deployments.annotate.app import pictures_of
        from deployments.annotate.samples import gather
        from deployments.web import pictures

        found = gather(record_shapes(tmp_path, per_class=4), "shapes")
        samples = found.modalities["sketch"].samples
        shown = pictures_of(found)
        (found.root / samples[0].path).write_bytes((found.root / samples[1].path).read_bytes())
        with pytest.raises(PictureError, match=r"changed since the experiment was run"):
            shown[samples[0].id]
        (found.root / samples[1].path).unlink()
        with pytest.raises(PictureError, match=r"cannot be read \(No such file"):
            shown[samples[1].id]
        monkeypatch.setattr(pictures, "LARGEST_FILE", 10)
        with pytest.raises(PictureError, match="larger than"):
            shown[samples[2].id]

    def test_little_is_kept_in_memory(self, annotated, monkeypatch):
        from deployments.annotate.app import pictures_of
        from deployments.web import pictures

        monkeypatch.setattr(pictures, "KEPT_BYTES", 600)
        shown = pictures_of(annotated)
        for sample in annotated.modalities["sketch"].samples:
            assert shown[sample.id] == shown[sample.id]
        sizes = [len(encoded.content) for encoded in shown._kept.values()]
        assert sum(sizes) == shown._size <= 600


class TestRefusing:
    @pytest.mark.parametrize(
        ("form", "word"),
        [
            ({"modality": ""}, "modality=''"),
            ({"modality": "audio"}, "modality='audio'"),
            ({"annotator": ""}, "name ''"),
            ({"annotator": "=cmd()"}, "name '=cmd()'"),
            ({"annotator": "x" * 65}, "at most 64"),
            ({"easier": "c"}, "easier='c'"),
            ({"easier": None}, "easier=None"),
            ({"left": "nowhere"}, "left='nowhere'"),
            ({"left": None}, "left=None"),
            ({"right": "<script>"}, "right='<script>'"),
            ({"seconds": "nan"}, "seconds='nan'"),
            ({"seconds": "-1"}, "seconds='-1'"),
        ],
    )
    def test_malformed_answers(self, form, word, browser, annotated):
        shown = ask(browser, "Ada")
        good = {"annotator": "Ada", "modality": "sketch", "easier": "a", "seconds": "1"} | shown
        sent = {name: value for name, value in {**good, **form}.items() if value is not None}
        response = browser.post("/answer", data=sent, headers=JSON, status=422)
        assert word in response.json()["error"]
        page = browser.post("/answer", data=sent, headers=SHOWN, status=422)
        assert "<script>" not in page.text
        assert exported(browser) == []

    def test_pairs_that_are_none(self, browser, annotated):
        one, image = (annotated.modalities[m].samples[0].id for m in ("sketch", "image"))
        test = sorted(
            name
            for name, modality in annotated.modality_of.items()
            if modality == "sketch"
            and name not in {s.id for s in annotated.modalities["sketch"].samples}
        )[0]
        for other in (one, image, test):
            shown = {"left": one, "right": other}
            response = answer(browser, "Ada", shown)
            assert response.status_code == 422
            assert "must be ids of two training sketch pictures" in response.json()["error"]

    @pytest.mark.parametrize(
        "body", [b"\xff", b"easier=%ff", b"&".join(b"a%d=1" % k for k in range(50)), b"{}", b""]
    )
    def test_bodies_that_are_no_form(self, body, browser):
        for address in ("/answer", "/undo"):
            response = browser.post(address, content=body, headers=JSON, status=422)
            assert response.json()["error"]

    def test_bodies_that_are_too_large(self, browser, monkeypatch):
        from deployments.annotate import app
        from deployments.web.requests import LARGEST_FORM

        browser.post("/answer", content=b"a=" + b"x" * LARGEST_FORM, status=413)
        monkeypatch.setattr(app, "LARGEST_IMPORT", 100)
        assert browser.post("/import?kind=csv", content=b"x" * 101).status_code == 413

    def test_names_are_shown_as_text(self, browser):
        name = "A<b>&\"'"
        page = browser.get("/ask", params={"annotator": name, "modality": "sketch"}).text
        assert "A&lt;b&gt;&amp;&#34;&#39;" in page
        assert "A<b>" not in page
        answer(browser, name, ask(browser, name))
        assert "A<b>" not in browser.get("/").text


class TestStrangers:
    def test_a_token_opens_once_and_then_the_cookie_does(self, open_browser):
        access = access_for("192.0.2.1", 9000)
        assert access.token
        assert access.token != access_for("192.0.2.1", 9000).token
        browser = open_browser(access, base="http://192.0.2.1:9000")
        for address in ("/", "/picture?id=x", "/static/annotate.js", "/answers.csv", "/?token=x"):
            assert browser.get(address).status_code == 401
        post = {"annotator": "Ada", "modality": "sketch"}
        assert browser.post("/answer", data=post).status_code == 401
        assert browser.post(f"/undo?token={access.token}", data=post).status_code == 401
        response = browser.get(
            f"/ask?annotator=A+B&token={access.token}&modality=sketch", status=303
        )
        assert response.headers["location"] == "/ask?annotator=A+B&modality=sketch"
        cookie = response.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=lax" in cookie
        assert browser.get("/").status_code == 200
        shown = ask(browser, "Ada")
        assert answer(browser, "Ada", shown).status_code == 200
        # Another browser has no cookie.
        assert open_browser(access).get("/").status_code == 401

    def test_this_machine_needs_no_token_and_has_no_other_name(self, browser):
        assert access_for("127.0.0.1", 1).token is None
        assert access_for("::1", 1).token is None
        assert access_for("localhost", 1).token is None
        assert access_for("0.0.0.0", 1).token
        for host in ("localhost:1", "127.0.0.1", "[::1]:8765"):
            assert browser.get("/", headers={"Host": host}).status_code == 200
        for host in ("evil.example", "127.0.0.1.evil.example", "", "[", "evil@evil.example"):
            assert browser.get("/", headers={"Host": host}).status_code == 421

    def test_other_sites_cannot_answer(self, browser):
        shown = ask(browser, "Ada")
        form = {"annotator": "Ada", "modality": "sketch", "easier": "a"} | shown
        for headers in (
            {"Origin": "https://evil.example"},
            {"Origin": "null"},
            {"Origin": "http://127.0.0.1:1"},
            {"Sec-Fetch-Site": "cross-site"},
            {"Sec-Fetch-Site": "same-site"},
        ):
            assert browser.post("/answer", data=form, headers=headers).status_code == 403
            assert browser.post("/import?kind=csv", headers=headers).status_code == 403
        assert exported(browser) == []
        own = {"Origin": "http://127.0.0.1:8765", "Sec-Fetch-Site": "same-origin"}
        assert browser.post("/answer", data=form, headers=own).status_code == 303
