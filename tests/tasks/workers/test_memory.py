"""Memory of workers: what extraction is declared to need, and that it stays within."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tasks.stages.extract
from cppcl.errors import InputError
from tasks.cluster.session import cluster_session
from tasks.workers.memory import extraction_budget, peak_memory

ROOT = Path(__file__).parents[3]


def test_too_little_is_refused_before_anything_is_sent(
    extract_folder: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks.stages.extract, "run_blocks", lambda *a: pytest.fail("it was sent"))
    with (
        cluster_session(memory_per_worker="300MiB"),
        pytest.raises(InputError, match=r"memory_per_worker=300MiB is less than .*MiB") as e,
    ):
        extract_folder(block_rows=9)
    assert "block_rows=9 pictures of longest_side=40" in str(e.value)
    assert "raise compute.memory_per_worker, or lower block_rows" in str(e.value)


def test_it_grows_with_blocks_pictures_rows_and_models(tmp_path: Path) -> None:
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


def test_a_peak_is_of_one_process_alone() -> None:
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
def test_workers_stay_within_what_is_declared(
    extract_folder: Callable[..., Any], draw_pictures: Callable[..., Path], tmp_path: Path
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
    with cluster_session(workers=1, memory_per_worker=f"{-(-budget // 2**20)}MiB"):
        artifact = extract_folder(
            root=shapes,
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
