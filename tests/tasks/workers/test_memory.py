"""Memory of workers: what extraction is declared to need, and that it stays within."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tasks.stages.extract
from cppcl.errors import InputError
from cppcl.features import make_extractor
from tasks.cluster.session import cluster_session
from tasks.workers.memory import extraction_budget, peak_memory

ROOT = Path(__file__).parents[3]


def test_too_little_is_refused_before_anything_is_sent(extract_folder, monkeypatch):
    monkeypatch.setattr(tasks.stages.extract, "run_blocks", lambda *a: pytest.fail("it was sent"))
    with (
        cluster_session(memory_per_worker="300MiB"),
        pytest.raises(InputError, match=r"memory_per_worker=300MiB is less than .*MiB") as e,
    ):
        extract_folder(block_rows=9)
    assert "block_rows=9 pictures of longest_side=40" in str(e.value)
    assert "raise compute.memory_per_worker, or lower block_rows" in str(e.value)


def test_it_grows_with_blocks_pictures_rows_and_models(tmp_path):
    weights = tmp_path / "weights.pt"
    weights.write_bytes(bytes(1_000_000))
    given = {"block_rows": 32, "longest_side": 256}

    def total(name: str = "cnn", options: Any = None, **changes: int) -> int:
        return extraction_budget(make_extractor(name, options), **given | changes).total

    picture, row = 3 * 256**2, 3 * 4 * 1280
    assert total(block_rows=64) - total() == 32 * (2 * picture + row)  # the next is read ahead
    assert total("hog", block_rows=64) - total("hog") == 32 * (picture + 3 * 4 * 1296)
    assert total("hog", longest_side=512) - total("hog") == 3 * 256**2 * (3 * 32 + 8 * 32)
    assert total(options={"weights": str(weights)}) - total() == 3_000_000
    assert total(options={"network": "alexnet:fc6"}) - total() > 500e6
    assert total(learned_bytes=1000) - total() == 3000
    assert total("hog") < total("lks") < total() < total("lks+cnn")


def test_a_peak_is_of_one_process_alone():
    held = np.ones(25_000_000)  # what a child must not count as its own
    program = (
        "from tasks.workers.memory import peak_memory; before = peak_memory(); "
        "held = bytearray(b'x') * 100_000_000; print(before, peak_memory())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    before, after = map(int, done.stdout.split())
    assert peak_memory() >= held.nbytes > before
    assert 100e6 < after - before < 300e6


@pytest.mark.flow
def test_workers_stay_within_what_is_declared(extract_folder, draw_pictures, tmp_path):
    shapes = draw_pictures(tmp_path / "large", side=400)
    edgeness = make_extractor("edgeness")
    budget = extraction_budget(edgeness, block_rows=12, longest_side=256).total
    with cluster_session(workers=1, memory_per_worker=f"{-(-budget // 2**20)}MiB"):
        artifact = extract_folder(
            root=shapes, extractor="edgeness", options={}, longest_side=256, block_rows=12
        )
    notes = artifact.run["notes"]
    assert notes["memory_budget_bytes"] == budget
    (worker,) = notes["workers"].values()
    assert 2**26 < worker["peak_memory_bytes"] <= notes["memory_budget_bytes"]
    assert (worker["rows"], notes["stragglers"], notes["worker_deaths"]) == (12, 0, 0)
