"""What users do to a workspace between runs, and what must not be lost or mixed up by it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from storage import StoreInUseError
from tasks.workspace import Workspace

Command = Callable[..., Any]
LATER = "99990101T000000000000Z"


def record_part(place: Workspace, *stages: str) -> None:
    """Record what a later run leaves that stops after some stages."""
    _, whole = place.find_run("tiny", "report")
    place.record_run(
        "tiny",
        LATER,
        {
            "experiment": "tiny",
            "artifacts": {stage: whole["artifacts"][stage] for stage in stages},
            "all_artifacts": [a for a in whole["all_artifacts"] if a.split("/")[0] in stages],
        },
    )


class TestAfterARunOfOneStage:
    @pytest.fixture
    def place(self, finished_run, tmp_path) -> Workspace:
        place: Workspace = finished_run.copy(tmp_path / "copy")
        record_part(place, "fetch", "split", "extract")
        return place

    def test_gc_keeps_what_the_whole_run_made(self, place, cppcl):
        before = set(place.store.references())
        result = cppcl("store", "gc", "--workspace", place.root)
        assert (result.code, result.stdout) == (0, "removed 0 artifacts\n")
        assert set(place.store.references()) == before

    def test_the_model_and_the_report_are_those_of_the_whole_run(self, place, finished_run, cppcl):
        assert place.find_run("tiny")[0] == f"tiny-{LATER}"
        assert place.find_model("tiny").key == finished_run.summary["artifacts"]["encode"]
        report = cppcl("report", "tiny", "--workspace", place.root, code=0)
        assert finished_run.summary["artifacts"]["report"] in report.stdout

    def test_damage_is_listed_beside_the_rest(self, place, cppcl):
        damaged = next(place.store.artifacts("split"))
        (damaged.path / "manifest.json").write_text("{}")
        listed = cppcl("store", "ls", "--workspace", place.root, code=0)
        (line,) = (line for line in listed.stdout.splitlines() if damaged.reference.key in line)
        assert "damaged: see cppcl store verify" in line
        n_artifacts = sum(1 for _ in place.store.references())
        assert listed.stdout.count("/") >= n_artifacts > 10

    def test_a_run_that_stopped_early_says_so(self, place, cppcl):
        result = cppcl("report", f"tiny-{LATER}", "--workspace", place.root, code=2)
        assert re.search(r"came as far as the stage 'report'.* cppcl run tiny", result.stderr)


def test_an_experiment_may_have_a_name_that_looks_like_a_key(tmp_path):
    place = Workspace(tmp_path)
    artifacts = {"encode": "1" * 32}
    place.record_run("facade", LATER, {"experiment": "facade", "artifacts": artifacts})
    assert place.find_model("facade").key == "1" * 32


def test_the_latest_run_is_the_latest_although_the_clock_was_set_back(tmp_path):
    place = Workspace(tmp_path)
    for key, stamp in (("1", LATER), ("2", "20260101T000000000000Z"), ("3", "20250101T0Z")):
        artifacts = {"encode": key * 32}
        place.record_run("tiny", stamp, {"experiment": "tiny", "artifacts": artifacts})
        assert place.find_model("tiny").key == key * 32
    assert [name.rpartition("-")[2] for name in place.run_records()] == [
        "99990101T000000000000Z",
        "99990101T000000000001Z",
        "99990101T000000000002Z",
    ]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"experiment": "tiny"}'])
def test_a_damaged_record_is_named(text, tmp_path, cppcl):
    place = Workspace(tmp_path)
    place.runs.mkdir()
    (place.runs / f"tiny-{LATER}.json").write_text(text)
    result = cppcl("report", "tiny", "--workspace", tmp_path, code=2)
    assert f"tiny-{LATER}.json is not the record of a run; remove it" in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [["store", "ls"], ["search", "tiny", "x.png"], ["report", "tiny"], ["store", "verify"]],
    ids=" ".join,
)
def test_a_file_is_no_workspace(arguments, tmp_path, cppcl):
    file = tmp_path / "file"
    file.write_text("something else")
    result = cppcl(*arguments, "--workspace", file, code=2)
    assert result.stderr == f"cppcl: workspace {str(file)!r} is a file; give a folder\n"


def test_a_report_is_not_copied_into_a_file(finished_run, tmp_path, cppcl):
    file = tmp_path / "page.html"
    file.write_text("mine")
    result = cppcl(
        "report", "tiny", "--output", file, "--workspace", finished_run.workspace.root, code=2
    )
    assert f"--output {str(file)!r} is a file; give a folder" in result.stderr
    assert file.read_text() == "mine"


def test_nothing_is_collected_while_a_gallery_is_made(finished_run, tmp_path, cppcl, monkeypatch):
    import tasks.stages.index

    place = finished_run.copy(tmp_path / "copy")
    encode = tasks.stages.index.encode_features

    def collect_first(**arguments: Any) -> Any:
        with pytest.raises(StoreInUseError):
            place.store.gc([])
        return encode(**arguments)

    monkeypatch.setattr(tasks.stages.index, "encode_features", collect_first)
    images = finished_run.shapes / "images"
    cppcl("index", "tiny", images, "--workspace", place.root, code=0)
