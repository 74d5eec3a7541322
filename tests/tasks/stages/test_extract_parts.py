"""Features of a combination: each part an artifact of its own, and both side by side."""

from typing import Any

import numpy as np
import pytest
from PIL import Image

from cppcl.errors import TooManyBadPicturesError
from cppcl.features import make_extractor
from cppcl.pictures.decoding import decode_picture
from tasks.reporting.report import zero_rows
from tasks.samples import part_widths, usable_rows
from tasks.stages.contract import StageNotStoredError
from tests.tasks.conftest import extract_pictures

OPTIONS: dict[str, Any] = {"pixels": {"size": [8, 8]}, "weights": [1, 0.5]}


@pytest.fixture
def extract(workspace, shapes, inline_blocks):
    def extract(**changes):
        given = {"extractor": "hog+pixels", "options": OPTIONS} | changes
        return extract_pictures(workspace, shapes, **given)

    return extract


def test_parts_are_stored_shared_and_joined_to_the_same_numbers(
    extract, workspace, shapes, inline_blocks
):
    pixels = extract(extractor="pixels", options=OPTIONS["pixels"])
    assert len(inline_blocks) == 12
    joined = extract()
    assert len(inline_blocks) == 24, "a part that was stored is extracted again"
    artifact = workspace.store.open(joined.reference)
    pictures = [decode_picture(path) for path in sorted((shapes / "sketches").rglob("*.png"))]
    expected = make_extractor("hog+pixels", OPTIONS).transform(pictures)
    assert artifact.array("features").tobytes() == expected.tobytes()
    assert usable_rows(artifact).all()
    assert artifact.inputs["part.pixels"] == pixels.reference
    assert artifact.run["notes"]["options"] == OPTIONS
    assert artifact.run["notes"]["copied_rows"] == 0
    assert part_widths(artifact) == (1296, 64)
    assert part_widths(workspace.store.open(pixels.reference)) == (64,)
    assert extract(extractor="hog", options={}).cached
    other = extract(options={**OPTIONS, "weights": [1, 2]})
    assert not other.cached
    assert workspace.store.open(other.reference).run["notes"]["copied_rows"] == 12
    assert extract().cached
    assert len(inline_blocks) == 24
    assert not extract(mode="force").cached
    assert len(inline_blocks) == 48


def test_a_row_is_ok_if_every_part_is(extract, workspace, shapes, monkeypatch):
    describe = make_extractor("hog").__class__.transform
    refused = decode_picture(shapes / "sketches/circle/2.png")

    def transform(self, pictures):
        rows = describe(self, pictures)
        rows[[np.array_equal(picture, refused) for picture in pictures]] = np.nan
        return rows

    monkeypatch.setattr("cppcl.features.Hog.transform", transform)
    (shapes / "sketches/square/1.png").write_bytes(b"no picture")
    with pytest.raises(TooManyBadPicturesError, match="2 of 12 sketch pictures"):
        extract()
    result = extract(max_bad_share=0.5)
    assert result.cached
    artifact = workspace.store.open(result.reference)
    assert np.flatnonzero(~usable_rows(artifact)).tolist() == [2, 5]
    assert not artifact.array("features")[[2, 5]].any()
    failures = artifact.json("failures.json")
    assert list(failures) == ["sketches/circle/2.png", "sketches/square/1.png"]
    assert "hog gives values that are not finite" in failures["sketches/circle/2.png"]
    assert usable_rows(workspace.store.open(artifact.inputs["part.pixels"])).sum() == 11


def test_pictures_are_named_that_are_zero_in_every_part(extract, workspace, shapes, said):
    for number in (0, 1):
        Image.new("RGB", (40, 40), "white").save(shapes / f"sketches/circle/{number}.png")
    joined = workspace.store.open(extract(extractor="hog+pixels").reference)
    parts = [workspace.store.open(joined.inputs[f"part.{name}"]) for name in ("hog", "pixels")]
    assert zero_rows([joined, *parts]) == []  # white pixels are 1
    assert not any("all zero" in line for line in said)
    joined = workspace.store.open(extract(extractor="hog+shelo", options={}).reference)
    (remark,) = zero_rows([joined, workspace.store.open(joined.inputs["part.hog"])])
    assert remark.startswith("2 of 12 sketch pictures have features of hog+shelo that are all z")
    assert remark in said


def test_parts_are_not_extracted_where_the_whole_must_be_stored(extract, inline_blocks):
    with pytest.raises(StageNotStoredError, match="hog"):
        extract(mode="require")
    assert inline_blocks == []
