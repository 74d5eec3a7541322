"""Jobs of blocks: bundles, decoding ahead, cancelled jobs, pictures that kill workers."""

import json
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tasks.workers.blocks
from cppcl.errors import CppclError, TooManyBadPicturesError
from cppcl.features import Pixels
from tasks.cluster.jobs import run_jobs
from tasks.cluster.scheduling import JOB_S, MOST_BLOCKS, Finished, bundles
from tasks.cluster.session import Cluster, cluster_session
from tasks.cluster.throughput import Throughput
from tasks.samples import usable_rows
from tasks.workers.blocks import (
    DEATHS,
    MODEL,
    NOTE,
    Block,
    BlockReport,
    Journal,
    extract_blocks,
    extract_carefully,
)
from tasks.workers.extractors import ExtractorSpec, transform_each
from tasks.workspace import Workspace

ROOT = Path(__file__).parents[3]
SPEC = ExtractorSpec("pixels", json.dumps({"size": [8, 8]}), 40)


def blocks_of(n: int, rows: int = 10) -> list[Block]:
    return [Block(k, ("p",) * rows, ("d",) * rows) for k in range(n)]


class TestBundles:
    """How many blocks a job takes."""

    def test_one_until_something_is_known(self):
        jobs = bundles(blocks_of(5), Throughput(50), 4, lambda: 2)
        assert [len(next(jobs)) for _ in range(3)] == [1, 1, 1]

    @pytest.mark.parametrize(
        ("seconds_of_block", "row_bytes", "expected"),
        [(1.0, 4, int(JOB_S)), (100.0, 4, 1), (0.001, 4, MOST_BLOCKS), (0.001, 2**20, 6)],
        ids=["by time", "slow", "at most", "by bytes"],
    )
    def test_as_many_as_take_some_seconds(self, seconds_of_block, row_bytes, expected):
        throughput = Throughput(100_000)
        throughput.add(BlockReport(0, 10, 0, seconds_of_block, "a"))
        jobs = bundles(blocks_of(10_000), throughput, row_bytes, lambda: 2)
        assert len(next(jobs)) == expected

    def test_every_block_once_and_the_last_jobs_are_short(self):
        throughput = Throughput(1000)
        throughput.add(BlockReport(0, 10, 0, 0.001, "a"))  # nothing has come of the other yet
        jobs = list(bundles(blocks_of(100), throughput, 4, lambda: 2))
        assert [block.number for job in jobs for block in job] == list(range(100))
        assert len(jobs[0]) == 25
        assert [len(job) for job in jobs[-4:]] == [1] * 4


def cut(block: Block, rows: int) -> list[Block]:
    parts = range(0, len(block.paths), rows)
    return [
        Block(k, block.paths[at : at + rows], block.digests[at : at + rows])
        for k, at in enumerate(parts)
    ]


@pytest.mark.parametrize("rows", [1, 5, 12])
def test_features_do_not_depend_on_blocks_or_readers(
    rows, block_of_shapes, shapes, written, tmp_path
):
    extract_blocks("", [block_of_shapes], str(shapes), SPEC, "")
    whole = written.pop(("features", 0))
    assert whole.shape == (12, 64)
    parts = cut(block_of_shapes, rows)
    for readers in (0, 3):
        written.clear()
        reports = extract_blocks("", parts, str(shapes), SPEC, "", readers=readers)
        assert [report.number for report in reports] == list(range(len(parts)))
        found = [written["features", number] for number in range(len(parts))]
        np.testing.assert_array_equal(np.concatenate(found), whole)
    for part in parts:
        extract_carefully(str(tmp_path), part, str(shapes), SPEC, "")
    found = [written["features", number] for number in range(len(parts))]
    np.testing.assert_array_equal(np.concatenate(found), whole)


def test_the_next_block_is_decoded_while_one_is_described(
    block_of_shapes, shapes, written, monkeypatch
):
    """Describing a block waits for a picture of the next one: alone it would wait for ever."""
    decoded = {path: threading.Event() for path in block_of_shapes.paths}
    order: list[str] = []
    read_sample, transform = tasks.workers.extractors.read_sample, Pixels.transform

    def read(root: Path, path: str, **options: Any) -> Any:
        decoded[path].set()
        return read_sample(root, path, **options)

    def describe(self: Pixels, pictures: Any) -> Any:
        following = 4 * (len(order) + 1)
        if following < 12:
            assert decoded[block_of_shapes.paths[following]].wait(60)
        order.append(threading.current_thread().name)
        return transform(self, pictures)

    monkeypatch.setattr(tasks.workers.extractors, "read_sample", read)
    monkeypatch.setattr(Pixels, "transform", describe)
    extract_blocks("", cut(block_of_shapes, 4), str(shapes), SPEC, "", readers=2)
    assert order == [threading.current_thread().name] * 3
    assert {number for name, number in written if name == "features"} == {0, 1, 2}


@pytest.mark.parametrize("readers", [0, 2])
def test_a_cancelled_job_stops_at_the_next_block(
    readers, block_of_shapes, shapes, written, monkeypatch
):
    monkeypatch.setattr(tasks.workers.blocks, "was_cancelled", lambda: ("features", 1) in written)
    parts = cut(block_of_shapes, 3)
    reports = extract_blocks("", parts, str(shapes), SPEC, "", readers=readers)
    assert [report.number for report in reports] == [0, 1]


class TestOutOfGpuMemory:
    """The batch is halved until it fits."""

    class Small:
        """Describes `room` samples at a time."""

        dimension = 1

        def __init__(self, room: int) -> None:
            self.room, self.sizes = room, list[int]()

        def transform(self, samples: list[Any]) -> Any:
            import torch

            self.sizes.append(len(samples))
            if len(samples) > self.room:
                raise torch.OutOfMemoryError("CUDA out of memory")
            return np.array(samples, dtype=np.float32)[:, None]

    def test_batches_are_halved(self):
        extractor = self.Small(2)
        results = transform_each(extractor, list(range(8)))
        np.testing.assert_array_equal(np.ravel(results), range(8))
        assert extractor.sizes == [8, 4, 2, 2, 4, 2, 2]

    def test_one_sample_too_many_is_an_error_with_a_mend(self):
        with pytest.raises(CppclError, match=r"no memory for one picture .* smaller network"):
            transform_each(self.Small(0), [1, 2])

    def test_other_errors_are_not_taken_for_it(self):
        class Broken:
            def transform(self, samples: list[Any]) -> Any:
                raise RuntimeError("CUDA error: device-side assert triggered")

        with pytest.raises(RuntimeError, match="device-side"):
            transform_each(Broken(), [1, 2])


@pytest.mark.flow
def test_what_is_not_done_is_cancelled(dask_cluster):
    def wait(seconds: float) -> float:
        import time

        from tasks.workers.blocks import was_cancelled

        end = time.monotonic() + seconds
        while time.monotonic() < end and not was_cancelled():
            time.sleep(0.01)
        return seconds

    client = dask_cluster.client()
    jobs: Iterator[Any] = run_jobs(wait, [0.0, *[600.0] * 20], device="cpu", name="wait", hint="")
    assert next(jobs) == (0, 0.0)
    jobs.close()
    # Both workers are free again: what ran has seen that it is not wanted.
    assert list(run_jobs(abs, [-1, -2], device="cpu", name="abs", hint=""))
    left = client.run_on_scheduler(
        lambda dask_scheduler: [
            key for key in dask_scheduler.tasks if str(key).startswith("wait-")
        ]
    )
    assert left == []


def test_blocks_finish_with_the_readers_that_a_gpu_needs(monkeypatch, block_of_shapes):
    import tasks.cluster.scheduling

    asked: list[int] = []

    def run(work: Any, jobs: Any, **options: Any) -> Iterator[Any]:
        for number, job in enumerate(jobs):
            asked.append(work.keywords["readers"])
            yield number, [BlockReport(block.number, 1, 0, 1.0) for block in job]

    for resource, readers in (({"GPU": 1}, tasks.cluster.scheduling.READERS), ({"CPU": 1}, 0)):
        monkeypatch.setattr(tasks.cluster.scheduling, "run_jobs", run)
        monkeypatch.setattr(Cluster, "resource", lambda self, device, r=resource: r)
        asked.clear()
        with cluster_session():
            done = list(
                tasks.cluster.scheduling.run_blocks([block_of_shapes], "", "", SPEC, "gpu", "")
            )
        assert done == [Finished(BlockReport(0, 1, 0, 1.0), 1)]
        assert asked == [readers]


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
    dask_cluster, workspace, extract_folder, extracting_here, said
):
    """Its block and those that wait beside it lose no other row."""
    from distributed import WorkerPlugin

    class Poison(WorkerPlugin):
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
    client.register_plugin(Poison())
    try:
        with pytest.raises(TooManyBadPicturesError, match="2 workers died"):
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


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[",
        "[]",
        "{}",
        "[" * 200_000,
        '{"at": "x", "deaths": {}}',
        '{"at": 1, "deaths": {"a": 2}}',
    ],
)
def test_a_journal_that_is_none_tells_nothing(content, tmp_path):
    (tmp_path / "journal").mkdir()
    (tmp_path / "journal" / "7.json").write_text(content)
    journal = Journal.open(str(tmp_path), 7)
    assert (journal.at, journal.deaths) == (None, {})
    journal.begin(3)
    assert Journal.open(str(tmp_path), 7).deaths == {3: 1}
