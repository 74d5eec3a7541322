"""Jobs of blocks: bundles, decoding ahead, pictures that kill workers, GPUs without memory."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tasks.block_jobs
import tasks.blocks
from cppcl.errors import CppclError, InputError, TooManyBadPicturesError
from cppcl.features import Pixels
from storage import Artifact
from tasks import cluster
from tasks.block_jobs import extract_blocks, extract_carefully
from tasks.blocks import Block, BlockReport, ExtractorSpec, transform_each
from tasks.extract import extract_features, usable_rows
from tasks.fetch import fetch_data
from tasks.isolation import DEATHS, MODEL, Journal
from tasks.memory import extraction_budget, peak_memory
from tasks.progress import listening
from tasks.scheduling import JOB_S, MOST_BLOCKS, Finished, bundles
from tasks.throughput import Throughput
from tasks.workspace import Workspace

ROOT = Path(__file__).parents[2]
SPEC = ExtractorSpec("pixels", json.dumps({"size": [8, 8]}), 40)


def blocks_of(n: int, rows: int = 10) -> list[Block]:
    return [Block(k, ("p",) * rows, ("d",) * rows) for k in range(n)]


def extract(workspace: Workspace, shapes: Path, **changes: Any) -> Artifact:
    table = fetch_data(
        workspace=workspace,
        name="folder",
        options={"root": shapes, "pairing": "name"},
        key_parameters={},
    ).reference
    arguments: dict[str, Any] = {
        "modality": "sketch",
        "extractor": "pixels",
        "options": {"size": [8, 8]},
        "longest_side": 40,
        "block_rows": 3,
        **changes,
    }
    result = extract_features(workspace=workspace, table=table, **arguments)
    return workspace.store.open(result.reference)


class TestBundles:
    """How many blocks a job takes."""

    def test_one_until_something_is_known(self) -> None:
        jobs = bundles(blocks_of(5), Throughput(50), 4)
        assert [len(next(jobs)) for _ in range(3)] == [1, 1, 1]

    @pytest.mark.parametrize(
        ("seconds_of_block", "row_bytes", "expected"),
        [(1.0, 4, int(JOB_S)), (100.0, 4, 1), (0.001, 4, MOST_BLOCKS), (0.001, 2**20, 6)],
        ids=["by time", "slow", "at most", "by bytes"],
    )
    def test_as_many_as_take_some_seconds(
        self, seconds_of_block: float, row_bytes: int, expected: int
    ) -> None:
        throughput = Throughput(100_000)
        throughput.add(BlockReport(0, 10, 0, seconds_of_block, "a"))
        assert len(next(bundles(blocks_of(10_000), throughput, row_bytes))) == expected

    def test_every_block_once_and_the_last_jobs_are_short(self) -> None:
        throughput = Throughput(1000)
        for worker in "ab":
            throughput.add(BlockReport(0, 10, 0, 0.001, worker))
        jobs = list(bundles(blocks_of(100), throughput, 4))
        assert [block.number for job in jobs for block in job] == list(range(100))
        assert len(jobs[0]) == 25
        assert [len(job) for job in jobs[-4:]] == [1] * 4


@pytest.fixture
def block_of_shapes(workspace: Workspace, shapes: Path) -> Block:
    """The twelve sketches, as one block."""
    from cppcl.datasets.files import file_sha256

    files = sorted((shapes / "sketches").rglob("*.png"))
    return Block(
        0,
        tuple(file.relative_to(shapes).as_posix() for file in files),
        tuple(file_sha256(file) for file in files),
    )


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> dict[tuple[str, int], Any]:
    """What was written of blocks, by array and number, and not to a store."""
    found: dict[tuple[str, int], Any] = {}

    def write(partial: str, name: str, number: int, values: Any) -> None:
        found[name, number] = values

    monkeypatch.setattr(tasks.blocks, "write_block", write)
    monkeypatch.setattr(tasks.blocks, "write_block_note", write)
    return found


def cut(block: Block, rows: int) -> list[Block]:
    parts = range(0, len(block.paths), rows)
    return [
        Block(k, block.paths[at : at + rows], block.digests[at : at + rows])
        for k, at in enumerate(parts)
    ]


@pytest.mark.parametrize("rows", [1, 5, 12])
def test_features_do_not_depend_on_blocks_or_readers(
    rows: int, block_of_shapes: Block, shapes: Path, written: dict[Any, Any], tmp_path: Path
) -> None:
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
    block_of_shapes: Block,
    shapes: Path,
    written: dict[Any, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Describing a block waits for a picture of the next one: alone it would wait for ever."""
    decoded = {path: threading.Event() for path in block_of_shapes.paths}
    order: list[str] = []
    read_sample, transform = tasks.blocks.read_sample, Pixels.transform

    def read(root: Path, path: str, **options: Any) -> Any:
        decoded[path].set()
        return read_sample(root, path, **options)

    def describe(self: Pixels, pictures: Any) -> Any:
        following = 4 * (len(order) + 1)
        if following < 12:
            assert decoded[block_of_shapes.paths[following]].wait(60)
        order.append(threading.current_thread().name)
        return transform(self, pictures)

    monkeypatch.setattr(tasks.blocks, "read_sample", read)
    monkeypatch.setattr(Pixels, "transform", describe)
    extract_blocks("", cut(block_of_shapes, 4), str(shapes), SPEC, "", readers=2)
    assert order == [threading.current_thread().name] * 3
    assert {number for name, number in written if name == "ok"} == {0, 1, 2}


@pytest.mark.parametrize("readers", [0, 2])
def test_a_cancelled_job_stops_at_the_next_block(
    readers: int,
    block_of_shapes: Block,
    shapes: Path,
    written: dict[Any, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tasks.block_jobs, "was_cancelled", lambda: ("ok", 1) in written)
    parts = cut(block_of_shapes, 3)
    reports = extract_blocks("", parts, str(shapes), SPEC, "", readers=readers)
    assert [report.number for report in reports] == [0, 1]


class TestOutOfGpuMemory:
    """The batch is halved until it fits."""

    class Small:
        """Describes `room` samples at a time."""

        def __init__(self, room: int) -> None:
            self.room, self.sizes = room, list[int]()

        def transform(self, samples: list[Any]) -> Any:
            import torch

            self.sizes.append(len(samples))
            if len(samples) > self.room:
                raise torch.OutOfMemoryError("CUDA out of memory")
            return np.array(samples, dtype=np.float32)[:, None]

    def test_batches_are_halved(self) -> None:
        extractor = self.Small(2)
        results = transform_each(extractor, list(range(8)))  # type: ignore[arg-type]
        np.testing.assert_array_equal(np.ravel(results), range(8))
        assert extractor.sizes == [8, 4, 2, 2, 4, 2, 2]

    def test_one_sample_too_many_is_an_error_with_a_mend(self) -> None:
        with pytest.raises(CppclError, match=r"no memory for one picture .* smaller network"):
            transform_each(self.Small(0), [1, 2])  # type: ignore[arg-type]

    def test_other_errors_are_not_taken_for_it(self) -> None:
        class Broken:
            def transform(self, samples: list[Any]) -> Any:
                raise RuntimeError("CUDA error: device-side assert triggered")

        with pytest.raises(RuntimeError, match="device-side"):
            transform_each(Broken(), [1, 2])  # type: ignore[arg-type]


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
        read_sample = tasks.blocks.read_sample

        def read(root: Path, path: str, **options: Any) -> Any:
            if path in poisonous:
                raise Died
            return read_sample(root, path, **options)

        monkeypatch.setattr(tasks.blocks, "read_sample", read)
        return poisonous

    @pytest.mark.parametrize("rows", [[], [0], [11], [3, 4, 8]], ids=str)
    def test_they_are_known_after_two_deaths_each(
        self,
        rows: list[int],
        poison: set[str],
        block_of_shapes: Block,
        shapes: Path,
        written: dict[Any, Any],
        tmp_path: Path,
    ) -> None:
        extract_blocks("", [block_of_shapes], str(shapes), SPEC, "")
        whole = written["features", 0]
        poison.update(block_of_shapes.paths[row] for row in rows)
        work = partial(
            extract_carefully, str(tmp_path), block_of_shapes, str(shapes), SPEC, "here"
        )
        report, deaths = survive(work)
        assert deaths == report.deaths == DEATHS * len(rows)
        assert report.failed == len(rows)
        assert np.flatnonzero(~written["ok", 0]).tolist() == rows
        failures = written["failures", 0]
        assert set(failures) == poison
        for path, reason in failures.items():
            assert reason.startswith(f"{path}: 2 workers died")
        kept = np.setdiff1d(np.arange(12), rows)
        np.testing.assert_array_equal(written["features", 0][kept], whole[kept])
        assert not written["features", 0][rows].any()

    def test_one_death_is_an_accident(
        self,
        poison: set[str],
        block_of_shapes: Block,
        shapes: Path,
        written: dict[Any, Any],
        tmp_path: Path,
    ) -> None:
        poison.add(block_of_shapes.paths[5])
        arguments = (str(tmp_path), block_of_shapes, str(shapes), SPEC, "here")
        with pytest.raises(Died):
            extract_carefully(*arguments)
        poison.clear()
        report = extract_carefully(*arguments)
        assert (report.failed, report.deaths) == (0, 1)
        assert written["ok", 0].all()

    def test_no_picture_is_blamed_for_the_extractor(self, tmp_path: Path) -> None:
        for _ in range(DEATHS):
            journal = Journal.open(str(tmp_path), 7)
            journal.begin_model()
        journal = Journal.open(str(tmp_path), 7)
        assert journal.deaths == {MODEL: DEATHS}
        with pytest.raises(CppclError, match=r"the extractor was made.*memory_per_worker"):
            journal.begin_model()


@pytest.mark.flow
def test_a_picture_that_kills_workers_is_named_and_passed_over(
    dask_cluster: Any,
    workspace: Workspace,
    shapes: Path,
    extracting_here: Callable[[], Any],
) -> None:
    """Its block and those that wait beside it lose no other row."""
    from distributed import WorkerPlugin

    class Poison(WorkerPlugin):  # type: ignore[misc]
        """Sent by value, and given to workers that take the place of the dead, too."""

        name = "poison"

        def setup(self, worker: Any) -> None:
            import os

            import tasks.blocks

            read_sample = tasks.blocks.read_sample

            def read(root: Any, path: str, **options: Any) -> Any:
                if path == "sketches/square/2.png":
                    os._exit(7)
                return read_sample(root, path, **options)

            tasks.blocks.read_sample = read

    with extracting_here():
        expected = extract(Workspace(workspace.root / "alone"), shapes)
    client = dask_cluster.client()
    said: list[str] = []
    client.register_plugin(Poison())
    try:
        with (
            listening(on_message=said.append),
            pytest.raises(TooManyBadPicturesError, match="2 workers died while they described"),
        ):
            extract(workspace, shapes, max_bad_share=0.05)
    finally:
        client.unregister_worker_plugin("poison")
        client.restart(timeout=120)
    assert any("described again, picture by picture" in text for text in said)
    artifact = extract(workspace, shapes, max_bad_share=0.1)
    bad = 6  # four circles, then the third square
    assert np.flatnonzero(~usable_rows(artifact)).tolist() == [bad]
    assert list(artifact.json("failures.json")) == ["sketches/square/2.png"]
    features, whole = artifact.array("features"), expected.array("features")
    np.testing.assert_array_equal(np.delete(features, bad, 0), np.delete(whole, bad, 0))
    assert artifact.run["notes"]["worker_deaths"] == DEATHS
    assert not (artifact.path / "journal").exists()


class TestMemory:
    """What extraction is declared to need."""

    def test_too_little_is_refused_before_anything_is_sent(
        self, workspace: Workspace, shapes: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(tasks.extract, "run_blocks", lambda *a: pytest.fail("it was sent"))
        with (
            cluster.session(memory_per_worker="300MiB"),
            pytest.raises(InputError, match=r"memory_per_worker=300MiB is less than .*MiB") as e,
        ):
            extract(workspace, shapes, block_rows=9)
        assert "block_rows=9 pictures of longest_side=40" in str(e.value)
        assert "raise compute.memory_per_worker, or lower block_rows" in str(e.value)

    def test_it_grows_with_blocks_pictures_rows_and_models(self, tmp_path: Path) -> None:
        weights = tmp_path / "weights.pt"
        weights.write_bytes(bytes(1_000_000))
        given: dict[str, Any] = {
            "extractor": "cnn",
            "device": "gpu",
            "options": {},
            "dimension": 10,
            "block_rows": 32,
            "longest_side": 256,
        }
        least = extraction_budget(**given)

        def more(**changes: Any) -> int:
            return extraction_budget(**given | changes).total - least.total

        assert more(block_rows=64) == 32 * (3 * 256**2 + 3 * 4 * 10)
        assert more(dimension=20) == 32 * 3 * 4 * 10
        assert more(longest_side=512) == 3 * 256**2 * (3 * 32 + 8 * 32)
        assert more(options={"weights": str(weights)}) == 3_000_000
        assert more(options={"cnn": {"network": "alexnet:fc6"}}) > 500e6
        assert more(learned_bytes=1000) == 3000
        assert more(ahead=True) == 32 * 3 * 256**2
        assert more(device="cpu", extractor="lks") < 0

    def test_a_peak_is_of_one_process_alone(self) -> None:
        held = np.ones(25_000_000)  # what a child must not count as its own
        program = (
            "from tasks.memory import peak_memory; before = peak_memory(); "
            "held = bytearray(b'x') * 100_000_000; print(before, peak_memory())"
        )
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
        )
        before, after = map(int, done.stdout.split())
        assert peak_memory() >= held.nbytes > before
        assert 100e6 < after - before < 300e6

    @pytest.mark.flow
    def test_workers_stay_within_what_is_declared(
        self, workspace: Workspace, draw_pictures: Callable[..., Path], tmp_path: Path
    ) -> None:
        shapes = draw_pictures(tmp_path / "large", side=400)
        budget = extraction_budget(
            extractor="edgeness",
            device="cpu",
            options={},
            dimension=1,
            block_rows=12,
            longest_side=256,
        ).total
        with cluster.session(workers=1, memory_per_worker=f"{-(-budget // 2**20)}MiB"):
            artifact = extract(
                workspace,
                shapes,
                extractor="edgeness",
                options={},
                longest_side=256,
                block_rows=12,
            )
        notes = artifact.run["notes"]
        assert notes["memory_budget_bytes"] == budget
        (worker,) = notes["workers"].values()
        assert 2**26 < worker["peak_memory_bytes"] <= notes["memory_budget_bytes"]
        assert (worker["rows"], notes["stragglers"], notes["worker_deaths"]) == (12, 0, 0)


@pytest.mark.flow
def test_what_is_not_done_is_cancelled(dask_cluster: Any) -> None:
    def wait(seconds: float) -> float:
        import time

        from tasks.block_jobs import was_cancelled

        end = time.monotonic() + seconds
        while time.monotonic() < end and not was_cancelled():
            time.sleep(0.01)
        return seconds

    client = dask_cluster.client()
    jobs: Iterator[Any] = cluster.run(
        wait, [0.0, *[600.0] * 20], device="cpu", name="wait", mend=""
    )
    assert next(jobs) == (0, 0.0)
    jobs.close()  # type: ignore[attr-defined]
    # Both workers are free again: what ran has seen that it is not wanted.
    assert list(cluster.run(abs, [-1, -2], device="cpu", name="abs", mend=""))
    left = client.run_on_scheduler(
        lambda dask_scheduler: [
            key for key in dask_scheduler.tasks if str(key).startswith("wait-")
        ]
    )
    assert left == []


def test_blocks_finish_with_the_readers_that_a_gpu_needs(
    monkeypatch: pytest.MonkeyPatch, block_of_shapes: Block
) -> None:
    import tasks.scheduling

    asked: list[int] = []

    def run(work: Any, jobs: Any, **options: Any) -> Iterator[Any]:
        for number, job in enumerate(jobs):
            asked.append(work.keywords["readers"])
            yield number, [BlockReport(block.number, 1, 0, 1.0) for block in job]

    for resource, readers in (({"GPU": 1}, tasks.scheduling.READERS), ({"CPU": 1}, 0)):
        monkeypatch.setattr(cluster, "run", run)
        monkeypatch.setattr(cluster.Cluster, "resource", lambda self, device, r=resource: r)
        asked.clear()
        with cluster.session():
            done = list(tasks.scheduling.run_blocks([block_of_shapes], "", "", SPEC, "gpu", ""))
        assert done == [Finished(BlockReport(0, 1, 0, 1.0), 1)]
        assert asked == [readers]
