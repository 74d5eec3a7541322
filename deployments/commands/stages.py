"""``cppcl stages``: the stages of an experiment."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace

from deployments.commands.arguments import add_workspace
from deployments.terminal import Terminal
from tasks.stages.names import DESCRIPTIONS


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_workspace(parser)


def run(options: Namespace) -> int:
    """Print the stages, what each makes and from what."""
    Terminal(sys.stdout).table(
        "stages, in order",
        ["stage", "makes", "from"],
        [[stage, makes, source] for stage, (makes, source) in DESCRIPTIONS.items()],
    )
    return 0
