"""``cppcl serve``: a page on which a drawing finds pictures."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace

from deployments.commands.arguments import (
    PORTS,
    add_listening,
    add_method,
    add_workspace,
    with_method,
)
from deployments.terminal import Terminal
from tasks.workspace import Workspace


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_workspace(parser)
    add_method(parser)
    parser.add_argument(
        "models",
        nargs="+",
        metavar="MODEL",
        help="name of an experiment or a gallery (newer runs replace older ones), or key of an "
        "encode artifact",
    )
    add_listening(parser, PORTS["serve"])


def run(options: Namespace) -> int:
    """Load the models and serve the page until it is stopped."""
    from deployments.web.listening import check_port, serve

    check_port(options.port)
    from deployments.serve.app import make_app
    from deployments.serve.live import Live

    with Terminal(sys.stderr) as terminal:
        live = Live(
            Workspace(options.workspace), [with_method(m, options.method) for m in options.models]
        )
        for served in live.served.values():
            model, close = served.model, served.model.closeness
            closeness = (
                "no similarity is known from which a picture counts as close"
                if close.threshold is None
                else f"those with a similarity of {close.threshold:.3f} or more count as close"
            )
            terminal.message(f"{served.text}: {model.n_pictures} pictures, {closeness}")
        serve(lambda access: make_app(live, access), options.host, options.port, "serve")
    return 0
