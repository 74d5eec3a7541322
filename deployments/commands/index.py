"""``cppcl index``: a folder of pictures as a gallery of a trained model, kept up to date."""

from __future__ import annotations

import sys
from argparse import Namespace

from deployments.terminal import Terminal
from tasks.cluster.session import cluster_session
from tasks.stages.index import update_index
from tasks.workspace import Workspace


def main(options: Namespace) -> int:
    """Extract and encode what is new in the folder; print the key to search with."""
    with Terminal(sys.stderr) as terminal, cluster_session():
        update = update_index(
            workspace=Workspace(options.workspace),
            model=options.model,
            folder=options.folder,
            name=options.name,
            max_bad_share=options.max_bad_share,
        )
    terminal.message(update.words())
    if len(update.skipped) == update.pictures:
        terminal.message("no picture could be read, so there is nothing to search")
    else:
        terminal.message(f"search it with: cppcl search {options.name or update.key[:12]} SKETCH")
    print(update.key)
    return 0
