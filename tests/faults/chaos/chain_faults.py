"""Runs of a tiny experiment, of which something is killed while a chosen stage is at work.

After each fault the experiment is run again, with a cluster that nobody disturbs, and every
artifact of the store must have the manifest, with the digests, of an undisturbed run.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import children
import psutil
from chain_kinds import KINDS, Kind, Struck, end_frozen_workers
from experiment import draw_pictures, manifests, unlike_expected, write_experiment
from foreign import CabledCluster, ForeignCluster
from outcomes import FaultOutcome
from starter import Starter

MARK = "CPPCL_CHAOS_MARK"
# Not Prefect, whose event loops do not outlive a fork.
PRELOADED = {
    "cppcl",
    "matplotlib",
    "numba",
    "PIL",
    "scipy",
    "skimage",
    "sklearn",
    "storage",
    "torch",
}
WITH_WORKERS = ("extract", "fold-scores", "train")
CLUSTERS = {"foreign": ForeignCluster, "cabled": CabledCluster}
ADDRESSES = {"local": "local"}
PAST = ", which the run was past"
STAGES = ("fetch", "split", *WITH_WORKERS, "curricula", "encode", "evaluate", "report")


class Runs:
    """Puts faults into runs; holds a Prefect server and a cluster for the runs that finish."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stack = ExitStack()

    def __enter__(self) -> Runs:
        from prefect.settings import PREFECT_API_URL
        from prefect.testing.utilities import prefect_test_harness

        from tasks.cluster.session import cluster_session

        self.stack.enter_context(prefect_test_harness(server_startup_timeout=600))
        self.server = str(PREFECT_API_URL.value())
        session = self.stack.enter_context(cluster_session(workers=2, memory_per_worker="2GiB"))
        self.shared = str(session.client().scheduler.address)
        draw_pictures(self.folder)
        self.finish(self.folder / "whole")
        self.expected = manifests(self.folder / "whole")
        # What a run imports, so that each run need not.
        modules = [m for m in sorted(sys.modules) if m.partition(".")[0] in PRELOADED]
        self.starter = Starter({"PREFECT_API_URL": self.server}, modules)
        self.stack.callback(self.starter.close)
        return self

    def __exit__(self, *error: Any) -> None:
        self.stack.close()

    def faults(self, n: int, seed: int) -> Iterator[Callable[[], FaultOutcome]]:
        """Iterate over `n` faults; every kind in turn, at a place drawn from the seed."""
        rng = random.Random(seed)
        for number in range(n):
            kind = KINDS[number % len(KINDS)]
            stage = rng.choice(WITH_WORKERS if kind.at_work else STAGES)
            most = sum(name.startswith(f"{stage}/") for name in self.expected)
            nth, delay, draw = (
                rng.randint(1, min(3, most)),
                rng.random() * 0.3,
                rng.getrandbits(32),
            )
            yield partial(self.disturbed, kind, stage, nth, delay, draw)

    def disturbed(self, kind: Kind, stage: str, nth: int, delay: float, draw: int) -> FaultOutcome:
        """Put a fault into a run; once more, and earlier, if the run was past that place."""
        outcome = self.disturbed_once(kind, stage, nth, delay, draw)
        if PAST in outcome.detail and not outcome.wrong:
            outcome = self.disturbed_once(kind, stage, 1, 0, draw)
            if PAST in outcome.detail:
                outcome.wrong.append("nothing was struck")
        return outcome

    def disturbed_once(
        self, kind: Kind, stage: str, nth: int, delay: float, draw: int
    ) -> FaultOutcome:
        """Start a run, put a fault into it, see how it ends, finish it and compare."""
        outcome = FaultOutcome(kind.name, stage, f"{delay:.3f} s after change {nth} of the stage")
        place = self.folder / "place"
        started = time.monotonic()
        with ExitStack() as stack:
            foreign = None
            if kind.cluster in CLUSTERS:
                foreign = stack.enter_context(CLUSTERS[kind.cluster]())
            address = foreign.address if foreign else ADDRESSES.get(kind.cluster, self.shared)
            stack.callback(end_frozen_workers)
            run = stack.enter_context(Run(self, place, address))
            other = stack.enter_context(Run(self, place, address)) if kind.twice else None
            if run.wait_for(lambda: changes(place, stage) >= nth):
                time.sleep(delay)
            at = time.monotonic()
            if run.code is None:
                kind.act(Struck(run.pid, foreign, random.Random(draw)))
            else:
                outcome.detail += PAST
            code = run.end()
            outcome.detail += f"; exit code {code} {time.monotonic() - at:.0f} s later"
            if code is None or (code and (kind.survived or PAST in outcome.detail)):
                outcome.wrong.append(f"the run ended with exit code {code}: {run.last_words()}")
            if other and (code := other.end()) != 0:
                outcome.wrong.append(f"the other run ended with {code}: {other.last_words()}")
        outcome.wrong += unlike_expected(place, self.expected, partly=True)
        self.finish(place)
        outcome.cost = round(time.monotonic() - at, 1)
        outcome.wrong += unlike_expected(place, self.expected)
        if left := marked(str(place)):
            outcome.wrong.append(f"still running: {left}")
        outcome.seconds = round(time.monotonic() - started, 1)
        shutil.rmtree(place, ignore_errors=True)
        return outcome

    def finish(self, place: Path) -> None:
        """Run to the end, in this process and without a fault."""
        from deployments.cli import main

        file = write_experiment(self.folder, self.shared)
        with Path(os.devnull).open("w") as nowhere:
            kept, sys.stderr, sys.stdout = (sys.stderr, sys.stdout), nowhere, nowhere
            try:
                code = main(["run", str(file), "--workspace", str(place)])
            finally:
                sys.stderr, sys.stdout = kept
        if code:
            raise RuntimeError(f"the run that was to finish {place} ended with {code}")


class Run:
    """``cppcl run`` with all its children in a session of their own."""

    def __init__(self, runs: Runs, place: Path, cluster: str) -> None:
        self.starter, self.log = runs.starter, runs.folder / "run.log"
        self.pid = self.starter.start(
            ["run", str(write_experiment(runs.folder, cluster)), "--workspace", str(place)],
            {MARK: str(place)},
            self.log,
        )

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *error: Any) -> None:
        if self.code is None:
            os.killpg(self.pid, signal.SIGKILL)
            self.end()

    @property
    def code(self) -> int | None:
        """Exit code, once it has ended."""
        return self.starter.codes.get(self.pid)

    def wait_for(self, condition: Callable[[], bool]) -> bool:
        """True if a condition comes to hold before the run ends."""
        give_up = time.monotonic() + children.TIMEOUT_S
        while not condition():
            if time.monotonic() > give_up:
                raise RuntimeError(
                    f"nothing to disturb in {children.TIMEOUT_S} s: {self.last_words()}"
                )
            if self.code is not None:
                return False
            time.sleep(0.01)
        return True

    def end(self) -> int | None:
        """Exit code, or None if it does not end."""
        give_up = time.monotonic() + children.TIMEOUT_S
        while self.code is None and time.monotonic() < give_up:
            time.sleep(0.02)
        return self.code

    def last_words(self) -> str:
        """The end of its output."""
        return " ".join(self.log.read_text(errors="replace").split())[-200:]


def changes(place: Path, stage: str) -> int:
    """How far a stage is: its artifacts, and the chunks of those that are unfinished."""
    folder = place / "store" / stage
    chunks = sum(1 for _ in folder.glob("*.partial/arrays/*/c.*"))
    return chunks + sum(1 for _ in folder.glob("*"))


def marked(mark: str) -> list[str]:
    """Commands of the processes that a run left, after 20 s at most."""
    end = time.monotonic() + 20
    while True:
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get(MARK) == mark:
                    found.append(" ".join(process.cmdline())[:80])
            except psutil.Error:
                continue
        if not found or time.monotonic() > end:
            return found
        time.sleep(0.2)
