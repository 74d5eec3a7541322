"""Pictures that kill workers: known after two deaths, named and passed over."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tasks.workers.blocks
from cppcl.errors import CppclError, TooManyBadPicturesError
from tasks.progress import listening
from tasks.samples import usable_rows
from tasks.workers.blocks import (
    DEATHS,
    MODEL,
    NOTE,
    Block,
    Journal,
    extract_blocks,
    extract_carefully,
)
from tasks.workers.extractors import ExtractorSpec
from tasks.workspace import Workspace

SPEC = ExtractorSpec("pixels", json.dumps({"size": [8, 8]}), 40)


class Died(BaseException):
    """Stands for the death of a worker: nothing may catch it."""


def survive(work: Callable[[], Any]) -> tuple[Any, int]:
    """Run as Dask does, again after each death; returns the result and the number of deaths."""
    for deaths in range(50):
        try:
            return work(), deaths
        except Died:
            continue
    raise AssertionError("it dies for ever")


class TestIsolation:
    """Pictures that kill workers, in this process."""

    @pytest.fixture
    def poison(self, monkeypatch: pytest.MonkeyPatch, block_of_shapes: Block) -> set[str]:
        poisonous: set[str] = set()
        read_sample = tasks.workers.extractors.read_sample

        def read(root: Path, path: str, **options: Any) -> Any:
            if path in poisonous:
                raise Died
            return read_sample(root, path, **options)

        monkeypatch.setattr(tasks.workers.extractors, "read_sample", read)
        return poisonous

    @pytest.mark.parametrize("rows", [[], [0], [11], [3, 4, 8]], ids=str)
    def test_they_are_known_after_two_deaths_each(
        self, rows, poison, block_of_shapes, shapes, written, tmp_path
    ):
        extract_blocks("", [block_of_shapes], str(shapes), SPEC, "")
        whole = written["features", 0]
        poison.update(block_of_shapes.paths[row] for row in rows)
        work = partial(
            extract_carefully, str(tmp_path), block_of_shapes, str(shapes), SPEC, "here"
        )
        report, deaths = survive(work)
        assert deaths == report.deaths == DEATHS * len(rows)
        assert report.failed == len(rows)
        failures = written[NOTE, 0]["failures"]
        assert [int(row) for row in failures] == rows
        for row, reason in failures.items():
            assert reason.startswith(f"{block_of_shapes.paths[int(row)]}: 2 workers died")
        kept = np.setdiff1d(np.arange(12), rows)
        np.testing.assert_array_equal(written["features", 0][kept], whole[kept])
        assert not written["features", 0][rows].any()

    def test_one_death_is_an_accident(self, poison, block_of_shapes, shapes, written, tmp_path):
        poison.add(block_of_shapes.paths[5])
        arguments = (str(tmp_path), block_of_shapes, str(shapes), SPEC, "here")
        with pytest.raises(Died):
            extract_carefully(*arguments)
        poison.clear()
        report = extract_carefully(*arguments)
        assert (report.failed, report.deaths) == (0, 1)
        assert not written[NOTE, 0]["failures"]

    def test_no_picture_is_blamed_for_the_extractor(self, tmp_path):
        for _ in range(DEATHS):
            journal = Journal.open(str(tmp_path), 7)
            journal.begin_model()
        journal = Journal.open(str(tmp_path), 7)
        assert journal.deaths == {MODEL: DEATHS}
        with pytest.raises(CppclError, match=r"the extractor was made.*memory_per_worker"):
            journal.begin_model()


@pytest.mark.flow
def test_a_picture_that_kills_workers_is_named_and_passed_over(
    dask_cluster, workspace, extract_folder, extracting_here
):
    """Its block and those that wait beside it lose no other row."""
    from distributed import WorkerPlugin

    class Poison(WorkerPlugin):  # type: ignore[misc]
        """Sent by value, and given to workers that take the place of the dead, too."""

        name = "poison"

        def setup(self, worker: Any) -> None:
            import os

            import tasks.workers.blocks

            read_sample = tasks.workers.extractors.read_sample

            def read(root: Any, path: str, **options: Any) -> Any:
                if path == "sketches/square/2.png":
                    os._exit(7)
                return read_sample(root, path, **options)

            tasks.workers.extractors.read_sample = read

    with extracting_here():
        expected = extract_folder(Workspace(workspace.root / "alone"))
    client = dask_cluster.client()
    said: list[str] = []
    client.register_plugin(Poison())
    try:
        with (
            listening(on_message=said.append),
            pytest.raises(TooManyBadPicturesError, match="2 workers died while they extracted"),
        ):
            extract_folder(max_bad_share=0.05)
    finally:
        client.unregister_worker_plugin("poison")
        client.restart(timeout=120)
    assert any("extracted again, picture by picture" in text for text in said)
    artifact = extract_folder(max_bad_share=0.1)
    bad = 6  # four circles, then the third square
    assert np.flatnonzero(~usable_rows(artifact)).tolist() == [bad]
    assert list(artifact.json("failures.json")) == ["sketches/square/2.png"]
    features, whole = artifact.array("features"), expected.array("features")
    np.testing.assert_array_equal(np.delete(features, bad, 0), np.delete(whole, bad, 0))
    assert artifact.run["notes"]["worker_deaths"] == DEATHS
    assert not (artifact.path / "journal").exists()
