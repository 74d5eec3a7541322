"""``cppcl report``: where the report of a run is."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from cppcl.errors import InputError
from deployments.commands.arguments import add_workspace
from storage import Reference
from tasks.workspace import Workspace


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_workspace(parser)
    parser.add_argument(
        "run", metavar="RUN", help="experiment (its latest run) or the name of a run"
    )
    parser.add_argument("--output", type=Path, metavar="DIR", help="copy the report's files there")


def run(options: Namespace) -> int:
    """Print the path of a report; with ``--output``, copy its files into a folder."""
    workspace = Workspace(options.workspace)
    _, record = workspace.find_run(options.run, "report")
    artifact = workspace.store.open(Reference("report", record["artifacts"]["report"]))
    page = artifact.file_path("report.html")
    if options.output is not None:
        if options.output.exists() and not options.output.is_dir():
            raise InputError(f"--output {str(options.output)!r} is a file; give a folder")
        options.output.mkdir(parents=True, exist_ok=True)
        for file in artifact.manifest["files"]:
            (options.output / file).write_bytes(artifact.bytes(file))
        page = options.output / "report.html"
    print(page.absolute())
    return 0
