"""``cppcl store verify --repair`` says what it did, and what finishes the job."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from storage import Artifact, Recipe, Writer, write_block

BLOCKS, CODES = Recipe("extract", "1"), Recipe("encode", "1")
N_BLOCKS = 4


def create_blocks(made: list[int]) -> Callable[[Writer], None]:
    def create(writer: Writer) -> None:
        writer.array("features", shape=(8, 2), dtype="float32", rows_per_block=2)
        for block in writer.pending_blocks("features"):
            made.append(block)
            write_block(writer.path, "features", block, np.full((2, 2), block, np.float32))

    return create


@pytest.fixture
def artifacts(workspace) -> list[Artifact]:
    blocks, _ = workspace.store.get_or_create(BLOCKS, create_blocks([]))
    codes, _ = workspace.store.get_or_create(CODES, lambda w: w.put_text("codes.txt", "codes"))
    for name, made in (("first", [blocks]), ("second", [blocks, codes]), ("other", [])):
        record = {"experiment": name, "artifacts": {}}
        record["all_artifacts"] = [str(artifact.reference) for artifact in made]
        workspace.record_run(name, "20260101T000000000000Z", record)
    return [blocks, codes]


def test_repair_is_told_and_finished(workspace, artifacts, cppcl):
    def verify(*options: object) -> Any:
        return cppcl("store", "verify", *options, "--workspace", workspace.root)

    blocks, codes = artifacts
    before = blocks.manifest
    assert verify("--repair").stdout == "2 artifacts read, 0 problems\n"
    for number in (1, 3):
        (blocks.path / f"arrays/features/c.{number}.0").write_bytes(b"spoiled")
    (codes.path / "files/codes.txt").write_text("other")
    assert verify().code == 1
    assert verify(blocks.reference).stdout.endswith("1 artifacts read, 2 problems\n")

    one = verify(codes.reference, "--repair")
    assert one.code == 0, one.stderr
    assert one.stdout.splitlines()[1:] == [
        "1 artifacts read, 1 problems",
        f"{codes.reference}: removed; the next run makes it again",
        f"1 artifacts are to be finished: cppcl run second --workspace {workspace.root}",
    ]
    told = verify("--repair").stdout.splitlines()
    runs = "; ".join(
        f"cppcl run {name} --workspace {workspace.root}" for name in ("first", "second")
    )
    assert told[2:] == [
        "1 artifacts read, 2 problems",
        f"{blocks.reference}: unfinished now; the next run makes blocks 1, 3 of features again, "
        "and no other",
        f"1 artifacts are to be finished: {runs}",
    ]
    assert verify().stdout == "0 artifacts read, 0 problems\n"
    made: list[int] = []
    again = workspace.store.get_or_create(BLOCKS, create_blocks(made)).artifact
    assert made == [1, 3]
    assert again.manifest == before


def test_what_is_mended_at_once_needs_no_run(workspace, artifacts, cppcl):
    (artifacts[0].path / "stray").write_text("x")
    result = cppcl("store", "verify", "--repair", "--workspace", workspace.root)
    assert result.stdout.splitlines()[1:] == [
        "2 artifacts read, 1 problems",
        f"{artifacts[0].reference}: repaired; it is whole",
    ]
    assert workspace.store.verify() == []


def test_an_index_is_finished_by_indexing(workspace, artifacts, cppcl):
    gallery, _ = workspace.store.get_or_create(
        Recipe("encode", "1", {"of": "gallery"}), lambda w: w.put_text("codes.txt", "codes")
    )
    record = {"experiment": "holiday", "artifacts": {}, "all_artifacts": [str(gallery.reference)]}
    record["index"] = {"model": "first", "folder": "/my pictures"}
    workspace.record_run("holiday", "20260101T000000000000Z", record)
    (gallery.path / "files/codes.txt").write_text("other")
    told = cppcl("store", "verify", "--repair", "--workspace", workspace.root).stdout
    assert told.splitlines()[-1] == (
        "1 artifacts are to be finished: cppcl index first '/my pictures' --name holiday "
        f"--workspace {workspace.root}"
    )
