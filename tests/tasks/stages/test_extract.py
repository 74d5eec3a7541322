"""Extraction as a plain function: rows that fail, rows that are copied, keys."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed import KilledWorker

import tasks.stages.extract
from cppcl.errors import CppclError, DataUnavailableError, InputError, TooManyBadPicturesError
from cppcl.features import Pixels
from storage import DamagedArtifactError
from tasks.cluster.jobs import result_of
from tasks.cluster.scheduling import HINT
from tasks.progress import Progress, listening
from tasks.samples import usable_rows
from tasks.stages.contract import StageResult
from tasks.workers.extractors import transform_each
from tasks.workspace import Workspace
from tests.tasks.conftest import extract_pictures


@pytest.fixture
def extract(workspace: Workspace, shapes: Path) -> Callable[..., StageResult]:
    """Fetch the folder as it is now, and extract one modality."""

    return lambda root=shapes, **changes: extract_pictures(workspace, root, **changes)


def spoil(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:60])


def test_rows_are_the_pictures_in_order(extract, workspace, shapes, inline_blocks):
    from cppcl.pictures.decoding import decode_picture

    result = extract()
    artifact = workspace.store.open(result.reference)
    assert usable_rows(artifact).all()
    paths = sorted((shapes / "sketches").rglob("*.png"))
    expected = Pixels(size=(8, 8)).transform([decode_picture(path) for path in paths])
    np.testing.assert_array_equal(artifact.array("features"), expected)
    assert inline_blocks == [path.relative_to(shapes).as_posix() for path in paths]
    assert artifact.json("failures.json") == {}
    assert artifact.run["notes"]["copied_rows"] == 0
    assert extract().cached
    assert len(inline_blocks) == 12
    assert artifact.run["notes"]["options"] == {"size": [8, 8]}
    assert artifact.parameters["options"] == json.loads(
        json.dumps(Pixels(size=(8, 8)).parameters())
    )


@pytest.mark.parametrize(
    "change",
    [
        {"modality": "image"},
        {"extractor": "hog", "options": {}},
        {"options": {"size": [8, 9]}},
        {"longest_side": 39},
        {"block_rows": 6},
    ],
    ids=lambda change: next(iter(change)),
)
def test_key_holds_every_parameter(change, extract, inline_blocks):
    assert extract().reference != extract(**change).reference


def test_key_holds_neither_spelling_nor_tolerance(extract, inline_blocks):
    first = extract()
    assert extract(options={"size": (8, 8), "color": "gray"}).reference == first.reference
    assert extract(max_bad_share=0.9).reference == first.reference


def test_bad_picture_keeps_its_row_and_is_named(extract, workspace, shapes, inline_blocks, said):
    whole = workspace.store.open(extract().reference).array("features")
    spoil(shapes / "sketches/square/1.png")
    result = extract(max_bad_share=0.1)
    artifact = workspace.store.open(result.reference)
    bad = 5  # four circles, then the second square
    assert np.flatnonzero(~usable_rows(artifact)).tolist() == [bad]
    features = artifact.array("features")
    assert (features[bad] == 0).all()
    np.testing.assert_array_equal(np.delete(features, bad, 0), np.delete(whole, bad, 0))
    assert list(artifact.json("failures.json")) == ["sketches/square/1.png"]
    message = "\n".join(said)
    assert "1 of 12 sketch pictures were skipped" in message
    assert "sketches/square/1.png: " in message
    said.clear()  # what is stored is named again
    assert extract().cached
    assert "sketches/square/1.png" in "\n".join(said)


def test_too_many_bad_pictures_fail_but_are_kept(extract, workspace, shapes, inline_blocks):
    for number in range(3):
        spoil(shapes / f"sketches/square/{number}.png")
    # A share of exactly 3/12 is allowed, and 3/12 is more than 0.2.
    with pytest.raises(TooManyBadPicturesError, match="3 of 12 sketch pictures") as caught:
        extract(max_bad_share=0.2)
    for number in range(3):
        assert f"sketches/square/{number}.png" in str(caught.value)
    assert "sketches/square/3.png" not in str(caught.value)
    assert "max_bad_share=0.2" in str(caught.value)
    with pytest.raises(TooManyBadPicturesError):
        extract(max_bad_share=0.2)
    assert len(inline_blocks) == 12
    result = extract(max_bad_share=0.25)
    assert result.cached
    assert len(inline_blocks) == 12


def test_new_pictures_cost_only_themselves(
    extract, workspace, shapes, draw_pictures, inline_blocks, monkeypatch, tmp_path
):
    described: list[int] = []
    transform = Pixels.transform

    def counting(self: Pixels, pictures: Any) -> Any:
        described.append(len(pictures))
        return transform(self, pictures)

    monkeypatch.setattr(Pixels, "transform", counting)
    extract()
    assert sum(described) == 12
    inline_blocks.clear()
    described.clear()
    more = draw_pictures(tmp_path / "more", per_class=1, first=8)
    for name in ("circle", "triangle"):  # at the front of the table and near its end
        shutil.copy(more / f"sketches/{name}/8.png", shapes / f"sketches/{name}/08.png")
    # Rows come from a table of another length, another order and other blocks.
    artifact = workspace.store.open(extract(block_rows=4).reference)
    assert inline_blocks == ["sketches/circle/08.png", "sketches/triangle/08.png"]
    assert sum(described) == 2
    assert artifact.run["notes"]["copied_rows"] == 12
    assert artifact.shape("features") == (14, 64)

    fresh = Workspace(tmp_path / "fresh")
    alone = extract_pictures(fresh, shapes, block_rows=4)
    assert alone.reference == artifact.reference
    assert fresh.store.open(alone.reference).manifest == artifact.manifest


def test_a_failed_row_is_not_copied(
    extract, workspace, shapes, draw_pictures, inline_blocks, tmp_path
):
    spoil(shapes / "sketches/square/1.png")
    extract()
    more = draw_pictures(tmp_path / "more", per_class=1, first=8)
    shutil.copy(more / "sketches/circle/8.png", shapes / "sketches/circle/8.png")
    inline_blocks.clear()
    artifact = workspace.store.open(extract().reference)
    assert inline_blocks == ["sketches/circle/8.png", "sketches/square/1.png"]
    assert np.flatnonzero(~usable_rows(artifact)).tolist() == [6]
    assert list(artifact.json("failures.json")) == ["sketches/square/1.png"]


def test_a_mended_picture_is_tried_again(extract, workspace, shapes, inline_blocks):
    victim = shapes / "sketches/square/1.png"
    whole = victim.read_bytes()
    spoil(victim)
    extract()
    victim.write_bytes(whole)
    inline_blocks.clear()
    artifact = workspace.store.open(extract().reference)
    assert inline_blocks == ["sketches/square/1.png"]
    assert usable_rows(artifact).all()


@pytest.mark.parametrize("change", ["another", "broken", "gone"])
def test_a_picture_that_changes_is_not_stored_as_what_it_was(
    change, extract, workspace, shapes, inline_blocks, monkeypatch
):
    """Else its features would be found again, by their sha256, whenever the old one is back."""
    victim, other = shapes / "sketches/square/2.png", shapes / "sketches/circle/0.png"
    whole = victim.read_bytes()
    open_pictures = tasks.stages.extract.open_pictures

    def change_and_open(*arguments: Any) -> Any:
        if change == "gone":  # a folder that is not mounted any more says nothing
            victim.unlink()
        else:
            victim.write_bytes(other.read_bytes()[: 60 if change == "broken" else None])
        return open_pictures(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(tasks.stages.extract, "open_pictures", change_and_open)
        with pytest.raises(DataUnavailableError, match=r"square/2\.png"):
            extract(max_bad_share=1.0)
    assert list(workspace.store.references("extract")) == []
    victim.write_bytes(whole)
    inline_blocks.clear()
    again = workspace.store.open(extract().reference)
    assert len(inline_blocks) == 7  # the first block of five was done
    assert usable_rows(again).all()
    expected = workspace.store.open(extract(mode="force").reference)
    np.testing.assert_array_equal(again.array("features"), expected.array("features"))


def test_an_interrupted_extraction_keeps_failures_of_finished_blocks(
    extract, workspace, shapes, inline_blocks, said, monkeypatch
):
    spoil(shapes / "sketches/circle/1.png")
    transform = Pixels.transform

    def break_down(self: Pixels, pictures: Any) -> Any:
        if len(inline_blocks) > 5:
            raise OSError(5, "Input/output error")
        return transform(self, pictures)

    with monkeypatch.context() as patch:
        patch.setattr(Pixels, "transform", break_down)
        with pytest.raises(OSError, match="Input/output error"):
            extract()
    inline_blocks.clear()
    artifact = workspace.store.open(extract().reference)
    assert "sketch pixels: 1 of 3 blocks were done" in "\n".join(said)
    assert len(inline_blocks) == 7
    assert list(artifact.json("failures.json")) == ["sketches/circle/1.png"]
    assert np.flatnonzero(~usable_rows(artifact)).tolist() == [1]


def test_rows_are_copied_only_from_the_same_extractor(extract, workspace, inline_blocks):
    extract()
    for change in ({"longest_side": 30}, {"options": {"size": [4, 16]}}):
        inline_blocks.clear()
        artifact = workspace.store.open(extract(**change).reference)
        assert artifact.run["notes"]["copied_rows"] == 0
        assert len(inline_blocks) == 12
    inline_blocks.clear()
    extract(block_rows=3)
    assert inline_blocks == []
    assert not extract(block_rows=3, mode="force").cached
    assert len(inline_blocks) == 12


def test_rows_that_the_extractor_refuses_are_named(
    extract, workspace, shapes, draw_pictures, inline_blocks, tmp_path
):
    small = draw_pictures(tmp_path / "small", per_class=1, side=20)
    shutil.copy(small / "sketches/circle/0.png", shapes / "sketches/circle/2.png")
    artifact = workspace.store.open(
        extract(options={"size": [8, 8], "crop": [0, 0, 30, 30]}).reference
    )
    failures = artifact.json("failures.json")
    assert list(failures) == ["sketches/circle/2.png"]
    reason = failures["sketches/circle/2.png"]
    assert reason.startswith("sketches/circle/2.png: ")
    assert "crop" in reason
    assert np.flatnonzero(~usable_rows(artifact)).tolist() == [2]


def test_only_samples_at_fault_are_refused():
    calls: list[int] = []

    class Picky:
        dimension = 1

        def transform(self, samples: list[Any]) -> Any:
            calls.append(len(samples))
            if any(sample < 0 for sample in samples):
                raise InputError(f"negative among {samples}")
            return np.array(samples, dtype=np.float32)[:, None]

    samples = [3, -1, 5, 6, 7, -2, 9]
    results = transform_each(Picky(), samples)
    for sample, result in zip(samples, results, strict=True):
        if sample < 0:
            assert isinstance(result, InputError)
            assert str(sample) in str(result)
        else:
            assert result == [sample]
    assert transform_each(Picky(), []) == []


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            KilledWorker("pixels-3", None, 3),
            r"died again and again on pixels-3, .* raise compute\.memory_per_worker",
        ),
        (ModuleNotFoundError("No module named 'tasks'"), r"'tcp://far:1' cannot import .*'tasks'"),
    ],
    ids=["killed", "without the package"],
)
def test_trouble_of_workers_is_told_with_its_mend(error, message):
    class Future:
        def result(self) -> Any:
            raise error

    with pytest.raises(CppclError, match=message):
        result_of(Future(), "tcp://far:1", HINT)


def test_progress_is_told(extract, inline_blocks):
    heard: list[Progress] = []
    with listening(on_progress=heard.append):
        extract()
        extract()
    steps = [(p.done, p.total) for p in heard if p.stage == "extract" and p.total == 3]
    assert steps == [(1, 3), (2, 3), (3, 3)]
    last = heard[-1]
    assert (last.stage, last.cached, last.finished) == ("extract", True, True)


def test_damage_in_an_artifact_is_named_when_it_is_used(extract, workspace, inline_blocks):
    artifact = workspace.store.open(extract().reference)
    chunk = artifact.path / "arrays/features/c.1.0"
    data = bytearray(chunk.read_bytes())
    data[len(data) // 2] ^= 1
    chunk.write_bytes(data)
    with pytest.raises(DamagedArtifactError, match=r"'features', block 1 .*c\.1\.0"):
        workspace.store.open(artifact.reference).array("features")
    extract(mode="force")
    assert workspace.store.verify() == []
