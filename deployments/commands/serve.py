"""``cppcl serve``: a page on which a drawing finds pictures."""

from __future__ import annotations

import sys
from argparse import Namespace

from deployments.terminal import Terminal
from deployments.web.listening import check_port, serve
from tasks.workspace import Workspace


def main(options: Namespace) -> int:
    """Load the models and serve the page until it is stopped."""
    check_port(options.port)
    from deployments.serve.app import make_app
    from deployments.serve.live import Live

    with Terminal(sys.stderr) as terminal:
        live = Live(Workspace(options.workspace), options.models)
        for served in live.served.values():
            model, close = served.model, served.model.closeness
            told = (
                "nothing tells which similarity is close"
                if close.threshold is None
                else f"close from a similarity of {close.threshold:.3f}"
            )
            terminal.message(f"{served.text}: {model.n_pictures} pictures, {told}")
        serve(lambda access: make_app(live, access), options.host, options.port, "serve")
    return 0
