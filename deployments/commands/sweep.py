"""``cppcl sweep``: an experiment for every combination of values of one or two options."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from typing import Any

from cppcl.report.sweep import value_text
from cppcl.report.tables import score_name
from cppcl.retrieval.cutoffs import convention_line
from deployments.commands.arguments import add_experiment
from deployments.commands.run import score_text, spread_of
from deployments.server import prepare_prefect
from deployments.terminal import Terminal
from storage import Reference
from tasks.workspace import Workspace

FILES = {"table": "sweep.csv", "plot": "sweep.png", "page": "sweep.html"}


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_experiment(parser)
    parser.add_argument(
        "options",
        nargs="+",
        metavar="OPTION=VALUES",
        help="one or two options, each with a YAML list of values: n_atoms='[25, 50, 100]'; "
        "an OPTION is written like a KEY of --set",
    )
    parser.add_argument(
        "--score",
        default="rank_1",
        metavar="NAME",
        help="map, or rank_k with k among evaluation.ranks (default rank_1)",
    )


def run(options: Namespace) -> int:
    """Run the flow of a sweep, show its scores and print where table and plot are."""
    from flows.configuration.combinations import read_sweep
    from flows.configuration.datasets import check_places

    # Refuse wrong options, values and places before anything runs.
    sweep = read_sweep(options.experiment, options.options, options.overrides, options.score)
    data_sets = {repr(c.experiment.dataset): c.experiment.dataset for c in sweep.combinations}
    if len(data_sets) == 1:  # of several, each may fail for itself
        check_places(*data_sets.values())
    with Terminal(sys.stderr) as terminal:
        prepare_prefect(terminal, options.workspace, verbose=options.verbose)
        from flows.sweep import run_sweep

        state = run_sweep(
            options.experiment,
            options.options,
            options.overrides,
            score=options.score,
            workspace=options.workspace.absolute(),
            return_state=True,
        )
        summary: Any = state.result(raise_on_failure=False)
    if isinstance(summary, BaseException):
        raise summary
    show(summary, terminal)
    if key := summary["artifacts"].get("sweep"):
        artifact = Workspace(options.workspace).store.open(Reference("sweep", key))
        for name, file in FILES.items():
            terminal.message(f"{name}: {artifact.file_path(file).absolute()}")
    if options.json:
        print(json.dumps(summary))
    return report_failures(summary)


def show(summary: dict[str, Any], terminal: Terminal) -> None:
    """Table of each protocol: a line for each combination, a column for each method."""
    done = [outcome for outcome in summary["combinations"] if "error" not in outcome]
    protocols = dict.fromkeys(protocol for outcome in done for protocol in outcome["metrics"])
    for protocol in protocols:
        metrics = [outcome["metrics"].get(protocol, {}) for outcome in done]
        methods = list(dict.fromkeys(method for scores in metrics for method in scores))
        terminal.message(f"{protocol}, scores: {convention_line([summary['score']])}")
        terminal.table(
            f"{summary['experiment']}, {protocol}: {score_name(summary['score'])}, per cent, "
            f"{spread_of(scores for of_methods in metrics for scores in of_methods.values())}",
            [*summary["axes"], *methods],
            [
                [
                    *map(value_text, outcome["values"].values()),
                    *(
                        score_text(scores[method], summary["score"]) if method in scores else "-"
                        for method in methods
                    ),
                ]
                for outcome, scores in zip(done, metrics, strict=True)
            ],
        )
    if summary["cached"]:
        terminal.message("every stage was cached")


def report_failures(summary: dict[str, Any]) -> int:
    """Name the combinations that failed; returns the exit code."""
    failed = [outcome for outcome in summary["combinations"] if "error" in outcome]
    if not failed:
        return 0
    lines = [
        f"  {', '.join(f'{o}={value_text(v)}' for o, v in outcome['values'].items())}: "
        f"{outcome['error']}"
        for outcome in failed
    ]
    print(
        f"cppcl: {len(failed)} of {len(summary['combinations'])} combinations failed; what was "
        "finished is kept, so give the same command again after mending:",
        *lines,
        sep="\n",
        file=sys.stderr,
    )
    return 1
