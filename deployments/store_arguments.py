"""Arguments of the commands that look after what is stored."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

ACTIONS = {
    "ls": "list artifacts, one a line",
    "show": "say how artifacts were made",
    "verify": "read all artifacts back, or some",
    "gc": "remove what neither the latest run of an experiment nor a gallery uses",
}


def add_store_commands(commands: Any, command: Callable[..., argparse.ArgumentParser]) -> None:
    """Add ``store ls``, ``show``, ``verify`` and ``gc``.

    Parameters
    ----------
    commands : subparsers
        Commands of the program.
    command : callable
        Adds one with the options of all of them.
    """
    store = commands.add_parser(
        "store",
        help="look after the stored artifacts",
        description="Everything that stages made, by stage and key.",
    )
    actions = store.add_subparsers(dest="action", required=True, metavar="ACTION")
    parsers = {name: command(name, "store", text, actions) for name, text in ACTIONS.items()}
    for name, parser in parsers.items():
        parser.set_defaults(repair=False, dry_run=False)
        parser.add_argument(
            "keys",
            nargs="*",
            metavar="STAGE" if name == "ls" else "KEY",
            help="name of a stage" if name == "ls" else "key, its beginning, or stage/key",
        )
    parsers["verify"].add_argument(
        "--repair",
        action="store_true",
        help="keep what is whole of a damaged artifact, so that a run makes only the rest",
    )
    parsers["gc"].add_argument("--dry-run", action="store_true", help="say what would go")
