"""Arguments of the commands that look after what is stored."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

ACTIONS = {
    "ls": "list artifacts, one a line",
    "show": "say how artifacts were made",
    "verify": "read all artifacts back, or some",
    "push": "send artifacts to an object store, with what they were made from",
    "pull": "fetch artifacts from an object store, with what they were made from",
    "gc": "remove what neither the latest run of an experiment nor a gallery uses",
}
REMOTE, URL_FORMS = "default: $CPPCL_REMOTE;", "s3://BUCKET/PREFIX or file:///FOLDER"


class _Elsewhere(argparse.Action):
    """Takes the URL of a remote, and lets the command for remotes do the work."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        namespace.remote, namespace.module = values, "remote"


def add_store_commands(commands: Any, command: Callable[..., argparse.ArgumentParser]) -> None:
    """Add ``store ls``, ``show``, ``verify``, ``gc``, ``push`` and ``pull``.

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
    parsers = {
        name: command(name, "remote" if name in ("push", "pull") else "store", text, actions)
        for name, text in ACTIONS.items()
    }
    for name, parser in parsers.items():
        parser.set_defaults(repair=False, dry_run=False)
        parser.add_argument(
            "keys",
            nargs="+" if name == "pull" else "*",
            metavar="STAGE" if name == "ls" else "KEY",
            help="name of a stage" if name == "ls" else "key, its beginning, or stage/key",
        )
    parsers["verify"].add_argument(
        "--repair",
        action="store_true",
        help="keep what is whole of a damaged artifact, so that a run makes only the rest",
    )
    for name in ("push", "pull"):
        parsers[name].add_argument("--remote", metavar="URL", help=f"{REMOTE} {URL_FORMS}")
    for name in ("ls", "verify"):
        parsers[name].add_argument(
            "--remote",
            metavar="URL",
            nargs="?",
            action=_Elsewhere,
            help=f"of the object store, not of the workspace; {REMOTE} {URL_FORMS}",
        )
    parsers["push"].add_argument(
        "--replace", action="store_true", help="send these anew although they are there"
    )
    parsers["gc"].add_argument("--dry-run", action="store_true", help="say what would go")
