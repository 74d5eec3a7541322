"""``cppcl curriculum show``: why a picture counts as easy or hard."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cppcl.features import make_extractor
from storage import Recipe, Writer
from tasks.stages.learn import version_of
from tasks.workspace import Workspace

FEW = ("--set", "n_windows=50", "--set", "n_candidates=200")


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """The current folder, with a picture of one dark box in it."""
    monkeypatch.chdir(tmp_path)
    pixels = np.full((90, 120, 3), 200, dtype=np.uint8)
    pixels[20:60, 30:80] = (150, 20, 40)
    Image.fromarray(pixels).save(tmp_path / "box.png")
    return tmp_path


@pytest.mark.parametrize("score", ["edgeness", "colour_contrast", "edge_boxes"])
def test_scores_that_learn_nothing(here, cppcl, score):
    shown = cppcl("curriculum", "show", "box.png", "--score", score, code=0)
    figure = here / f"box-{score}.png"
    assert shown.stdout == f"{figure}\n"
    with Image.open(figure) as image:
        assert min(image.size) > 200
    told = cppcl("curriculum", "show", "box.png", "--score", score, "--json").json()
    picture = np.asarray(Image.open(here / "box.png"))
    expected = make_extractor(score).transform([picture])[0, 0]
    assert told["easiness"] == pytest.approx(expected, rel=1e-6)
    assert f"{score}: {told['easiness']:.4g}" in shown.stderr
    assert len(told["best"]) == 30
    scores = [window["score"] for window in told["best"]]
    assert scores == sorted(scores, reverse=True)
    assert told["figure"] == str(figure)


def test_objectness_by_what_was_learned_or_by_the_picture_itself(here, cppcl):
    place = ("--workspace", here / "workspace", *FEW, "--json")
    alone = cppcl("curriculum", "show", "box.png", *place, code=0)
    assert "nothing that fits was learned" in alone.stderr
    picture = np.asarray(Image.open(here / "box.png"))
    made = make_extractor("objectness", {"n_windows": 50, "n_candidates": 200})
    own = made.fit([picture]).transform([picture])[0, 0]
    assert alone.json()["easiness"] == pytest.approx(own, rel=1e-6)

    noise = np.random.default_rng(0).integers(0, 256, (80, 80, 3)).astype(np.uint8)
    arrays = made.fit([noise]).to_arrays()
    parameters = {"extractor": "objectness", "options": made.parameters()}
    recipe = Recipe("learn", version_of(made), parameters)

    def create(writer: Writer) -> None:
        for name, values in arrays.items():
            writer.put_array(f"learned.{name}", values)

    Workspace(here / "workspace").store.get_or_create(recipe, create)
    by_noise = cppcl("curriculum", "show", "box.png", *place)
    assert f"as learned in learn/{recipe.key[:12]}" in by_noise.stderr
    expected = made.transform([picture])[0, 0]
    assert by_noise.json()["easiness"] == pytest.approx(expected, rel=1e-6)
    assert expected != pytest.approx(own, rel=1e-3)
    named = cppcl("curriculum", "show", "box.png", *place, "--set", f"learned={recipe.key[:12]}")
    assert named.json()["easiness"] == by_noise.json()["easiness"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("box.png", "--score", "hog"), "--score hog: no score of windows; choose one of"),
        (("box.png", "--score", "edgeness", "--set", "windows=3"), "windows"),
        (("box.png", "--score", "edgeness", "--set", "n_windows=0"), "n_windows=0"),
    ],
)
def test_wrong_use(here, cppcl, arguments, message):
    result = cppcl("curriculum", "show", *arguments, code=2)
    assert message in result.stderr
    assert cppcl("curriculum", "show", "none.png", "--score", "edgeness").code == 1
