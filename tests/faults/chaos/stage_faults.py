"""All stages of an experiment in one process, killed at a call by which it changes its workspace.

Without Prefect and Dask, so that a seed kills at the very same place; `chain_faults` has both.
"""

from __future__ import annotations

import math
import random
import shutil
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import children
from experiment import conftest, draw_pictures, manifests, unlike_expected, write_experiment
from interposed import Call, Fault, interpose
from outcomes import FaultOutcome

STAMP = "20260101T000000000000Z"


class Stages:
    """Kills stages below a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        draw_pictures(folder)
        self.file = write_experiment(folder, "local")
        run(self.file, folder / "whole", None)  # here, so that children find all imported
        self.expected = manifests(folder / "whole")
        ended = children.run(partial(run, self.file, folder / "place", None, counted=True))
        if ended.how != "done":
            raise RuntimeError(f"the undisturbed stages {ended.how}: {ended.error}")
        shutil.rmtree(folder / "place")
        self.calls: list[Call] = ended.value

    def faults(self, n: int, seed: int) -> Iterator[Callable[[], FaultOutcome]]:
        """Iterate over `n` kills, the stages in turn."""
        rng = random.Random(seed)
        by_stage: dict[str, list[int]] = {}
        for at, call in enumerate(self.calls):
            by_stage.setdefault(call.phase, []).append(at)
        for number in range(n):
            calls = list(by_stage.values())[number % len(by_stage)]
            how = rng.choice(["half", "half", "before", "after"])
            yield partial(self.killed, Fault(rng.choice(calls), how))  # type: ignore[arg-type]

    def killed(self, fault: Fault) -> FaultOutcome:
        """Kill the stages at one call, run them again and compare."""
        call, place = self.calls[fault.at], self.folder / "place"
        outcome = FaultOutcome("kill", call.phase, f"{fault.how} call {fault.at} ({call.name})")
        started = time.monotonic()
        ended = children.run(partial(run, self.file, place, fault))
        if ended.how != "killed":
            outcome.wrong.append(f"the process {ended.how}: {ended.error}")
        compare = partial(unlike_expected, place, self.expected)
        for look in (partial(compare, partly=True), None, compare):
            ended = children.run(look or partial(run, self.file, place, None))
            if ended.how != "done":
                outcome.wrong.append(f"a process {ended.how}: {ended.error}")
            elif look:
                outcome.wrong += ended.value
            else:
                outcome.cost = round(ended.seconds, 1)
        outcome.seconds = round(time.monotonic() - started, 1)
        shutil.rmtree(place, ignore_errors=True)
        return outcome


def run(file: Path, place: Path, fault: Fault | None, *, counted: bool = False) -> list[Call]:
    """Run all stages in this process, as the flow does; returns the calls that were made."""
    import zarr
    from prefect.states import State

    from flows.chain import Chain
    from flows.configuration.load import load_experiment
    from flows.selection import Selection
    from tasks.workers import rounds
    from tasks.workspace import Workspace

    zarr.config.set({"async.concurrency": 1, "threading.max_workers": 1})
    rounds.SHARE = math.inf  # else it depends on the time which rounds save their state
    calls = interpose(place, fault) if fault or counted else None

    class Here(Chain):
        def stage(self, name: str, task: Any, /, **arguments: Any) -> Any:
            if calls:
                calls.phase = name
            mode = self.selection.mode(name)
            result = task.fn(workspace=self.workspace, mode=mode, **arguments)
            return self.record.add(result.data if isinstance(result, State) else result)

        def search_ahead(self, searches: Any) -> None:
            """Leave each search to its stage, which needs no cluster."""

        def train_ahead(self, recipes: Any) -> Any:
            return {}

    workspace = Workspace(place)
    with conftest.extract_here(), workspace.store.in_use():
        record = Here(load_experiment(str(file)), workspace, Selection(None, None, ())).run()
        if calls:
            calls.phase = "record of the run"
        summary = record.summary(workspace.store)
        workspace.record_run(record.experiment, STAMP, {**summary, "all_artifacts": []})
    return calls.made if calls else []
