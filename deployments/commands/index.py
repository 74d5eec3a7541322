"""``cppcl index``: a folder of pictures as a new gallery of a trained model."""

from __future__ import annotations

import sys
from argparse import Namespace
from datetime import UTC, datetime

from deployments.terminal import Terminal
from tasks import cluster
from tasks.model import index_folder
from tasks.workspace import Workspace


def main(options: Namespace) -> int:
    """Extract and encode the folder's pictures; print the key to search with."""
    workspace = Workspace(options.workspace)
    model = workspace.find_model(options.model)
    with (
        Terminal(sys.stderr) as terminal,
        # From the first artifact to the record that says they are needed.
        workspace.store.in_use(),
        cluster.session(),
    ):
        results = index_folder(
            workspace=workspace,
            model=model,
            folder=options.folder,
            max_bad_share=options.max_bad_share,
        )
        key = results[-1].reference.key
        name = f"gallery-{key[:12]}"
        workspace.record_run(
            name,
            datetime.now(UTC).strftime("%Y%m%dT%H%M%S%fZ"),
            {
                "experiment": name,
                "artifacts": {r.reference.stage: r.reference.key for r in results},
                "all_artifacts": [str(r.reference) for r in results],
            },
        )
    terminal.message(f"search it with: cppcl search {key[:12]} SKETCH")
    print(key)
    return 0
