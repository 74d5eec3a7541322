"""``cppcl reproduce``: the paper's tables and figures on a data set, rebuilt."""

from __future__ import annotations

import csv
import io
import json
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from cppcl.errors import InputError
from cppcl.report.reproduction.data import BESIDE
from cppcl.report.reproduction.render import AFTER_CELLS
from deployments.commands.arguments import add_record, add_workspace
from deployments.server import prepare_prefect
from deployments.terminal import MISSING, Terminal
from storage import Artifact, Reference
from tasks.workspace import Workspace

PAGE = "index.html"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_workspace(parser)
    parser.add_argument(
        "dataset", metavar="DATASET", help="cufs, flickr15k, pacs, sketchy-ext, ... or a YAML file"
    )
    parser.add_argument(
        "--quick", action="store_true", help="few values of every sweep, and one split"
    )
    parser.add_argument(
        "--only",
        dest="items",
        action="append",
        default=[],
        metavar="ITEM",
        help="only this table or figure, such as table1; may be repeated",
    )
    parser.add_argument(
        "--anew",
        action="store_true",
        help="compute everything with this version of the code; without it, stored results of "
        "earlier versions are used, and the page says so",
    )
    parser.add_argument(
        "--output", type=Path, metavar="DIR", help="copy the page and its files there"
    )
    add_record(parser)


def run(options: Namespace) -> int:
    """Run the flow of a reproduction, show its items and print where the page is."""
    from flows.reproduction.config import chosen_items, load_reproduction
    from flows.reproduction.runs import check_items

    # Refuse wrong options and places before anything runs.
    reproduction = load_reproduction(options.dataset)
    check_items(chosen_items(reproduction, options.items), reproduction.runs)
    if options.output is not None and options.output.exists() and not options.output.is_dir():
        raise InputError(f"--output {str(options.output)!r} is a file; give a folder")
    with Terminal(sys.stderr) as terminal:
        prepare_prefect(terminal, options.workspace, verbose=options.verbose)
        from flows.reproduction.reproduce import run_reproduction

        state = run_reproduction(
            options.dataset,
            quick=options.quick,
            items=options.items or None,
            anew=options.anew,
            workspace=options.workspace.absolute(),
            return_state=True,
        )
        summary: Any = state.result(raise_on_failure=False)
    if isinstance(summary, BaseException):
        raise summary
    key = summary["artifacts"]["reproduction"]
    artifact = Workspace(options.workspace).store.open(Reference("reproduction", key))
    page = artifact.file_path(PAGE).absolute()
    if options.output is not None:
        page = copy(artifact, options.output)
    terminal.table(
        summary["experiment"],
        ["item", "what", "state"],
        [[name, item["title"], item["state"]] for name, item in summary["items"].items()],
    )
    for name, item in summary["items"].items():
        if item["kind"] == "protocol":
            show_protocol(artifact, name, item["title"], terminal)
    terminal.message(f"page: {page}")
    if options.json:
        print(json.dumps(summary))
    return report_failures(summary)


def show_protocol(artifact: Artifact, name: str, title: str, terminal: Terminal) -> None:
    """Tables of published rows beside ours, as the page has them."""
    tables = {
        "": "per cent, each under the convention of its column",
        BESIDE: "published, and ours",
    }
    for suffix, caption in tables.items():
        header, *rows = csv.reader(io.StringIO(artifact.text(f"{name}{suffix}.csv")))
        n = len(header) - len(AFTER_CELLS)
        terminal.table(
            f"{title}: {caption}", header[:n], [[shown(cell) for cell in row[:n]] for row in rows]
        )


def shown(cell: str) -> str:
    """A cell of a file as people read it: a fraction in per cent, a dash for nothing."""
    try:
        return f"{100 * float(cell):.1f}"
    except ValueError:
        return cell or MISSING


def copy(artifact: Artifact, folder: Path) -> Path:
    """Copy the files of a page into a folder; returns the page."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in artifact.manifest["files"]:
        (folder / file).write_bytes(artifact.bytes(file))
    return (folder / PAGE).absolute()


def report_failures(summary: dict[str, Any]) -> int:
    """Name the items that failed; returns the exit code."""
    if not summary["failed"]:
        return 0
    lines = [f"  {name}: {summary['items'][name]['message']}" for name in summary["failed"]]
    print(
        f"cppcl: {len(lines)} of {len(summary['items'])} items failed; what was finished is kept, "
        "so give the same command again after mending:",
        *lines,
        sep="\n",
        file=sys.stderr,
    )
    return 1
