"""``cppcl sweep``: what it prints, where it stops, what it leaves."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from storage import Reference

Command = Callable[..., Any]


@pytest.fixture(scope="module")
def swept(finished_run, cppcl, tmp_path_factory) -> Any:
    """Workspace, result and arguments of a sweep where the experiment itself was run before."""
    place = finished_run.copy(tmp_path_factory.mktemp("sweep") / "workspace")
    arguments = ("sweep", finished_run.file, "cprl.alpha=[0.01, 0.02]", "--score", "map")
    arguments += ("--set", "queries=0", "--workspace", place.root, "--json")
    return place, cppcl(*arguments), arguments


@pytest.mark.flow
class TestFinishedSweep:
    """What a sweep leaves."""

    def test_json(self, swept, finished_run):
        place, result, _ = swept
        assert result.code == 0, result.stderr
        assert result.stdout.count("\n") == 1
        summary = result.json()
        assert list(summary) == [
            "experiment",
            "score",
            "axes",
            "combinations",
            "failed",
            "artifacts",
            "cached",
        ]
        assert summary["axes"] == {"cprl.alpha": [0.01, 0.02]}
        same, changed = summary["combinations"]
        # The first is the experiment as it was run: only its report is new.
        assert [stage for stage, cached in same["cached"].items() if not cached] == ["report"]
        assert same["metrics"] == finished_run.summary["metrics"]
        assert not changed["cached"]["train"]
        assert changed["cached"]["extract"]
        assert place.store.find(Reference("sweep", summary["artifacts"]["sweep"]))

    def test_terminal(self, swept):
        _, result, _ = swept
        lines = result.stderr.splitlines()
        assert "combination 1 of 2: cprl.alpha=0.01" in lines
        assert "combination 2 of 2: cprl.alpha=0.02" in lines
        assert "tiny-sweep-cprl-alpha, instance: mAP, per cent" in result.stderr
        first = result.json()["combinations"][0]["metrics"]["instance"]["cprl"]
        shown = f"{100 * first['map']:.1f} ± {100 * first['map_std']:.1f}"
        (row,) = (line for line in lines if line.split()[:1] == ["0.01"] and shown in line)
        assert row.split()[1] == shown.split()[0]
        paths = {line.partition(": ")[0]: Path(line.partition(": ")[2]) for line in lines[-3:]}
        assert {name: path.suffix for name, path in paths.items()} == {
            "table": ".csv",
            "plot": ".png",
            "page": ".html",
        }
        assert paths["plot"].read_bytes().startswith(b"\x89PNG")
        rows = list(csv.DictReader(io.StringIO(paths["table"].read_text())))
        means = {
            (row["cprl.alpha"], row["protocol"], row["method"]): float(row["mean"]) for row in rows
        }
        assert means["0.01", "instance", "cprl"] == first["map"]
        assert len(means) == 2 * 3
        assert "every stage was cached" not in result.stderr

    def test_second_sweep_is_cached(self, swept, cppcl):
        _, result, arguments = swept
        again = cppcl(*arguments, code=0)
        assert "every stage was cached" in again.stderr
        assert again.json()["artifacts"] == result.json()["artifacts"]

    def test_nothing_of_it_or_of_the_experiment_is_collected(self, swept, finished_run, cppcl):
        place, _, _ = swept
        dry = cppcl("store", "gc", "--dry-run", "--workspace", place.root)
        assert dry.stdout == "would remove 0 artifacts\n"
        report = cppcl("report", "tiny", "--workspace", place.root)
        assert finished_run.summary["artifacts"]["report"] in report.stdout

    def test_combinations_that_fail_are_named_at_the_end(
        self, swept, finished_run, cppcl, monkeypatch
    ):
        import flows.sweep

        place, done, _ = swept
        run = flows.sweep.run_combination

        def fail_at_2(experiment: str, combination: Any, place: Any) -> dict[str, Any]:
            if combination.values["cprl.alpha"] == 0.02:
                return {"values": combination.values, "error": "no space left"}
            return run(experiment, combination, place)

        monkeypatch.setattr(flows.sweep, "run_combination", fail_at_2)
        arguments = ("--set", "queries=0", "--workspace", place.root, "--json")
        for _ in range(2):
            result = cppcl("sweep", finished_run.file, "cprl.alpha=[0.02, 0.01]", *arguments)
        assert result.code == 1
        assert "every stage was cached" not in result.stderr
        assert result.stderr.splitlines()[-2:] == [
            "cppcl: 1 of 2 combinations failed; what was finished is kept, so give the same "
            "command again after mending:",
            "  cprl.alpha=0.02: no space left",
        ]
        summary = json.loads(result.stdout)
        assert summary["failed"] == 1
        assert summary["artifacts"]["sweep"] != done.json()["artifacts"]["sweep"]
        result = cppcl("sweep", finished_run.file, "cprl.alpha=[0.02]", *arguments, code=1)
        assert "table: " not in result.stderr
        assert result.json()["artifacts"] == {}
