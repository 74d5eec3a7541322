"""``cppcl run``: an experiment with live progress in the terminal."""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace
from typing import Any

from deployments.terminal import Terminal
from storage import Reference
from tasks.workspace import Workspace


def main(options: Namespace) -> int:
    """Run the flow of an experiment, show what happens and print where the report is."""
    from flows.load import load_experiment

    # Wrong options are told before anything heavy starts.
    load_experiment(options.experiment, options.overrides)
    if not options.verbose:
        os.environ.setdefault("PREFECT_LOGGING_LEVEL", "CRITICAL")
    with Terminal(sys.stderr) as terminal:
        terminal.message("starting Prefect")
        from flows.experiment import run_experiment

        summary: dict[str, Any] = run_experiment(
            options.experiment,
            options.overrides,
            workspace=options.workspace.absolute(),
            only=options.only,
            start=options.start,
            force=options.force,
        )
    show(summary, terminal)
    if key := summary["artifacts"].get("report"):
        report = Workspace(options.workspace).store.open(Reference("report", key))
        terminal.message(f"report: {report.file_path('report.html').absolute()}")
    if options.json:
        print(json.dumps(summary))
    return 0


def show(summary: dict[str, Any], terminal: Terminal) -> None:
    """Tables of scores and of stages."""
    for protocol, methods in summary["metrics"].items():
        names = [n for n in next(iter(methods.values())) if not n.endswith("_std")]
        terminal.table(
            f"{summary['experiment']}, {protocol}: mean over splits (sd)",
            ["method", *names],
            [
                [method, *(f"{scores[n]:.3f} ({scores[f'{n}_std']:.3f})" for n in names)]
                for method, scores in methods.items()
            ],
        )
    cached = summary["cached"]
    terminal.table(
        "stages",
        ["stage", "seconds", "from the store"],
        [[s, f"{t:.1f}", "yes" if cached[s] else "no"] for s, t in summary["seconds"].items()],
    )
    if cached and all(cached.values()):
        terminal.message("every stage was cached")
