"""``cppcl index``: a folder of pictures as a gallery of a trained model, kept up to date."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from deployments.commands.arguments import add_method, add_workspace, share, with_method
from deployments.terminal import Terminal
from tasks.workspace import Workspace


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_workspace(parser)
    add_method(parser)
    parser.add_argument(
        "model", metavar="MODEL", help="name of an experiment, or key of an encode artifact"
    )
    parser.add_argument(
        "folder", metavar="FOLDER", type=Path, help="folder of pictures, at any depth"
    )
    parser.add_argument(
        "--max-bad-share",
        type=share,
        default=0.1,
        metavar="SHARE",
        help="share of pictures that may be unreadable, from 0 to 1 (default 0.1)",
    )
    parser.add_argument(
        "--name",
        help="name of the gallery (default: gallery- and the beginning of its key); run the "
        "command again with this name to add what is new, read what has changed and drop what is "
        "gone",
    )


def run(options: Namespace) -> int:
    """Extract and encode what is new in the folder; print the key to search with."""
    from tasks.cluster.session import cluster_session
    from tasks.stages.index import update_index

    with Terminal(sys.stderr) as terminal, cluster_session():
        update = update_index(
            workspace=Workspace(options.workspace),
            model=with_method(options.model, options.method),
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
