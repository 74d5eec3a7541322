"""``cppcl run``: an experiment with live progress in the terminal."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from typing import Any

from deployments.server import prefect_ready
from deployments.terminal import Terminal
from storage import Reference
from tasks.workspace import Workspace

SHOWN_COMBINATIONS = 10
"""Combinations of a grid that are shown, best first; the store has all."""


def main(options: Namespace) -> int:
    """Run the flow of an experiment, show what happens and print where the report is."""
    from flows.load import load_experiment

    # Wrong options are told before anything heavy starts.
    load_experiment(options.experiment, options.overrides)
    with (
        Terminal(sys.stderr) as terminal,
        prefect_ready(terminal, options.workspace, verbose=options.verbose),
    ):
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
        names = [n for n in next(iter(methods.values())) if is_shown(n)]
        terminal.table(
            f"{summary['experiment']}, {protocol}: per cent, mean ± sd over splits",
            ["method", *names],
            [
                [method, *(score_text(scores, name) for name in names)]
                for method, scores in methods.items()
            ],
        )
    for protocol, searched in summary.get("tuned", {}).items():
        for method, searches in searched.items():
            rows = tuning_rows(searches)
            of_all = f"best {len(rows)} of {len(searches[0]['table'])} combinations"
            folds = f"{searches[0]['n_folds']} folds of the training rows"
            terminal.table(
                f"{method}, {protocol}: {of_all} by {searches[0]['score']} in {folds}, per cent, "
                "mean over splits, and which splits chose it",
                [*searches[0]["best"], "mean", "chosen by"],
                rows,
            )
    cached = summary["cached"]
    terminal.table(
        "stages",
        ["stage", "seconds", "from the store"],
        [[s, f"{t:.1f}", "yes" if cached[s] else "no"] for s, t in summary["seconds"].items()],
    )
    if cached and all(cached.values()):
        terminal.message("every stage was cached")


def tuning_rows(searches: list[dict[str, Any]]) -> list[list[str]]:
    """Combinations of a grid that are best over splits, and all that some split chose."""
    names = list(searches[0]["best"])
    combined = []
    for rows in zip(*(search["table"] for search in searches), strict=True):
        chosen = [str(number) for number, row in enumerate(rows) if row["best"]]
        mean = sum(row["mean"] for row in rows) / len(rows)
        combined.append((mean, [str(rows[0][name]) for name in names], ", ".join(chosen)))
    combined.sort(key=lambda row: -row[0])
    return [
        [*values, f"{100 * mean:.1f}", chosen or "-"]
        for place, (mean, values, chosen) in enumerate(combined)
        if chosen or place < SHOWN_COMBINATIONS
    ]


def score_text(scores: dict[str, float], name: str) -> str:
    """A score in per cent, with its standard deviation over splits where there are several."""
    spread = f" ± {100 * scores[f'{name}_std']:.1f}" if f"{name}_std" in scores else ""
    return f"{100 * scores[name]:.1f}{spread}"


def is_shown(name: str) -> bool:
    """Whether the terminal has room for a score: the mean average precision and rank-k."""
    return name == "map" or (name.startswith("rank_") and not name.endswith("_std"))
