"""``cppcl options``: what can be set in an experiment."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace

from deployments.commands.arguments import add_workspace
from deployments.terminal import Terminal


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_workspace(parser)
    parser.add_argument(
        "experiment",
        metavar="EXPERIMENT",
        nargs="?",
        help="emoji, folder, cufs, ... or a YAML file; by default all options",
    )


def run(options: Namespace) -> int:
    """Print every option, of one experiment with its value, else with its default."""
    from flows.configuration.describe import all_options, options_of
    from flows.configuration.load import load_experiment

    one = options.experiment is not None
    sections = options_of(load_experiment(options.experiment)) if one else all_options()
    terminal = Terminal(sys.stdout)
    for place, rows in sections.items():
        terminal.table(place, ["option", "value" if one else "default", "meaning"], rows)
    return 0
