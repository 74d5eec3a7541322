"""Drawings asked at every step: from strokes to scores, their curves and what is refused."""

import csv
import io

import numpy as np
import pytest

from cppcl.errors import InputError
from flows.configuration.load import load_experiment
from tasks.samples import open_pictures, open_split
from tasks.stages.evaluate import DRAWN_SHARES
from tasks.workspace import Workspace

pytestmark = pytest.mark.usefixtures("inline_blocks_of_module")
SHAPES = {"box": "M0 0h{n}v9H0z", "slash": "M0 0L9 {n}", "zigzag": "M0 0l{n} 9l3 -9l3 9"}
SPLIT = {"rule": "instance", "n_train": 6, "seeds": [0], "least_drawn": 0.6}


@pytest.fixture
def drawings(tmp_path, draw_pictures):
    root = draw_pictures(tmp_path / "drawn")
    for folder in sorted((root / "sketches").iterdir()):
        for path in list(folder.iterdir()):
            path.unlink()
    for (label, path), folder in zip(
        SHAPES.items(), sorted((root / "sketches").iterdir()), strict=False
    ):
        for number in range(4):
            text = f'<svg xmlns="http://www.w3.org/2000/svg"><path d="{path}"/></svg>'
            (folder / f"{number}.svg").write_text(text.format(n=6 + number), encoding="utf-8")
        assert label
    return root


def test_a_run_over_the_course_of_drawing(drawings, write_experiment, run_plain, tmp_path):
    file = write_experiment(
        drawings,
        dataset={
            "name": "folder-drawn", "root": str(drawings), "pairing": "name",
            "shares": [20, 60, 100],
        },
        protocols={
            "course": {"split": SPLIT, "on_the_fly": True, "methods": {"centred_cosine": {}}}
        },
        curriculum=None,
    )  # fmt: skip
    place = Workspace(tmp_path / "workspace")
    chain = run_plain(file, place)
    store = place.store
    scored = store.open(chain.pieces["evaluate centred_cosine"][0].reference)
    split = open_split(store, scored.inputs["split"])
    table = open_pictures(store, scored.inputs["table"]).table
    trained = [table.column("ids", "sketch")[row][-3:] for row in split.train_sketches]
    assert sorted(set(trained)) == ["060", "100"]
    shares, first = scored.array(DRAWN_SHARES), scored.array("first_relevant_rank")
    assert sorted(set(shares)) == [0.2, 0.6, 1.0]
    document = scored.json("scores.json")
    assert document["scores"]["reciprocal_rank"] == pytest.approx(np.mean(1 / first))
    assert document["chance"]["percentile"] == pytest.approx(0.5)
    assert "of its ink" in document["convention"]

    report = store.open(chain.pieces["report"][0].reference)
    rows = list(csv.DictReader(io.StringIO(report.text("on_the_fly.csv"))))
    found = [float(r["value"]) for r in rows if r["score"] == "rank_1" and r["drawn"] == "0.60"]
    assert found == [pytest.approx(np.mean(first[shares == 0.6] <= 1))]
    assert "While one draws" in report.text("report.html")
    assert "on_the_fly_course.png" in report.names
    assert "of its ink" in report.text("report.html")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"on_the_fly": True}, "on_the_fly=true needs the data set emoji-drawn or folder-drawn"),
        (
            {"split": {"rule": "instance", "least_drawn": 0.5}},
            "least_drawn=0.5 needs the data set",
        ),
    ],
)
def test_whole_drawings_have_no_course(write_experiment, drawings, change, reason):
    protocol = {"split": {"rule": "instance"}, "methods": {"centred_cosine": {}}} | change
    with pytest.raises(InputError, match=reason):
        load_experiment(str(write_experiment(drawings, protocols={"one": protocol})))
