"""What all of the TU-Berlin Extension takes, by runs on made pictures.

Run from the project's folder::

    python tests/benchmarks/rehearse_tuberlin.py WORKSPACE [--samples 20000] [--set KEY=VALUE]

It makes pictures in the proportion of the data set (`made_pictures`), runs the experiment
``tuberlin`` on a quarter of them and then on all, and prints seconds, bytes stored and peak memory
of every stage, as measured and as projected to the whole data set. What an earlier rehearsal
stored in the workspace is used again, with the seconds that it took.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parent))

from made_pictures import make_pictures

from cppcl.datasets.emoji import Emoji
from deployments.cli import quieten
from deployments.server import prepare_prefect
from deployments.terminal import Terminal, size_text
from flows.configuration.experiment import Experiment
from flows.configuration.load import load_experiment
from storage import Artifact, Reference
from tasks.stages.names import STAGES
from tasks.workspace import Workspace

N_SKETCHES, N_IMAGES = 20_000, 204_000
N_CLASSES = 250
PARTS = (4, 1)
"""Shares of the samples that are run, one after the other."""
LEAST_SAMPLES = 1000
EXPONENTS = {"evaluate": 2.0}
"""Growth of a stage in the samples: rankings compare queries with galleries; others are linear."""
PIXELS = "{name: pixels, size: [16, 16]}"


def configure(samples: int, overrides: Sequence[str], root: Path) -> tuple[Experiment, list[str]]:
    """Configuration of the experiment with so many samples, and the names of its classes."""
    n_sketches = of_sketches(samples)
    n_classes = min(N_CLASSES, max(4, n_sketches // 4))
    protocols = load_experiment("tuberlin").protocols
    named = protocols["unseen"].split.labels
    n_unseen = min(len(named), max(2, n_classes * len(named) // N_CLASSES))
    width = max(2, min(n_classes - n_unseen - 1, 64))
    small = [
        f"dataset.root={json.dumps(str(root))}",
        f"features={{sketch: {PIXELS}, image: {PIXELS}}}",
        # Of the 80 sketches of a class 10 are queries, which few sketches allow as a share alone.
        "protocols.category.split.test_sketches=0.125",
        *(
            f"protocols.{protocol}.methods.{option}={width}"
            for protocol in protocols
            for option in (
                "cprl.n_atoms",
                "cprl.preparation.n_components",
                "class_cca.n_directions",
            )
        ),
    ]
    document = load_experiment("tuberlin", [*small, *overrides]).model_dump()
    document["name"] = f"tuberlin-rehearsal-{samples}"
    document["protocols"]["unseen"]["split"]["labels"] = named[:n_unseen]
    classes = [*named[:n_unseen], *(f"class {k:03}" for k in range(n_classes - n_unseen))]
    return Experiment.model_validate(document), classes


def of_sketches(samples: int) -> int:
    """Sketches among so many samples."""
    return round(samples * N_SKETCHES / (N_SKETCHES + N_IMAGES))


def measure(samples: int, overrides: Sequence[str], workspace: Workspace) -> dict[str, Any]:
    """Make the pictures, run the experiment, and return the figures of each stage."""
    from flows.experiment import run_experiment

    root = workspace.root / f"pictures-{samples}"
    experiment, classes = configure(samples, overrides, root)
    n_sketches = of_sketches(samples)
    make_pictures(
        root,
        Emoji().fetch(workspace.root / "data"),
        classes=classes,
        n_sketches=n_sketches,
        n_images=samples - n_sketches,
    )
    run_experiment(configuration=experiment, workspace=workspace.root)
    _, record = workspace.find_run(experiment.name)
    made = [workspace.store.open(Reference.parse(text)) for text in record["all_artifacts"]]
    return {
        stage: figures_of(of_stage)
        for stage in STAGES
        if (of_stage := [artifact for artifact in made if artifact.reference.stage == stage])
    }


def figures_of(artifacts: Sequence[Artifact]) -> dict[str, float]:
    """Seconds, bytes, and peak memory of the run's process and of a worker, of one stage."""
    workers = [
        worker["peak_memory_bytes"]
        for artifact in artifacts
        for worker in artifact.run["notes"].get("workers", {}).values()
    ]
    return {
        "seconds": sum(artifact.run["seconds"] for artifact in artifacts),
        "bytes": sum(artifact.n_bytes for artifact in artifacts),
        "memory": max(artifact.run["peak_memory_bytes"] for artifact in artifacts),
        "worker": max(workers, default=0),
    }


def project(sizes: Sequence[int], values: Sequence[float], target: int, exponent: float) -> float:
    """Value at another size, by ``a + b n^exponent`` through two that were measured.

    Both a and b are at least 0.

    Parameters
    ----------
    sizes, values : sequences of two numbers
        Samples, ascending, and what was measured with each.
    target : int
        Samples to project to.
    exponent : float
        Of the growth.
    """
    small, large = (float(size) ** exponent for size in sizes)
    slope = (values[1] - values[0]) / (large - small)
    slope = min(max(slope, 0.0), values[1] / large)
    return values[1] + slope * (float(target) ** exponent - large)


def row(figures: dict[str, float]) -> list[str]:
    """Figures as words."""
    memory = [size_text(int(figures[name])) for name in ("bytes", "memory")]
    worker = size_text(int(figures["worker"])) if figures["worker"] else "-"
    return [f"{figures['seconds']:.1f}", *memory, worker]


def main() -> None:
    """Rehearse, and print the figures of every stage."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("workspace", type=Path, help="folder of pictures and artifacts")
    parser.add_argument("--samples", type=int, default=20_000, metavar="N")
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar="K=V")
    options = parser.parse_args()
    if options.samples < LEAST_SAMPLES:
        parser.error(f"--samples {options.samples} is too few; give {LEAST_SAMPLES} or more")
    quieten()
    workspace = Workspace(options.workspace.absolute())
    sizes = [options.samples // part for part in PARTS]
    with Terminal(sys.stderr) as terminal:
        prepare_prefect(terminal, workspace.root, verbose=False)
        measured = [measure(samples, options.overrides, workspace) for samples in sizes]
    whole = N_SKETCHES + N_IMAGES
    projected = {
        stage: {
            name: project(
                sizes,
                [figures[stage][name] for figures in measured],
                whole,
                EXPONENTS.get(stage, 1.0) if name == "seconds" else 1.0,
            )
            for name in measured[-1][stage]
        }
        for stage in measured[-1]
    }
    names = ["seconds", "bytes", "peak memory", "of a worker"]
    for size, stages in ((sizes[-1], measured[-1]), (whole, projected)):
        kind = "measured with" if stages is measured[-1] else "projected to"
        rows = [[stage, *row(figures)] for stage, figures in stages.items()]
        Terminal(sys.stdout).table(f"{kind} {size:,} pictures", ["stage", *names], rows)


if __name__ == "__main__":
    main()
