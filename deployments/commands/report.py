"""``cppcl report``: where the report of a run is."""

from __future__ import annotations

from argparse import Namespace

from cppcl.errors import InputError
from storage import Reference
from tasks.workspace import Workspace


def main(options: Namespace) -> int:
    """Print the path of a report; with ``--output``, copy its files into a folder."""
    workspace = Workspace(options.workspace)
    name, record = workspace.find_run(options.run)
    if "report" not in record["artifacts"]:
        raise InputError(
            f"run {name!r} made no report; make one with: cppcl run "
            f"{record['experiment']} --workspace {options.workspace}"
        )
    artifact = workspace.store.open(Reference("report", record["artifacts"]["report"]))
    page = artifact.file_path("report.html")
    if options.output is not None:
        options.output.mkdir(parents=True, exist_ok=True)
        for file in artifact.manifest["files"]:
            (options.output / file).write_bytes(artifact.bytes(file))
        page = options.output / "report.html"
    print(page.absolute())
    return 0
