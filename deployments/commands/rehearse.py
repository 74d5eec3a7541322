"""``cppcl rehearse``: an experiment on made pictures, and what the whole data set would take."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from typing import Any

from deployments.server import prefect_ready
from deployments.terminal import Terminal, size_text


def main(options: Namespace) -> int:
    """Rehearse, show the figures of every stage and print where they are kept."""
    from flows.rehearse import check_samples, read_rehearsal, rehearse

    workspace = options.workspace.absolute()
    # Wrong options are told before anything is made.
    check_samples(options.samples)
    read_rehearsal(options.experiment, options.samples, options.overrides, workspace)
    with (
        Terminal(sys.stderr) as terminal,
        prefect_ready(terminal, workspace, verbose=options.verbose),
    ):
        report = rehearse(
            options.experiment,
            options.samples,
            options.overrides,
            workspace=workspace,
            seconds=60 * options.minutes,
        )
    show(report, terminal)
    terminal.message(f"figures: {workspace / 'rehearsals' / options.experiment}.json")
    if options.json:
        print(json.dumps(report))
    return 0


def show(report: dict[str, Any], terminal: Terminal) -> None:
    """Table of the stages: as measured with all samples, and projected."""
    measured, projected = report["sizes"][-1], report["projection"]
    terminal.table(
        f"{report['experiment']}: measured with {measured['sketches']:,} sketches and "
        f"{measured['images']:,} images, and projected to {projected['sketches']:,} and "
        f"{projected['images']:,}; memory is that of the process of the run",
        ["stage", "seconds", "size", "peak memory", "projected", "size then", "memory then"],
        [
            [stage, *figures_text(row), *figures_text(projected["stages"][stage])]
            for stage, row in measured["stages"].items()
        ],
    )
    workers = measured["workers"]
    terminal.message(
        f"pictures: {measured['pictures']['seconds']:.1f} s, "
        f"{size_text(measured['pictures']['bytes'])}; extraction on workers: "
        f"{workers['seconds']:.1f} s, at most {size_text(workers['peak_memory_bytes'])} each"
        f" of {size_text(workers['memory_budget_bytes'])} declared"
    )
    terminal.message(
        f"all stages with the whole data set: {time_text(projected['seconds'])}, "
        f"{size_text(projected['bytes'])} stored, "
        f"{size_text(projected['peak_memory_bytes'])} of memory, without its CNN features unless "
        "they were rehearsed (--set features=...)"
    )


def figures_text(row: dict[str, Any]) -> list[str]:
    """Time, bytes and memory of a stage as words."""
    return [
        time_text(row["seconds"]),
        size_text(row["bytes"]),
        size_text(row["peak_memory_bytes"]),
    ]


def time_text(seconds: float) -> str:
    """Seconds in the unit that people would use."""
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
