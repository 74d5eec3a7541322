"""An index follows its folder: what is new or changed is extracted, what is gone is left out."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import tasks.stages.index
from cppcl.errors import DataUnavailableError, InputError
from storage import Reference
from tasks.model import Model
from tasks.stages.index import IndexUpdate, update_index
from tasks.workspace import Workspace


@pytest.fixture
def folder(tmp_path: Path, draw_pictures: Callable[..., Path]) -> Path:
    """Nine pictures that the model has not seen, in folders of three."""
    return draw_pictures(tmp_path / "new", per_class=3, first=20) / "images"


@pytest.fixture
def update(
    copied_run: Workspace, folder: Path, inline_blocks: list[str]
) -> Callable[..., IndexUpdate]:
    def run(**changes: Any) -> IndexUpdate:
        inline_blocks.clear()
        return update_index(
            **{"workspace": copied_run, "model": "tiny", "folder": folder, "name": "shelf"}
            | changes
        )

    return run


def found(copied_run: Workspace, finished_run: Any) -> list[str]:
    """Pictures that a search of the index lists, sorted."""
    model = Model(copied_run, copied_run.find_model("shelf"))
    matches = model.search(finished_run.shapes / "sketches/circle/0.png", 99)
    return sorted(f"{match.path.parent.name}/{match.path.name}" for match in matches)


def test_only_new_and_changed_pictures_are_extracted(
    copied_run, folder, update, inline_blocks, finished_run
):
    first = update()
    assert (first.pictures, first.extracted, len(first.added)) == (9, 9, 9)
    assert len(inline_blocks) == 9
    assert len(found(copied_run, finished_run)) == 9

    Image.new("RGB", (40, 40), "red").save(folder / "circle" / "new.png")
    Image.new("RGB", (40, 40), "blue").save(folder / "square" / "20.png")
    (folder / "triangle" / "20.png").unlink()
    (folder / "triangle" / "21.png").rename(folder / "moved.png")
    second = update()
    assert sorted(inline_blocks) == ["circle/new.png", "square/20.png"]
    assert second.extracted == 2
    assert sorted(second.added) == ["circle/new.png", "moved.png"]
    assert second.changed == ("square/20.png",)
    assert sorted(second.removed) == ["triangle/20.png", "triangle/21.png"]
    assert second.words() == (
        "index shelf: 9 pictures; 2 added, 1 changed, 2 removed, 0 skipped; features of 2 were "
        "computed"
    )
    listed = found(copied_run, finished_run)
    assert "circle/new.png" in listed
    assert "triangle/20.png" not in listed

    records = copied_run.run_records().values()
    (record,) = [r for r in records if r["artifacts"].get("encode") == second.key]
    assert record["index"]["folder"] == str(folder)
    assert (record["index"]["added"], record["index"]["removed"]) == (2, 2)


def test_what_has_not_changed_leaves_no_new_record(copied_run, update, inline_blocks):
    first = update()
    records = len(copied_run.run_records())
    again = update()
    assert not inline_blocks
    assert (again.published, again.extracted, again.key) == (False, 0, first.key)
    assert (again.added, again.changed, again.removed) == ((), (), ())
    assert len(copied_run.run_records()) == records


def test_a_folder_that_is_as_it_was_before_is_found_as_it_is_now(
    copied_run, folder, update, finished_run
):
    first = update()
    shutil.move(folder / "circle", folder.parent / "circle")
    assert update().key != first.key
    shutil.move(folder.parent / "circle", folder / "circle")
    assert update().key == first.key
    assert len(found(copied_run, finished_run)) == 9


def test_a_broken_picture_is_skipped_and_read_again_when_it_is_mended(
    copied_run, folder, update, finished_run
):
    good = (folder / "circle" / "20.png").read_bytes()
    (folder / "circle" / "20.png").write_bytes(good[: len(good) // 2])
    broken = update(max_bad_share=0.5)
    assert list(broken.skipped) == ["circle/20.png"]
    assert "circle/20.png" not in found(copied_run, finished_run)
    (folder / "circle" / "20.png").write_bytes(good)
    mended = update()
    assert (mended.changed, mended.skipped, mended.extracted) == (("circle/20.png",), {}, 1)
    assert "circle/20.png" in found(copied_run, finished_run)


def test_the_old_state_is_found_until_the_new_one_is_whole(
    copied_run, folder, update, monkeypatch
):
    first = update()
    Image.new("RGB", (40, 40), "red").save(folder / "new.png")
    record_run = Workspace.record_run

    def fail(*arguments: Any) -> None:
        assert copied_run.find_model("shelf").key == first.key
        raise OSError("the disk is full")

    monkeypatch.setattr(Workspace, "record_run", fail)
    with pytest.raises(OSError, match="disk is full"):
        update()
    assert copied_run.find_model("shelf").key == first.key
    monkeypatch.setattr(Workspace, "record_run", record_run)
    assert copied_run.find_model("shelf").key == first.key
    assert update().key == copied_run.find_model("shelf").key != first.key


def test_a_folder_that_changes_while_it_is_read_is_read_again(folder, update, monkeypatch):
    index_folder, calls = tasks.stages.index.index_folder, []

    def change(**arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) == 1:
            raise DataUnavailableError("circle/20.png has changed")
        return index_folder(**arguments)

    monkeypatch.setattr(tasks.stages.index, "index_folder", change)
    assert update().pictures == 9
    assert len(calls) == 2

    def never(**arguments: Any) -> Any:
        raise DataUnavailableError("circle/20.png has changed")

    monkeypatch.setattr(tasks.stages.index, "index_folder", never)
    with pytest.raises(DataUnavailableError):
        update()


def test_an_index_follows_the_promoted_model(copied_run, update, inline_blocks):
    name, record = copied_run.find_run("tiny", "encode")
    served = Reference("encode", record["artifacts"]["encode"])
    other = next(r for r in copied_run.store.references("encode") if r != served)
    update()
    copied_run.promotions.mkdir()
    entry = {"run": name, "model": other.key}
    (copied_run.promotions / "tiny.json").write_text(json.dumps({"promoted": [entry]}))
    second = update()
    assert second.published
    assert (second.added, second.extracted) == ((), 0)
    assert not inline_blocks, "features do not depend on the learner"
    model = copied_run.store.open(copied_run.find_model("shelf")).inputs["model"]
    assert model == copied_run.store.open(other).inputs["model"]


@pytest.mark.parametrize("name", ["tiny", "a b", "../x", "abcdef12", ""])
def test_names_that_are_refused(name, update):
    with pytest.raises(InputError, match="name"):
        update(name=name)


def test_the_command_names_an_index(copied_run, folder, cppcl, finished_run, inline_blocks):
    result = cppcl("index", "tiny", folder, "--name", "shelf", "--workspace", copied_run.root)
    assert result.code == 0, result.stderr
    assert "index shelf: 9 pictures; 9 added" in result.stderr
    assert "search it with: cppcl search shelf SKETCH" in result.stderr
    sketch = finished_run.shapes / "sketches/circle/0.png"
    searched = cppcl("search", "shelf", sketch, "--json", "--workspace", copied_run.root)
    assert len(searched.json()) == 9
