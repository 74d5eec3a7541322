"""Rehearse an experiment on made pictures, and say what the whole data set would take."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cppcl.datasets.emoji import Emoji
from cppcl.datasets.rehearsal import make_rehearsal_pictures
from cppcl.errors import InputError
from flows.configuration.experiment import Experiment
from flows.configuration.load import load_experiment
from flows.projection import EXPONENTS, project
from storage import Reference, Store
from storage.files import pretty_json, write_atomically
from tasks.progress import Progress, listening, log, tell
from tasks.stages.names import STAGES
from tasks.workspace import Workspace

REHEARSED = ("tuberlin",)
N_SKETCHES, N_IMAGES = 20_000, 204_000
"""Of the whole data set; a rehearsal keeps the proportion."""
LEAST_SAMPLES = 1000
PARTS = (4, 1)
"""A rehearsal runs on a quarter of its samples first, then on all."""
N_CLASSES = 250
SAMPLING_S = 0.1
_PIXELS = "{name: pixels, size: [16, 16]}"
CHEAP = f"features={{sketch: {_PIXELS}, image: {_PIXELS}}}"
"""Features of a rehearsal, unless others are asked for."""


@dataclass(frozen=True)
class Size:
    """How much is rehearsed with.

    Attributes
    ----------
    n_sketches, n_images : int
        Pictures.
    n_classes : int
        Classes that they are spread over.
    """

    n_sketches: int
    n_images: int
    n_classes: int

    @classmethod
    def of(cls, samples: int) -> Size:
        """Size of so many samples in all, in the proportion of the data set."""
        n_sketches = round(samples * N_SKETCHES / (N_SKETCHES + N_IMAGES))
        return cls(n_sketches, samples - n_sketches, min(N_CLASSES, max(4, n_sketches // 4)))

    @property
    def samples(self) -> int:
        """Pictures in all."""
        return self.n_sketches + self.n_images

    def classes(self, named: Sequence[str]) -> list[str]:
        """Names of the classes: an eighth are those that the experiment names, in its order."""
        n_named = self.n_unseen(named)
        return [*named[:n_named], *(f"class {k:03}" for k in range(self.n_classes - n_named))]

    def n_unseen(self, named: Sequence[str]) -> int:
        """Classes that training never sees."""
        return min(len(named), max(2, self.n_classes * len(named) // N_CLASSES))


def read_rehearsal(
    name: str, samples: int, overrides: Sequence[str], root: Path
) -> tuple[Size, Experiment]:
    """Configuration of a rehearsal: the experiment, as small as its samples ask for.

    Raises
    ------
    InputError
        If it cannot be rehearsed, or an option is wrong.
    """
    if name not in REHEARSED:
        raise InputError(
            f"experiment {name!r} cannot be rehearsed; one of {', '.join(REHEARSED)} can"
        )
    size = Size.of(samples)
    given = load_experiment(name)
    unseen = given.protocols["unseen"].split.labels  # type: ignore[union-attr]
    n_seen = size.n_classes - size.n_unseen(unseen)
    width = max(2, min(n_seen - 1, 64))
    small = [
        f"dataset.root={json.dumps(str(root))}",
        CHEAP,
        # Of the 80 sketches of a class 10 are queries, which few sketches allow as a share alone.
        "protocols.category.split.test_sketches=0.125",
        *(
            f"protocols.{protocol}.methods.{option}={width}"
            for protocol in given.protocols
            for option in ("cprl.n_atoms", "cprl.n_components", "class_cca.n_directions")
        ),
    ]
    document = load_experiment(name, [*small, *overrides]).model_dump()
    document["name"] = f"{name}-rehearsal-{samples}"
    document["protocols"]["unseen"]["split"]["labels"] = unseen[: size.n_unseen(unseen)]
    return size, Experiment.model_validate(document)


def check_samples(samples: int) -> None:
    """Raise `InputError` if so few samples make no experiment."""
    if samples < LEAST_SAMPLES:
        raise InputError(f"--samples {samples} is too few; give {LEAST_SAMPLES} or more")


def rehearse(
    name: str,
    samples: int,
    overrides: Sequence[str] = (),
    *,
    workspace: Path,
    seconds: float = float("inf"),
) -> dict[str, Any]:
    """Run an experiment on a quarter of the samples and on all, and project to the data set.

    What a rehearsal that was interrupted has made and measured is used again.

    Parameters
    ----------
    name : str
        Experiment.
    samples : int
        Pictures to make.
    overrides : sequence of str
        ``key=value`` changes to its configuration.
    workspace : path
        Where pictures, artifacts and figures go.
    seconds : float
        The larger run is left out if it would take longer than that.

    Returns
    -------
    dict
        ``sizes`` with the figures of each run, and their ``projection``.
    """
    check_samples(samples)
    measured: list[dict[str, Any]] = []
    folder = workspace / "rehearsals"
    for part in (samples // share for share in PARTS):
        root = folder / f"{name}-{part}"
        size, experiment = read_rehearsal(name, part, overrides, root)
        wanted = experiment.model_dump(mode="json", exclude={"dataset"})
        file = folder / f"{name}-{part}.json"
        figures = _read_figures(file, wanted)
        if figures is None:
            if measured and (expected := _expected(measured[-1], part)) > seconds:
                log(
                    f"{part:,} samples would take about {expected / 60:.0f} minutes, more than "
                    f"{seconds / 60:.0f}: figures are of {measured[-1]['samples']:,} alone"
                )
                break
            figures = measure(size, experiment, root, workspace)
            _write_json(file, {"configuration": wanted, "figures": figures})
        measured.append(figures)
    report = {
        "experiment": name,
        "samples": samples,
        "overrides": list(overrides),
        "sizes": measured,
        "projection": projection(measured),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    _write_json(folder / f"{name}.json", report)
    return report


def measure(size: Size, experiment: Experiment, root: Path, workspace: Path) -> dict[str, Any]:
    """Make the pictures, run the experiment, and return what each stage took."""
    from flows.experiment import run_experiment

    started = time.perf_counter()
    unseen = load_experiment("tuberlin").protocols["unseen"].split.labels  # type: ignore[union-attr]
    label = f"{size.samples:,} pictures"
    tell(Progress("pictures", label, 0, 2 * size.n_classes))
    n_written = make_rehearsal_pictures(
        root,
        Emoji().fetch(workspace / "data"),
        classes=size.classes(unseen),
        n_sketches=size.n_sketches,
        n_images=size.n_images,
        on_class=lambda done: tell(Progress("pictures", label, done, 2 * size.n_classes)),
    )
    seconds = time.perf_counter() - started
    tell(Progress("pictures", label, 1, 1, cached=not n_written, seconds=seconds))
    with memory_by_stage() as memory:
        summary = run_experiment(configuration=experiment, workspace=workspace)
    store = Workspace(workspace).store
    _, record = Workspace(workspace).find_run(experiment.name)
    references = [Reference.parse(text) for text in record["all_artifacts"]]
    return {
        "samples": size.samples,
        "sketches": size.n_sketches,
        "images": size.n_images,
        "classes": size.n_classes,
        "pictures": {
            "written": n_written,
            "seconds": round(seconds, 3),
            "bytes": folder_bytes(root),
        },
        "stages": {
            stage: stage_figures(store, of_stage, memory, summary)
            for stage in STAGES
            if (of_stage := [r for r in references if r.stage == stage])
        },
        "workers": worker_figures(store, references),
        "seconds": round(time.perf_counter() - started, 3),
        "metrics": summary["metrics"],
    }


def stage_figures(
    store: Store,
    references: Sequence[Reference],
    memory: dict[str, int],
    summary: dict[str, Any],
) -> dict[str, Any]:
    """Seconds, bytes and peak memory of the artifacts of one stage.

    Seconds are those that their making took, also where this run found them stored.
    """
    artifacts = [store.open(reference) for reference in references]
    stage = references[0].stage
    # A stage that was found stored shows what its own run took.
    sampled = None if summary["cached"][stage] else memory.get(stage)
    peak = sampled or max(artifact.run["peak_memory_bytes"] for artifact in artifacts)
    making = sum(artifact.run["seconds"] for artifact in artifacts)
    return {
        "artifacts": len(artifacts),
        "seconds": round(max(making, summary["seconds"][stage]), 3),
        "bytes": sum(folder_bytes(artifact.path) for artifact in artifacts),
        "peak_memory_bytes": peak,
    }


def worker_figures(store: Store, references: Sequence[Reference]) -> dict[str, Any]:
    """Peak memory of the workers that extracted, and what was declared for them."""
    notes = [store.open(r).run["notes"] for r in references if r.stage == "extract"]
    peaks = [w["peak_memory_bytes"] for note in notes for w in note.get("workers", {}).values()]
    budgets = [note["memory_budget_bytes"] for note in notes if "memory_budget_bytes" in note]
    return {
        "peak_memory_bytes": max(peaks, default=None),
        "memory_budget_bytes": max(budgets, default=None),
        "seconds": round(sum(note["worker_seconds"] for note in notes), 3),
    }


def projection(measured: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Figures of every stage with as many samples as the data set has."""
    target = N_SKETCHES + N_IMAGES
    sizes = [figures["samples"] for figures in measured]
    stages: dict[str, dict[str, float]] = {}
    for stage in measured[-1]["stages"]:
        rows = [figures["stages"][stage] for figures in measured]
        exponent = EXPONENTS.get(stage, 1.0)
        stages[stage] = {
            name: round(project(sizes, [row[name] for row in rows], target, power), digits)
            for name, power, digits in (
                ("seconds", exponent, 3),
                ("bytes", 1.0, None),
                ("peak_memory_bytes", 1.0, None),
            )
        }
    return {
        "sketches": N_SKETCHES,
        "images": N_IMAGES,
        "stages": stages,
        "seconds": round(sum(row["seconds"] for row in stages.values()), 3),
        "bytes": sum(row["bytes"] for row in stages.values()),
        "peak_memory_bytes": max(row["peak_memory_bytes"] for row in stages.values()),
    }


@dataclass
class _Sampler:
    """Largest resident memory of this process in each stage, in bytes."""

    stage: str | None = None
    peaks: dict[str, int] = field(default_factory=dict)

    def hear(self, progress: Progress) -> None:
        self.stage = progress.stage

    def watch(self, ended: threading.Event) -> None:
        import psutil

        process = psutil.Process()
        while not ended.wait(SAMPLING_S):
            if stage := self.stage:
                self.peaks[stage] = max(self.peaks.get(stage, 0), process.memory_info().rss)


@contextmanager
def memory_by_stage() -> Iterator[dict[str, int]]:
    """Largest resident memory of this process in each stage that tells progress, sampled."""
    sampler, ended = _Sampler(), threading.Event()
    thread = threading.Thread(target=sampler.watch, args=(ended,), daemon=True)
    thread.start()
    try:
        with listening(sampler.hear):
            yield sampler.peaks
    finally:
        ended.set()
        thread.join()


def folder_bytes(folder: Path) -> int:
    """Bytes of all files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _expected(figures: dict[str, Any], samples: int) -> float:
    """Seconds of a larger run, by one smaller run alone."""
    at = [figures["samples"]]
    return sum(
        project(at, [row["seconds"]], samples, EXPONENTS.get(stage, 1.0))
        for stage, row in figures["stages"].items()
    )


def _read_figures(file: Path, wanted: dict[str, Any]) -> dict[str, Any] | None:
    """Figures that an earlier rehearsal with the same configuration left, if any."""
    try:
        document = json.loads(file.read_text())
        return dict(document["figures"]) if document["configuration"] == wanted else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write_json(file: Path, document: dict[str, Any]) -> None:
    write_atomically(file, pretty_json(document, str(file)))
