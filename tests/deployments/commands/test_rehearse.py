"""``cppcl rehearse``: what it makes, measures, projects and leaves."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

import flows.rehearse
from flows.rehearse import Size, read_rehearsal, rehearse, stage_figures
from storage import Reference
from tasks.progress import listening

Command = Callable[..., Any]
METHODS = "{centred_cosine: null}"
FEW_METHODS = tuple(
    f"protocols.{protocol}.methods={METHODS}" for protocol in ("category", "unseen")
)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["emoji"], "experiment 'emoji' cannot be rehearsed; one of tuberlin can"),
        (["tuberlin", "--samples", "999"], "--samples 999 is too few; give 1000 or more"),
        (["tuberlin", "--set", "alhpa=1"], "alhpa: the experiment has no such option"),
        (["tuberlin", "--set", "cprl.alpha=-1"], "alpha"),
    ],
    ids=["experiment", "samples", "option", "value"],
)
def test_wrong_use_exits_with_2_and_makes_nothing(
    arguments: list[str], message: str, cppcl: Command, tmp_path: Path
) -> None:
    result = cppcl("rehearse", *arguments, "--workspace", tmp_path)
    assert result.code == 2
    assert message in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("samples", [250, 1000, 22_400, 224_000])
def test_sizes_keep_the_proportion_and_suit_the_splits(samples: int, tmp_path: Path) -> None:
    size, experiment = read_rehearsal("tuberlin", samples, (), tmp_path)
    assert size.samples == samples
    assert size.n_sketches == pytest.approx(samples * 20 / 224, abs=0.5)
    unseen = experiment.protocols["unseen"].split.labels  # type: ignore[union-attr]
    classes = size.classes(unseen)
    assert len(set(classes)) == size.n_classes
    assert set(unseen) < set(classes)
    assert size.n_sketches >= 4 * size.n_classes
    assert experiment.dataset.root == tmp_path  # type: ignore[union-attr]


def test_the_whole_size_is_the_data_set() -> None:
    assert Size.of(224_000) == Size(20_000, 204_000, 250)


def figures(size: Size, seconds: float) -> dict[str, Any]:
    row = {"seconds": seconds, "bytes": 10 * size.samples, "peak_memory_bytes": 5}
    return {"samples": size.samples, "stages": {"extract": row, "evaluate": row}}


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Samples of the runs that were measured; each takes a second for 250 samples."""
    sizes: list[int] = []

    def measure(size: Size, *arguments: Any) -> dict[str, Any]:
        sizes.append(size.samples)
        return figures(size, size.samples / 250)

    monkeypatch.setattr(flows.rehearse, "measure", measure)
    return sizes


def test_two_sizes_are_projected(measured: list[int], tmp_path: Path) -> None:
    report = rehearse("tuberlin", 1000, workspace=tmp_path)
    assert measured == [250, 1000]
    projected = report["projection"]["stages"]
    assert projected["extract"]["seconds"] == pytest.approx(224_000 / 250)
    assert projected["extract"]["bytes"] == 2_240_000
    assert projected["extract"]["peak_memory_bytes"] == 5
    slope = 3 / (1000**2 - 250**2)
    expected = 4 + slope * (224_000**2 - 1000**2)
    assert projected["evaluate"]["seconds"] == pytest.approx(expected, rel=1e-6)
    assert json.loads((tmp_path / "rehearsals/tuberlin.json").read_text()) == report


def test_what_was_measured_is_not_measured_again(measured: list[int], tmp_path: Path) -> None:
    rehearse("tuberlin", 1000, workspace=tmp_path)
    rehearse("tuberlin", 1000, workspace=tmp_path)
    assert measured == [250, 1000]
    rehearse("tuberlin", 1000, ["cprl.alpha=0.5"], workspace=tmp_path)
    assert measured == [250, 1000] * 2
    (tmp_path / "rehearsals/tuberlin-1000.json").write_text("{")
    rehearse("tuberlin", 1000, ["cprl.alpha=0.5"], workspace=tmp_path)
    assert measured == [250, 1000] * 2 + [1000]


def test_a_run_that_would_take_too_long_is_left_out(measured: list[int], tmp_path: Path) -> None:
    said: list[str] = []
    with listening(on_message=said.append):
        # By the quarter: 4 s of extraction and 16 s of evaluation.
        report = rehearse("tuberlin", 1000, workspace=tmp_path, seconds=19)
    assert measured == [250]
    assert "figures are of 250 alone" in said[0]
    assert report["projection"]["stages"]["extract"]["seconds"] == pytest.approx(224_000 / 250)
    rehearse("tuberlin", 1000, workspace=tmp_path, seconds=21)
    assert measured == [250, 1000]


@pytest.mark.parametrize(
    ("cached", "seconds", "peak"), [(False, 9.0, 300), (True, 5.0, 200)], ids=["run", "stored"]
)
def test_a_stored_stage_shows_what_its_own_run_took(
    cached: bool, seconds: float, peak: int, tmp_path: Path
) -> None:
    class Artifact:
        path = tmp_path
        run: ClassVar[dict[str, Any]] = {"seconds": 2.5, "peak_memory_bytes": 200}

    class Store:
        def open(self, reference: Any) -> Artifact:
            return Artifact()

    (tmp_path / "file").write_bytes(bytes(10))
    summary = {
        "seconds": {"extract": 0.1 if cached else 9.0},
        "cached": {"extract": cached},
    }
    found = stage_figures(
        Store(),  # type: ignore[arg-type]
        [Reference("extract", "a" * 32), Reference("extract", "b" * 32)],
        {"extract": 300},
        summary,
    )
    assert found == {"artifacts": 2, "seconds": seconds, "bytes": 20, "peak_memory_bytes": peak}


@pytest.mark.flow
def test_the_whole_chain_is_measured(
    prefect_server: str, dask_address: str, cppcl: Command, tmp_path: Path
) -> None:
    changes = [*FEW_METHODS, f"compute.cluster={dask_address}", "report.queries=0"]
    options = [word for change in changes for word in ("--set", change)]
    result = cppcl(
        "rehearse", "tuberlin", "--samples", 1000, "--workspace", tmp_path, *options, "--json"
    )
    assert result.code == 0, result.stderr
    report = result.json()
    small, whole = report["sizes"]
    assert (whole["sketches"], whole["images"], whole["pictures"]["written"]) == (89, 911, 1000)
    stages = ["fetch", "split", "extract", "train", "encode", "evaluate", "report"]
    assert list(whole["stages"]) == stages
    for figures in (small, whole):
        for row in figures["stages"].values():
            assert row["seconds"] > 0
            assert row["bytes"] > 0
            assert row["peak_memory_bytes"] > 50e6
    assert whole["stages"]["extract"]["bytes"] > 4 * 256 * 4 * small["samples"] * 0.2
    assert set(whole["metrics"]) == {"category", "unseen"}
    for number in whole["workers"].values():
        assert number > 0
    assert list(report["projection"]["stages"]) == stages
    for stage in stages:
        assert f"\n  {stage} " in result.stderr
    assert str(tmp_path / "rehearsals/tuberlin.json") in result.stderr
