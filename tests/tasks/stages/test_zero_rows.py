"""Pictures whose features are all zero are named, and so are words that weigh nothing."""

from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from storage import Reference
from tasks.progress import listening
from tasks.reporting.report import one_colour, zero_rows
from tasks.stages.extract import ZERO_ROWS, one_colour_remark, zero_rows_remark
from tasks.stages.learn import learn_features, remarks_on
from tasks.stages.split import split_table
from tasks.workspace import Workspace
from tests.tasks.conftest import extract_pictures, fetch_folder

pytestmark = pytest.mark.usefixtures("inline_blocks")


class Stages:
    """Stages on a folder, and what they say."""

    def __init__(self, workspace: Workspace, root: Path) -> None:
        self.workspace, self.root = workspace, root
        self.table = fetch_folder(workspace, root)
        self.said: list[str] = []

    def learn(self, extractor: str, options: dict[str, Any]) -> Reference:
        self.said.clear()
        split = split_table(
            workspace=self.workspace,
            table=self.table,
            rule="instance",
            options={"n_train": 7},
            seed=0,
        )
        with listening(on_message=self.said.append):
            return learn_features(
                workspace=self.workspace,
                table=self.table,
                split=split.reference,
                modality="sketch",
                extractor=extractor,
                options=options,
                longest_side=40,
                label="here",
            ).reference

    def extract(self, extractor: str, learned: Any = None, **options: Any) -> Any:
        given = {"extractor": extractor, "options": options, "learned": learned}
        self.said.clear()
        with listening(on_message=self.said.append):
            result = extract_pictures(self.workspace, self.root, table=self.table, **given)
        return self.workspace.store.open(result.reference)


def whiten(shapes: Path, *paths: str) -> None:
    for path in paths:
        Image.new("RGB", (40, 40), "white").save(shapes / path)


def test_blank_sketches_are_named_each_time(shapes, workspace):
    blank = ["sketches/circle/1.png", "sketches/triangle/3.png"]
    whiten(shapes, *blank)
    stages = Stages(workspace, shapes)
    artifact = stages.extract("shelo")
    assert artifact.json(ZERO_ROWS)["paths"] == blank
    features = artifact.array("features")
    assert (~features.any(axis=1)).sum() == 2
    seen, remark = stages.said
    assert seen == one_colour_remark(artifact)
    assert seen.startswith("2 of 12 sketch pictures are of one colour")
    assert f": {blank[0]}, {blank[1]}; " in seen
    assert remark == zero_rows_remark(artifact)
    assert remark.startswith("2 of 12 sketch pictures have features of shelo that are all zero")
    assert remark.endswith(f": {blank[0]}, {blank[1]}")
    assert zero_rows([artifact, artifact]) == [remark]
    assert one_colour([artifact, artifact]) == [seen]
    # Stored ones are named again, and rows that are copied as well.
    stages.extract("shelo")
    assert stages.said == [seen, remark]
    copied = extract_pictures(workspace, shapes, extractor="shelo", options={}, block_rows=4)
    again = workspace.store.open(copied.reference)
    assert again.run["notes"]["copied_rows"] == 12
    assert again.json(ZERO_ROWS)["paths"] == blank
    assert one_colour_remark(again) == seen


def test_nothing_is_said_of_pictures_with_features_nor_of_scores(shapes, workspace):
    assert Stages(workspace, shapes).extract("shelo").json(ZERO_ROWS)["paths"] == []
    whiten(shapes, "sketches/circle/1.png")
    stages = Stages(workspace, shapes)
    score = stages.extract("edgeness")
    assert score.json(ZERO_ROWS)["paths"] == ["sketches/circle/1.png"]
    assert zero_rows_remark(score) is None
    stages.extract("pixels")  # white is 1
    assert [text for text in stages.said if "all zero" in text] == []


def test_broken_pictures_are_not_among_them(shapes, workspace):
    (shapes / "sketches/circle/1.png").write_bytes(b"no picture")
    artifact = Stages(workspace, shapes).extract("shelo")
    assert list(artifact.json("failures.json")) == ["sketches/circle/1.png"]
    assert artifact.json(ZERO_ROWS)["paths"] == []


def test_many_are_counted(shapes, workspace, monkeypatch):
    whiten(shapes, *(f"sketches/circle/{n}.png" for n in range(4)))
    monkeypatch.setattr("tasks.stages.extract.N_NAMED", 3)
    stages = Stages(workspace, shapes)
    stages.extract("shelo")
    seen, remark = stages.said
    assert "2.png and 1 more; look" in seen
    assert remark.endswith(
        ": sketches/circle/0.png, sketches/circle/1.png, sketches/circle/2.png and 1 more"
    )


@pytest.mark.parametrize("name", ["sift", "sift+pixels"])
def test_words_that_every_training_picture_has_weigh_nothing(
    name, shapes, workspace, draw_pictures
):
    options: Any = {"n_words": 2, "weighting": "tf_idf"}
    if name != "sift":
        options = {"sift": options}
    stages = Stages(workspace, shapes)
    learned = stages.learn(name, options)
    artifact = workspace.store.open(learned)
    assert not artifact.array("learned.idf").any()
    text = (
        "2 of 2 words occur in every training picture, and tf_idf weighs them 0, so all features"
    )
    assert [text in remark for remark in remarks_on(artifact)] == [True]
    assert sum(f"sketch sift, here: {text}" in line for line in stages.said) == 1
    stages.learn(name, options)
    assert [text in line for line in stages.said] == [True]  # also of what is stored
    artifact = stages.extract(name, learned, **options)
    if name == "sift":
        (remark,) = stages.said
        assert remark.startswith("12 of 12 sketch pictures have features of sift")
        assert remark.endswith("raise n_words, or use weighting l1")
    else:
        assert stages.said == []  # the other part is not zero


def test_words_that_tell_pictures_apart_need_no_remark(shapes, workspace):
    stages = Stages(workspace, shapes)
    for options in ({"n_words": 2}, {"n_words": 40, "weighting": "tf_idf"}):
        learned = workspace.store.open(stages.learn("sift", options))
        n_common = 0 if len(options) == 1 else (learned.array("learned.idf") == 0).sum()
        assert [remark.split()[0] for remark in remarks_on(learned)] == [
            str(n) for n in [n_common] if n
        ]
        assert not any("so all features are zero" in line for line in stages.said)
