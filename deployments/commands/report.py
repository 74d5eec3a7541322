"""``cppcl report``: where the report of a run is."""

from __future__ import annotations

from argparse import Namespace

from cppcl.errors import InputError
from storage import Reference
from tasks.workspace import Workspace


def main(options: Namespace) -> int:
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
