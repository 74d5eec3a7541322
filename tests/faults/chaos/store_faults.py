"""Faults put into a store one by one, and checks of the store afterwards.

After each fault the store is opened anew: whatever is published must equal what an undisturbed job
publishes. Then the job is run to its end, and every file but ``run.json`` must be as after an
undisturbed job, byte for byte.
"""

from __future__ import annotations

import errno
import random
import shutil
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import children
import damage
from interposed import NEED_ROOM, Call, Calls, Fault, interpose
from outcomes import FaultOutcome
from store_job import KEPT, Job

from storage import DamagedArtifactError, Store

Tree = dict[str, bytes]
CHANGES = frozenset({"write", "rename", "replace", "exchange", "fsync"})


def job(root: Path, fault: Fault | None = None, pauses: int | None = None, **options: Any) -> Any:
    """Run the job in this process, which is thrown away; returns what it computed and called."""
    import zarr

    zarr.config.set({"async.concurrency": 1, "threading.max_workers": 1})
    calls = interpose(root, fault, pauses)

    def enter(phase: str) -> None:
        calls.phase = phase

    return Job(root, enter).run(**options), calls.made


def tree(root: Path) -> Tree:
    """Every file that must be the same after any fault."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.name != "run.json" and "locks" not in path.parts
    }


def inspect(root: Path, expected: Tree) -> list[str]:
    """Return what is published and differs from what is expected; runs in a child."""
    store = Store(root)
    wrong = [f"{p.reference} {p.name}: {p.message}" for p in store.verify()]
    for artifact in store.artifacts():
        for path in artifact.path.rglob("*"):
            name = str(path.relative_to(root))
            if name in expected and path.read_bytes() != expected[name]:
                wrong.append(f"{name} is published and is not as expected")
    return wrong


def read_all(root: Path) -> list[str]:
    """Read everything; return what is wrong without an error."""
    store, wrong = Store(root), []
    for reference in KEPT:
        try:
            artifact = store.open(reference)
            names = artifact.names
            digests = {**artifact.manifest["arrays"], **artifact.manifest["files"]}
        except (DamagedArtifactError, LookupError):
            continue
        for name in names:
            try:
                if name in artifact.manifest["arrays"]:
                    found = damage.digest(artifact.array(name))
                else:
                    found = damage.digest(artifact.bytes(name))
            except (DamagedArtifactError, LookupError):
                continue
            if found != digests[name]["sha256"]:
                wrong.append(f"{reference} {name} was read, and is wrong")
    return wrong


class Harness:
    """Puts faults into stores below a folder.

    Parameters
    ----------
    folder : Path
        Where the stores are made; each is removed when it is done with.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        ended = children.run(partial(job, folder / "whole"))
        if ended.how != "done":
            raise RuntimeError(f"the undisturbed job {ended.how}: {ended.error}")
        self.calls: list[Call] = ended.value[1]
        self.whole = folder / "whole"
        self.expected = tree(self.whole)

    def faults(self, n: int, seed: int) -> Iterator[Callable[[], FaultOutcome]]:
        """Iterate over `n` faults: a kill at every write, rename and flush first.

        They are half of all; as many as there is room for, if there are more, and other calls if
        there are fewer. Where there are many, a kill at every call of the collection follows.
        """
        rng = random.Random(seed)
        every = list(range(len(self.calls)))
        kills = [at for at in every if self.calls[at].name in CHANGES]
        share = max(n // 2, min(len(kills), round(0.55 * n)))
        if share < len(kills):
            kills = rng.sample(kills, share)
        else:
            others = sorted(set(every) - set(kills))
            kills += rng.sample(others, min(len(others), share - len(kills)))
        for at in sorted(kills):
            how = rng.choice(["half", "half", "before", "after"])
            yield partial(self.stopped, "kill", Fault(at, how))  # type: ignore[arg-type]
        needing = [at for at, call in enumerate(self.calls) if call.name in NEED_ROOM]
        for number in range(n - len(kills)):
            draw = rng.randrange(2**31)
            at = rng.choice(needing)
            kinds: list[Callable[[], FaultOutcome]] = [
                partial(self.stopped, "no room", Fault(at, "error", errno.ENOSPC, lasting=True)),
                partial(self.damaged, draw),
                partial(self.raced, draw, None),
                partial(self.damaged_unfinished, draw),
                partial(self.stopped, "no room once", Fault(at, "error", errno.ENOSPC)),
                partial(self.damaged, draw),
                partial(self.raced, draw, rng.randrange(len(self.calls))),
                partial(self.killed_repair, draw),
                partial(self.stopped, "disk error", self.disk_error(draw)),
                partial(self.damaged, draw),
            ]
            yield kinds[number % len(kinds)]
        if n >= len(every) / 2:
            for at in every:
                if self.calls[at].phase == "collecting" and at not in kills:
                    yield partial(self.stopped, "kill", Fault(at, "before"))

    def disk_error(self, draw: int) -> Fault:
        """Fail to flush or to write."""
        found = [at for at, call in enumerate(self.calls) if call.name in ("fsync", "write")]
        return Fault(random.Random(draw).choice(found), "error", errno.EIO)

    def stopped(self, kind: str, fault: Fault) -> FaultOutcome:
        """Stop a job at one of its calls, by a kill or an error."""
        call = self.calls[fault.at]
        how = fault.how if kind == "kill" else "at"
        outcome = FaultOutcome(kind, call.phase, f"{how} call {fault.at} ({call.name})")
        with self.timed(outcome) as root:
            ended = children.run(partial(job, root, fault))
            accepted = {"killed"} if kind == "kill" else {"failed", "done"}
            outcome.wrong += unlike(ended, accepted)
            named = ended.error.startswith("StoreAccessError") and "disk is full" in ended.error
            if kind.startswith("no room") and ended.how == "failed" and not named:
                outcome.wrong.append(f"not reported as a full disk: {ended.error}")
            self.finish(root, outcome)
        return outcome

    def damaged(self, draw: int) -> FaultOutcome:
        """Damage a file of a whole store, read, repair and run."""
        outcome = FaultOutcome("damage", "", "")
        with self.timed(outcome, self.whole) as root:
            hurt = damage.damage(root, draw, lambda path: ".partial" not in str(path))
            outcome.where, outcome.detail = hurt.label, str(hurt)
            outcome.wrong += self.listed(partial(read_all, root))
            outcome.wrong += self.listed(partial(_found_and_repaired, root, str(hurt.path)))
            self.finish(root, outcome, blocks=hurt.blocks())
        return outcome

    def killed_repair(self, draw: int) -> FaultOutcome:
        """Damage a file of a whole store, and kill the repair."""
        outcome = FaultOutcome("killed repair", "", "")
        with self.timed(outcome, self.whole) as root:
            hurt = damage.damage(root, draw, lambda path: "features/" in str(path))
            shutil.copytree(root, probe := root.with_name("probe"))
            n_calls = children.run(partial(_repair, probe, None)).value
            shutil.rmtree(probe)
            at = random.Random(draw).randrange(n_calls)
            outcome.where, outcome.detail = hurt.label, f"{hurt}, kill at call {at} of {n_calls}"
            outcome.wrong += unlike(
                children.run(partial(_repair, root, Fault(at, "before"))), {"killed"}
            )
            outcome.wrong += self.listed(partial(read_all, root))
            outcome.wrong += unlike(children.run(partial(_repair, root, None)), {"done"})
            self.finish(root, outcome)
        return outcome

    def damaged_unfinished(self, draw: int) -> FaultOutcome:
        """Kill a job, and damage what it left unfinished."""
        rng = random.Random(draw)
        making = [at for at, call in enumerate(self.calls) if call.phase != "collecting"]
        at = rng.choice(making)
        outcome = FaultOutcome("kill and damage", self.calls[at].phase, f"kill at call {at}")
        with self.timed(outcome) as root:
            outcome.wrong += unlike(
                children.run(partial(job, root, Fault(at, "before"))), {"killed"}
            )
            hurt = damage.damage(root, draw, lambda path: ".partial/" in str(path))
            outcome.detail += f", {hurt}" if hurt else ", nothing was unfinished"
            self.finish(root, outcome, tries=3)
        return outcome

    def raced(self, draw: int, killed: int | None) -> FaultOutcome:
        """Run two jobs at once, one of which may be killed, while a third process reads."""
        kind = "two at once" if killed is None else "two at once, one killed"
        outcome = FaultOutcome(
            kind, "everywhere", f"seed {draw}" + f", kill at {killed}" * bool(killed)
        )
        with self.timed(outcome) as root:
            fault = None if killed is None else Fault(killed, "half")
            backwards = bool(draw % 2)
            both = [
                children.Child(partial(job, root, fault, draw)),
                children.Child(partial(job, root, None, draw + 1, backwards=backwards)),
            ]
            reader = children.Child(partial(_keep_reading, root, self.expected, draw))
            ended = [child.wait() for child in both]
            outcome.wrong += unlike(ended[0], {"done"} if killed is None else {"killed", "done"})
            outcome.wrong += unlike(ended[1], {"done"})
            outcome.wrong += unlike(read := reader.wait(), {"done"})
            outcome.wrong += read.value or []
            if killed is None and not outcome.wrong:
                made = [piece for one in ended for piece in one.value[0]]
                twice = {name for name in ("table", "model") if made.count(name) != 1}
                outcome.wrong += [f"made {made.count(name)} times: {name}" for name in twice]
            self.finish(root, outcome)
        return outcome

    def finish(
        self, root: Path, outcome: FaultOutcome, *, tries: int = 1, blocks: int | None = None
    ) -> None:
        """Open the store anew, run the job to its end and compare."""
        outcome.wrong += self.listed(partial(inspect, root, self.expected))
        ended = children.Ended("failed")
        while tries and ended.how == "failed":
            ended = children.run(partial(job, root))
            tries -= 1
        outcome.wrong += unlike(ended, {"done"})
        if ended.how != "done":
            return
        made = ended.value[0]
        outcome.cost = len(made)
        if blocks is not None and (n := sum(m.startswith("features ") for m in made)) != blocks:
            outcome.wrong.append(f"{n} blocks were made again instead of {blocks}")
        outcome.wrong += self.listed(partial(inspect, root, self.expected))
        found = tree(root)
        for name in sorted(found.keys() ^ self.expected.keys()):
            outcome.wrong.append(f"{name} is {'left over' if name in found else 'missing'}")
        for name in found.keys() & self.expected.keys():
            if found[name] != self.expected[name]:
                outcome.wrong.append(f"{name} has other bytes")

    def listed(self, look: Callable[[], list[str]]) -> list[str]:
        """What a child finds wrong."""
        ended = children.run(look)
        return unlike(ended, {"done"}) + (ended.value or [])

    def timed(self, outcome: FaultOutcome, copy: Path | None = None) -> _Place:
        """Make a folder for one fault."""
        return _Place(self.folder / "store", outcome, copy)


class _Place:
    """A store for one fault, timed and removed at the end."""

    def __init__(self, root: Path, outcome: FaultOutcome, copy: Path | None) -> None:
        self.root, self.outcome, self.copy = root, outcome, copy

    def __enter__(self) -> Path:
        self.started = time.monotonic()
        if self.copy:
            shutil.copytree(self.copy, self.root)
        return self.root

    def __exit__(self, *error: object) -> None:
        self.outcome.seconds = round(time.monotonic() - self.started, 2)
        shutil.rmtree(self.root, ignore_errors=True)


def unlike(ended: children.Ended, accepted: set[str]) -> list[str]:
    """Say how a child ended, if not as it should."""
    return [] if ended.how in accepted else [f"a process {ended.how}: {ended.error}".rstrip(": ")]


def _found_and_repaired(root: Path, path: str) -> list[str]:
    store = Store(root)
    # Of an intact chunk in the wrong place, the array is named.
    places = (path, path.rpartition("/")[0] + ": ")
    named = any(place in problem.message for problem in store.verify() for place in places)
    wrong = [] if named else [f"verification does not name {path}"]
    store.repair()
    return wrong + [f"after the repair: {problem.message}" for problem in store.verify()]


def _repair(root: Path, fault: Fault | None) -> int:
    calls: Calls = interpose(root, fault)
    Store(root).repair()
    return len(calls.made)


def _keep_reading(root: Path, expected: Tree, seed: int) -> list[str]:
    """Read what is published, again and again, while others write."""
    rng, wrong, store = random.Random(seed), [], Store(root)
    end = time.monotonic() + 110
    n_codes = 0
    while time.monotonic() < end and n_codes < 5:
        time.sleep(rng.random() * 0.01)
        for reference in KEPT:
            artifact = store.find(reference)
            if artifact is None:
                continue
            for name in artifact.names:
                if name in artifact.manifest["arrays"]:
                    artifact.array(name)
                else:
                    artifact.bytes(name)
            manifest = artifact.path / "manifest.json"
            if manifest.read_bytes() != expected[str(manifest.relative_to(root))]:
                wrong.append(f"{reference} is another one")
            n_codes += reference == KEPT[-1]
    if n_codes < 5:
        wrong.append("nothing could be read")
    return wrong
