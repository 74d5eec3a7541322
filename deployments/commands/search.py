"""``cppcl search``: the pictures that a sketch means."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from functools import partial
from pathlib import Path

from deployments.commands.arguments import add_method, add_workspace, with_method
from deployments.terminal import Terminal
from tasks.progress import listening
from tasks.workspace import Workspace


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_workspace(parser)
    add_method(parser)
    parser.add_argument(
        "model", help="name of an experiment or index, or key of an encode artifact"
    )
    parser.add_argument("picture", type=Path, help="the sketch: any picture file or SVG")
    parser.add_argument("-k", type=int, default=10, help="number of pictures (default 10)")
    parser.add_argument(
        "--photo",
        action="store_true",
        help="the sketch is a photograph of paper: remove light, shadow and ruled lines first",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(options: Namespace) -> int:
    """Print the nearest pictures of the model's gallery."""
    from tasks.model import Model

    workspace = Workspace(options.workspace)
    model = Model(workspace, workspace.find_model(with_method(options.model, options.method)))
    with listening(on_message=partial(print, file=sys.stderr)):
        matches = model.search(options.picture, options.k, photograph=options.photo)
    if options.json:
        print(json.dumps([vars(match) | {"path": str(match.path)} for match in matches]))
        return 0
    Terminal(sys.stdout).table(
        f"nearest to {options.picture}",
        ["rank", "similarity", "title", "label", "picture"],
        [[str(m.rank), f"{m.similarity:.4f}", m.title, m.label, str(m.path)] for m in matches],
        last_whole=True,
    )
    return 0
