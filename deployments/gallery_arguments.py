"""Arguments of the commands around a gallery: `index`, `promote` and `search`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path


def add_gallery_commands(command: Callable[[str, str, str], argparse.ArgumentParser]) -> None:
    """Add the commands to a parser.

    Parameters
    ----------
    command : callable
        Makes the parser of a command from its name, module and help.
    """
    index = command("index", "index", "encode a folder of pictures as a new gallery of a model")
    index.add_argument("model", help="key of an encode artifact, or an experiment's name")
    index.add_argument("folder", type=Path, help="pictures, at any depth")
    index.add_argument(
        "--max-bad-share",
        type=share,
        default=0.1,
        metavar="SHARE",
        help="share of pictures that may be unreadable (default 0.1)",
    )
    index.add_argument(
        "--name",
        help="what the gallery is found by; with the same name again, what is new or changed is "
        "extracted, and what is gone is left out (default: gallery- and the key's beginning)",
    )

    promote = command("promote", "promote", "say which model of an experiment is served")
    promote.add_argument("experiment", help="experiment that was run")
    promote.add_argument("--run", help="name of the run to promote (default: the latest)")
    promote.add_argument(
        "--score",
        default="auto",
        metavar="NAME",
        help="map, rank_k, or validation: of the search of options, by training pictures alone "
        "(default: that of the promoted model, else validation where there was a search)",
    )
    promote.add_argument(
        "--tolerance",
        type=share,
        default=0.01,
        metavar="SHARE",
        help="how far the score may be below the best that was promoted (default 0.01)",
    )
    how = promote.add_mutually_exclusive_group()
    how.add_argument("--force", action="store_true", help="whatever the score is")
    how.add_argument("--back", action="store_true", help="serve the one promoted before again")
    how.add_argument("--list", action="store_true", help="list what was promoted")
    promote.add_argument("--json", action="store_true", help="print one JSON document")

    search = command("search", "search", "find the pictures that a sketch means")
    search.add_argument("model", help="key of an encode artifact, or an experiment's name")
    search.add_argument("picture", type=Path, help="sketch: any picture file or SVG")
    search.add_argument("-k", type=int, default=10, help="number of pictures (default 10)")
    search.add_argument(
        "--photo",
        action="store_true",
        help="the sketch is a photograph of paper: take away light, shadow and ruled lines first",
    )
    search.add_argument("--json", action="store_true", help="print one JSON document")


def share(text: str) -> float:
    """Read a number from 0 to 1."""
    try:
        if 0 <= float(text) <= 1:
            return float(text)
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{text!r} must be a number from 0 to 1")
