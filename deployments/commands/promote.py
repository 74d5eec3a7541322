"""``cppcl promote``: which model of an experiment is served."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace

from cppcl.report.tables import score_name
from deployments.commands.arguments import add_method, add_workspace, share
from deployments.terminal import Terminal
from tasks.promotion import history, promote, take_back
from tasks.workspace import Workspace


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_workspace(parser)
    add_method(parser)
    parser.add_argument(
        "experiment", metavar="EXPERIMENT", help="name of an experiment that was run"
    )
    parser.add_argument("--run", help="name of the run to promote (default: the latest)")
    parser.add_argument(
        "--score",
        default="auto",
        metavar="NAME",
        help="score to compare by: map, rank_k, or validation, that of the search of options on "
        "training pictures (default: as for the promoted model; for the first one, validation if "
        "options were searched)",
    )
    parser.add_argument(
        "--tolerance",
        type=share,
        default=0.01,
        metavar="SHARE",
        help="how far the score may be below the best promoted one, from 0 to 1 (default 0.01, "
        "one per cent)",
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--force", action="store_true", help="promote the run, whatever its score")
    how.add_argument(
        "--back", action="store_true", help="serve the previously promoted model again"
    )
    how.add_argument("--list", action="store_true", help="list the promoted models")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(options: Namespace) -> int:
    """Promote, take back or list; 1 if a run's score does not hold."""
    workspace, experiment = Workspace(options.workspace), options.experiment
    if options.list:
        return show(workspace, experiment, as_json=options.json)
    if options.back:
        withdrawn, served = take_back(workspace, experiment)
        print(
            f"took back {withdrawn['run']}; cppcl search {experiment} uses {served['run']} again"
        )
        return 0
    decision = promote(
        workspace,
        experiment,
        run=options.run,
        method=options.method,
        score=options.score,
        tolerance=options.tolerance,
        force=options.force,
    )
    if options.json:
        print(json.dumps(vars(decision)))
    else:
        print(decision.reason)
    return 0 if decision.promoted else 1


def show(workspace: Workspace, experiment: str, *, as_json: bool) -> int:
    """Table of what was promoted and withdrawn."""
    entries = history(workspace, experiment)
    if as_json:
        print(json.dumps(entries))
        return 0
    Terminal(sys.stdout).table(
        f"models of {experiment} that were promoted",
        ["run", "state", "score, per cent", "of", "promoted (UTC)"],
        [
            [
                entry["run"],
                entry["state"],
                f"{100 * entry['score']:.1f}",
                f"{score_name(entry['score_name'])}, {entry['method']} ({entry['protocol']})",
                entry["promoted"][:16].replace("T", " "),
            ]
            for entry in entries
        ],
    )
    return 0
