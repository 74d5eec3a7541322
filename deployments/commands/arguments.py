"""Arguments that several commands share."""

from __future__ import annotations

import os
from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path

PORTS = {"annotate": 8765, "serve": 8766, "audit": 8767}
"""Where the pages listen unless told otherwise, by command."""


def add_workspace(parser: ArgumentParser) -> None:
    """Add ``--workspace``."""
    parser.add_argument(
        "--workspace",
        type=Path,
        default=Path(os.environ.get("CPPCL_WORKSPACE", ".cppcl")),
        metavar="DIR",
        help="folder of artifacts, data and runs (default: $CPPCL_WORKSPACE or .cppcl)",
    )


def add_actions(parser: ArgumentParser, actions: dict[str, str]) -> dict[str, ArgumentParser]:
    """Add actions to a command, by name and help, each with ``--workspace``."""
    adding = parser.add_subparsers(
        dest="action", required=True, metavar="ACTION", parser_class=ArgumentParser
    )
    parsers = {
        name: adding.add_parser(name, help=text, description=text)
        for name, text in actions.items()
    }
    for added in parsers.values():
        add_workspace(added)
    return parsers


def add_record(parser: ArgumentParser) -> None:
    """Add ``--json`` and ``--verbose`` of the commands that run flows."""
    parser.add_argument(
        "--json",
        action="store_true",
        help="print the record of the run as JSON, as the last line of stdout",
    )
    parser.add_argument("--verbose", action="store_true", help="show Prefect's log")


def add_experiment(parser: ArgumentParser) -> None:
    """Add an experiment, ``--set``, ``--workspace``, ``--json`` and ``--verbose``."""
    add_workspace(parser)
    parser.add_argument(
        "experiment", metavar="EXPERIMENT", help="emoji, folder, cufs, ... or a YAML file"
    )
    add_overrides(parser)
    parser.add_argument(
        "--root",
        dest="overrides",
        action="append",
        type="root={}".format,
        metavar="DIR",
        help="folder of the data; short for --set root=DIR",
    )
    add_record(parser)


def add_overrides(parser: ArgumentParser) -> None:
    """Add ``--set``."""
    parser.add_argument(
        "--set",
        dest="overrides",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="change an option (see: cppcl options); KEY is a dotted path or the end of one "
        "(alpha, cprl.alpha)",
    )


def add_method(parser: ArgumentParser) -> None:
    """Add ``--method``."""
    parser.add_argument(
        "--method",
        metavar="NAME",
        help="method of the experiment's latest run (default: the promoted model, or else the "
        "method that answers)",
    )


def with_method(model: str, method: str | None) -> str:
    """What `tasks.workspace.Workspace.find_model` is given for a model and a method."""
    return model if method is None else f"{model}:{method}"


def add_listening(parser: ArgumentParser, port: int) -> None:
    """Add ``--host`` and ``--port`` of a page."""
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to listen on (default 127.0.0.1: this machine alone can connect); with any "
        "other, visitors need the token that is printed",
    )
    parser.add_argument(
        "--port",
        type=int,
        default=port,
        help=f"port to listen on (default {port}); 0 takes any free port",
    )


def share(text: str) -> float:
    """Read a number from 0 to 1."""
    try:
        if 0 <= float(text) <= 1:
            return float(text)
    except ValueError:
        pass
    raise ArgumentTypeError(f"{text!r} must be a number from 0 to 1")
