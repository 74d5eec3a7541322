"""``cppcl run``: an experiment with live progress in the terminal."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Collection, Iterable, Mapping
from contextlib import ExitStack
from typing import Any

from cppcl.report.comparisons import choice_text, splits_text
from cppcl.report.published import as_printed
from cppcl.report.tables import found_text, measure_text, score_name
from deployments.commands.arguments import add_experiment
from deployments.server import prepare_prefect
from deployments.terminal import MISSING, Terminal
from storage import Reference
from tasks.cluster.session import starting_ahead
from tasks.stages.names import STAGES
from tasks.workspace import Workspace

SHOWN_COMBINATIONS = 10
"""Combinations of a grid that are shown, best first; the store has all."""

STANDINGS = ("ahead", "level", "behind")
"""How the first method may stand to another one on a split."""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_experiment(parser)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--only", metavar="STAGE", choices=STAGES, help="run this stage alone")
    which.add_argument(
        "--from",
        dest="start",
        metavar="STAGE",
        choices=STAGES,
        help="compute this stage and all later ones again; earlier ones must be stored",
    )
    parser.add_argument(
        "--until", metavar="STAGE", choices=STAGES, help="stop after this stage; not with --only"
    )
    parser.add_argument(
        "--force",
        action="append",
        default=[],
        metavar="STAGE",
        choices=STAGES,
        help="compute this stage again even if it is stored",
    )


def run(options: Namespace) -> int:
    """Run the flow of an experiment, show what happens and print where the report is."""
    from flows.configuration.enough import check_data
    from flows.configuration.load import is_named_by_folder, load_experiment

    # Refuse wrong options and data before anything heavy starts.
    experiment = load_experiment(options.experiment, options.overrides)
    check_data(experiment)
    workspace = Workspace(options.workspace)
    if is_named_by_folder(options.experiment, options.overrides):
        pictures = experiment.dataset.root / experiment.dataset.images
        workspace.check_folder(experiment.name, pictures)
    with Terminal(sys.stderr) as terminal, ExitStack() as ahead:
        is_first = not any(workspace.runs.glob(f"{experiment.name}-*.json"))
        if is_first and not (options.only or options.start or options.until):
            # It will be needed, and Prefect leaves a core idle while it starts.
            ahead.enter_context(starting_ahead(*experiment.compute.cluster_arguments()))
        prepare_prefect(terminal, options.workspace, verbose=options.verbose)
        from flows.experiment import run_experiment

        summary: dict[str, Any] = run_experiment(
            options.experiment,
            options.overrides,
            workspace=options.workspace.absolute(),
            only=options.only,
            start=options.start,
            force=options.force,
            until=options.until,
        )
    show(summary, terminal)
    if key := summary["artifacts"].get("report"):
        report = Workspace(options.workspace).store.open(Reference("report", key))
        terminal.message(f"report: {report.file_path('report.html').absolute()}")
    if options.json:
        print(json.dumps(summary))
    return 0


def show(summary: dict[str, Any], terminal: Terminal) -> None:
    """Tables of searches of options, of scores and of stages: what matters most is read last."""
    for protocol, searched in summary.get("tuned", {}).items():
        for method, searches in searched.items():
            if len(searches[0]["table"]) > 1:
                show_searches(f"{method}, {protocol}", searches, terminal)
    for protocol, methods in summary["metrics"].items():
        convention = summary["conventions"][protocol]
        names = convention["scores"]
        terminal.message(f"{protocol}, scores: {convention['line']}")
        training = summary["training"][protocol]
        measures = list(dict.fromkeys(name for row in training.values() for name in row))
        terminal.table(
            f"{summary['experiment']}, {protocol}: per cent, {spread_of(methods.values())}"
            f"{training_text(measures)}",
            ["method", *map(score_name, names), *measures],
            [
                [
                    method,
                    *(score_text(scores, name) for name in names),
                    *(measure_text(training.get(method, {}).get(name)) for name in measures),
                ]
                for method, scores in methods.items()
            ],
        )
        if found := summary.get("published", {}).get(protocol):
            show_published(protocol, found, terminal)
        if found := summary.get("differences", {}).get(protocol):
            show_differences(protocol, found, terminal)
    for protocol, methods in summary.get("left_out", {}).items():
        for method, reason in methods.items():
            terminal.message(f"{protocol}: {method} is left out: {reason}")
    for protocol, methods in summary["metrics"].items():
        first = next(iter(methods))
        if found := found_text(first, methods[first], methods.get("chance", {})):
            terminal.message(f"{protocol}: {found}")
    for protocol, choice in summary.get("chosen", {}).items():
        terminal.message(f"{protocol}: {choice_text(choice)}")
    if answering := answering_text(summary["metrics"]):
        terminal.message(answering)
    cached = summary["cached"]
    terminal.table(
        "stages",
        ["stage", "seconds", "from the store"],
        [[s, f"{t:.1f}", "yes" if cached[s] else "no"] for s, t in summary["seconds"].items()],
    )
    if cached and all(cached.values()):
        terminal.message("every stage was cached")


def show_searches(name: str, searches: list[dict[str, Any]], terminal: Terminal) -> None:
    """Table of the best combinations of a method's options, over the splits."""
    # Imports Prefect, which reads its settings then: only after they are made.
    from tasks.stages.tune import folds_in_words, short_names

    first, rows = searches[0], tuning_rows(searches)
    n, several = len(first["table"]), len(searches) > 1
    which = n if len(rows) == n else f"{len(rows)} of {n}"
    over = ", mean over splits; chosen by: splits that chose it" if several else ""
    columns = ["mean", "chosen by"] if several else ["score", "chosen"]
    terminal.table(
        f"{name}: {which} combinations of options, best first; {score_name(first['score'])}, per "
        f"cent, in {folds_in_words(first)} of the training pictures{over}",
        [*short_names(first["best"]), *columns],
        rows,
    )


def show_published(protocol: str, found: dict[str, Any], terminal: Terminal) -> None:
    """Table of what every method reached beside what a publication reports."""
    trials, methods = found["trials"], found["methods"].values()
    over = f" ({splits_text(trials)})" if trials else ""
    fewer = any(row["first_mean"] is not None for row in methods)
    first = [f"first {splits_text(trials)}"] if fewer else []
    terminal.table(
        f"{protocol}, beside {found['source']}{over}: {score_name(found['score'])}, per cent",
        ["method", "published", "ours", *first, "95 % interval", "verdict"],
        [
            [
                row["title"],
                MISSING if row["published"] is None else as_printed(100 * row["published"], 1),
                spread_text(row["mean"], row["std"]),
                *(spread_text(row["first_mean"], row["first_std"]) for _ in first),
                f"[{100 * row['low']:.1f}, {100 * row['high']:.1f}]",
                row["verdict"] or MISSING,
            ]
            for row in methods
        ],
    )


def show_differences(protocol: str, found: dict[str, Any], terminal: Terminal) -> None:
    """Table of how much better the first method is than every other one."""
    counts = {name: [row[k] for k in STANDINGS] for name, row in found["methods"].items()}
    several = any(sum(of_splits) > 1 for of_splits in counts.values())
    terminal.table(
        f"{protocol}, {found['first']} minus each other method: {score_name(found['score'])}, "
        "points; level: the difference could be chance",
        [
            *("method", "difference", "95 % interval"),
            *([f"splits {'/'.join(STANDINGS)}"] if several else []),
            "verdict",
        ],
        [
            [
                method,
                f"{100 * row['mean']:+.2f}",
                f"[{100 * row['low']:+.2f}, {100 * row['high']:+.2f}]",
                *(["/".join(map(str, counts[method]))] if several else []),
                row["verdict"],
            ]
            for method, row in found["methods"].items()
        ],
    )


def answering_text(metrics: Mapping[str, Mapping[str, Any]]) -> str:
    """Which method answers searches; nothing where there is no other."""
    for protocol, methods in metrics.items():
        first, *others = (name for name in methods if name != "chance")
        where = f", protocol {protocol}" if len(metrics) > 1 else ""
        another = "; --method asks another" if others else ""
        return f"searches are answered by {first}{where}{another}" if where or others else ""
    return ""


def training_text(measures: Collection[str]) -> str:
    """What the columns about training hold, for the title of a table that has them."""
    parts = ["seconds"] if "seconds" in measures else []
    if any(measure.startswith("sd of v") for measure in measures):
        parts.append("largest sd of the pacing variables v")
    return f"; training: {', '.join(parts)}" if parts else ""


def spread_of(methods: Iterable[Mapping[str, float]]) -> str:
    """What scores are, for the title of a table: those of one split, or of several."""
    several = any(name.endswith("_std") for scores in methods for name in scores)
    return "mean ± sd over splits" if several else "one split"


def tuning_rows(searches: list[dict[str, Any]]) -> list[list[str]]:
    """Combinations of a grid that are best over splits, and all that some split chose."""
    names = list(searches[0]["best"])
    combined = []
    for rows in zip(*(search["table"] for search in searches), strict=True):
        chosen = [str(number) for number, row in enumerate(rows) if row["best"]]
        chosen = ["yes"] * len(chosen) if len(searches) == 1 else chosen
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
    return spread_text(scores[name], scores.get(f"{name}_std"))


def spread_text(mean: float, std: float | None) -> str:
    """A mean in per cent, with its standard deviation where there is one."""
    return f"{100 * mean:.1f}" + ("" if std is None else f" ± {100 * std:.1f}")
