"""Stored bytes that change or vanish are named, by verification and by whoever uses them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tasks.workspace import Workspace

pytestmark = pytest.mark.flow


@pytest.fixture
def damaged(finished_run, tmp_path) -> tuple[Workspace, Path, Path]:
    """Copy of a workspace, with a bit flipped in a chunk and another chunk deleted."""
    place: Workspace = finished_run.copy(tmp_path / "copy")
    by_extractor = {
        (a.parameters["modality"], a.parameters["extractor"]): a
        for a in place.store.artifacts("extract")
    }
    flipped = by_extractor["sketch", "pixels"].path / "arrays/features/c.1.0"
    data = bytearray(flipped.read_bytes())
    data[len(data) // 3] ^= 0b100
    flipped.write_bytes(data)
    deleted = by_extractor["image", "colour_contrast"].path / "arrays/features/c.2.0"
    deleted.unlink()
    return place, flipped, deleted


def test_verify_names_every_damage(damaged, cppcl):
    place, flipped, deleted = damaged
    result = cppcl("store", "verify", "--workspace", place.root, code=1)
    lines = result.stdout.splitlines()
    assert len(lines) == 3
    for path in (flipped, deleted):
        key = path.parents[2].name
        (line,) = [line for line in lines if str(path) in line]
        assert line.startswith(f"extract/{key}: features: ")
    assert "is missing" in next(line for line in lines if str(deleted) in line)
    assert lines[-1].endswith("artifacts read, 2 problems")
    one = cppcl("store", "verify", flipped.parents[2].name, "--workspace", place.root, code=1)
    assert one.stdout.endswith("1 artifacts read, 1 problems\n")


def test_use_of_damaged_artifacts_fails_until_they_are_made_anew(finished_run, damaged, cppcl):
    place, flipped, deleted = damaged

    def run(*options: str) -> Any:
        return cppcl("run", finished_run.file, *options, "--workspace", place.root, "--json")

    for stage, path in (("train", flipped), ("curricula", deleted)):
        failed = run("--only", stage, "--force", stage)
        assert failed.code == 1
        assert str(path) in failed.stderr
        assert "--force extract" in failed.stderr
        assert "Traceback" not in failed.stderr
    # What was made from it before is still there and still used.
    mended = run("--only", "extract", "--force", "extract")
    assert mended.code == 0, mended.stderr
    assert cppcl("store", "verify", "--workspace", place.root).code == 0
    again = run()
    assert again.json()["artifacts"] == finished_run.summary["artifacts"]
    assert set(again.json()["cached"].values()) == {True}


@pytest.mark.parametrize("name", ["manifest.json", "files/scores.json"])
def test_damage_in_a_file_is_named(name, finished_run, cppcl, tmp_path):
    place: Workspace = finished_run.copy(tmp_path / "copy")
    key = finished_run.summary["artifacts"]["evaluate"]
    file = place.root / "store/evaluate" / key / name
    file.write_text(file.read_text().replace("1", "2"))
    verified = cppcl("store", "verify", "--workspace", place.root, code=1)
    assert f"evaluate/{key}: {Path(name).name}: " in verified.stdout
    assert str(file) in verified.stdout
    assert verified.stdout.endswith("1 problems\n")
    # Summing a run up reads the scores.
    used = cppcl("run", finished_run.file, "--workspace", place.root, code=1)
    assert str(file) in used.stderr
