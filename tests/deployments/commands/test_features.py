"""``cppcl features``: what there is, how fast it is, and what it sees."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from cppcl.errors import DataUnavailableError
from cppcl.features import EXTRACTORS, make_extractor
from deployments.commands import features
from storage import Recipe, Reference, Writer
from tasks.stages.learn import version_of
from tasks.workspace import Workspace

NUMBERS = {"n_keyshapes": 5, "n_nearest": 2, "blocks": 2}


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """The current folder, with a sketch in it."""
    monkeypatch.chdir(tmp_path)
    pixels = np.full((60, 80, 3), 255, dtype=np.uint8)
    pixels[20:23, 10:70] = pixels[5:50, 40:43] = 0
    Image.fromarray(pixels).save(tmp_path / "cross.png")
    return tmp_path


@pytest.fixture
def explained(monkeypatch) -> list[list[Any]]:
    """Layers of every figure that is drawn."""
    import cppcl.report.layers_figure

    draw, seen = cppcl.report.layers_figure.layers_png, []

    def note(title: str, layers: list[Any]) -> bytes:
        seen.append([title, *(layer.title for layer in layers)])
        return draw(title, layers)

    monkeypatch.setattr(cppcl.report.layers_figure, "layers_png", note)
    return seen


def learn_by_hand(workspace: Workspace, day: int, name: str = "lks", **options: Any) -> Reference:
    """Store what an `lks` with these options learned, as the stage does."""
    made = make_extractor("lks", options)
    lines = np.full((50, 50, 3), 255, dtype=np.uint8)
    lines[10:40:3, 5:45] = lines[8:45, 20:25] = 0
    arrays = made.fit([lines, lines.transpose(1, 0, 2)]).to_arrays()
    recipe = Recipe("learn", version_of(made), {"extractor": name, "options": made.parameters()})

    def create(writer: Writer) -> None:
        writer._started = datetime(2026, 1, day, tzinfo=UTC)
        for name, values in arrays.items():
            writer.put_array(f"learned.{name}", values)

    workspace.store.get_or_create(recipe, create)
    return recipe.reference


def test_list_says_what_each_extractor_is(cppcl):
    result = cppcl("features", "list", "--no-timing", "--json", code=0)
    rows = {row.pop("name"): row for row in result.json()}
    assert list(rows) == list(EXTRACTORS)
    assert rows["lks"] == {"dimension": 2400, "learns": True, "device": "cpu", "licence": None}
    assert rows["precomputed"]["dimension"] is None
    assert rows["cnn"]["device"] in ("cpu", "cuda")
    assert "Apache-2.0" in rows["cnn"]["licence"]
    table = cppcl("features", "list", "--no-timing").stdout
    assert "ms" not in table
    assert all(name in table for name in EXTRACTORS)


def test_time_is_measured_on_strokes_of_a_sketch_and_edges_of_a_photograph(cppcl, monkeypatch):
    asked: dict[str, list[tuple[str | None, bool, bool]]] = {}

    def milliseconds(extractor: Any, picture: Any) -> float:
        if extractor.name == "cnn":
            raise DataUnavailableError("the weights are elsewhere")
        learned = not extractor.learns or extractor.has_learned
        contours = extractor.parameters().get("contours")
        white = bool((picture == 255).mean() > 0.5)
        asked.setdefault(extractor.name, []).append((contours, white, learned))
        return 1.25 if white else 3.5

    monkeypatch.setattr("cppcl.features.timing.milliseconds", milliseconds)
    result = cppcl("features", "list", "--json", code=0)
    assert "cnn: the weights are elsewhere" in result.stderr
    rows = {row["name"]: row["milliseconds"] for row in result.json()}
    assert rows["cnn"] == rows["precomputed"] == {"sketch": None, "photograph": None}
    assert rows["hog"] == {"sketch": 1.25, "photograph": 3.5}
    assert asked["lks"] == [("strokes", True, True), ("canny", False, True)]
    assert asked["perceptual_edge_lite"] == [("strokes", True, True), ("canny", False, True)]
    assert asked["hog"] == [("none", True, True), ("none", False, True)]
    needs_weights = {"adapter", "cnn", "open_clip", "timm", "tuned_transformer"}
    assert set(asked) - {"adapter"} == set(EXTRACTORS) - needs_weights - {"precomputed"}
    table = cppcl("features", "list").stdout
    (line,) = [line for line in table.splitlines() if line.split()[:1] == ["hog"]]
    assert line.split() == ["hog", "1296", "–", "cpu", "1.2", "3.5", "–"]


def test_show_draws_a_figure_and_prints_where_it_is(cppcl, here, explained):
    result = cppcl("features", "show", "hog", "cross.png", "--set", "contours=strokes", code=0)
    path = here / "cross-hog.png"
    assert result.stdout.split() == [str(path)]
    with Image.open(path) as image:
        assert image.format == "PNG"
    ((title, *layers),) = explained
    assert title == "hog of cross.png (contours=strokes)"
    assert layers == ["picture, 80 x 60", "cells, 7 x 7, on 128 x 128", "vector"]


def test_what_was_learned_last_is_used_or_what_is_asked_for(cppcl, here, explained):
    show = ("features", "show", "lks", "cross.png", "--output", "out.png")
    options = [f"--set={name}={value}" for name, value in NUMBERS.items()]
    result = cppcl(*show, *options, code=0)
    assert "nothing that fits was learned in" in result.stderr
    assert explained.pop()[1:] == ["picture, 80 x 60", "contours (strokes)"]

    workspace = Workspace(here / ".cppcl")
    older = learn_by_hand(workspace, 1, **NUMBERS)
    newer = learn_by_hand(workspace, 2, **NUMBERS, seed=1)
    learn_by_hand(workspace, 3, **{**NUMBERS, "n_keyshapes": 6})
    learn_by_hand(workspace, 4, name="of another", **NUMBERS)
    both = "lks+hog", "cross.png", "--output", "out.png"
    given = [f"--set=lks.{name}={value}" for name, value in NUMBERS.items()]
    for arguments in ((*show, *options), ("features", "show", *both, *given)):
        result = cppcl(*arguments)
        assert f": as learned in learn/{newer.key[:12]}" in result.stderr
        assert any("nearest keyshapes" in layer for layer in explained.pop())
    result = cppcl(*show, *options, "--set", f"learned={older.key[:12]}")
    assert (result.code, result.stderr) == (0, "")
    assert "keyshapes of most pixels" in explained.pop()
    result = cppcl(*show, "--set", f"learned={older.key[:12]}", code=2)
    assert "belong to another extractor or to other options" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["hogg", "cross.png"], 2, "no feature extractor of name 'hogg'; did you mean 'hog'"),
        (["hog", "cross.png", "--set", "contour=canny"], 2, "--set contour: the extractor has no"),
        (
            ["hog", "cross.png", "--set", "contours=no"],
            2,
            "'hog' is not valid:\n  hog: option con",
        ),
        (["hog", "cross.png", "--set", "contours"], 2, "must read key=value"),
        (["hog+lks", "cross.png", "--set", "weights=[1]"], 2, "must be 2 numbers"),
        (["precomputed", "cross.png"], 2, "rows of numbers"),
        (["hog", "nowhere.png"], 1, "nowhere.png"),
        (["hog", "cross.png", "--output", "no/such.png"], 1, "no/such.png"),
        (["lks", "cross.png", "--set", "learned=abc"], 2, "abc"),
    ],
    ids=str,
)
def test_what_cannot_be_shown_is_named(arguments, code, message, cppcl, here):
    result = cppcl("features", "show", *arguments, code=code)
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_device_is_the_gpu_where_there_is_one(monkeypatch):
    cnn, hog = make_extractor("cnn"), make_extractor("hog")
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    assert (features.device_of(cnn), features.device_of(hog)) == ("cuda", "cpu")
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert features.device_of(cnn) == "cpu"
