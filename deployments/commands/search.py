"""``cppcl search``: the pictures that sketches mean."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from cppcl.datasets.files import walk
from cppcl.errors import InputError
from deployments.commands.arguments import add_method, add_workspace, with_method
from deployments.terminal import Terminal
from tasks.progress import listening
from tasks.words import WEIGHT, Words
from tasks.workspace import Workspace

if TYPE_CHECKING:
    from tasks.model import Match


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_workspace(parser)
    add_method(parser)
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="name of an experiment or a gallery, or key of an encode artifact",
    )
    parser.add_argument(
        "sketches",
        type=Path,
        nargs="+",
        metavar="SKETCH",
        help="any picture file or SVG, or a folder of them",
    )
    parser.add_argument(
        "-k", type=int, default=10, help="number of pictures for each sketch (default 10)"
    )
    parser.add_argument(
        "--photo",
        action="store_true",
        help="the sketch is a photograph of paper: remove light, shadow and ruled lines first",
    )
    parser.add_argument(
        "--text",
        default="",
        help="words to search with beside the sketch: a model that knows words searches by both; "
        "any other one searches only pictures with these words in their names",
    )
    parser.add_argument(
        "--text-weight",
        type=float,
        metavar="WEIGHT",
        default=WEIGHT,
        help=f"weight of the words, where that of the sketch is 1 (default {WEIGHT:g})",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="print one JSON document: a list of pictures; for several sketches or a folder, such "
        "a list for each sketch",
    )


def run(options: Namespace) -> int:
    """Print the nearest pictures of the model's gallery; returns 1 if some sketch has none."""
    workspace = Workspace(options.workspace)
    reference = workspace.find_model(with_method(options.model, options.method))
    files = sketch_files(options.sketches)
    # After what may be refused: importing it takes a second.
    from tasks.model import Model

    model = Model(workspace, reference)
    words = Words(options.text, options.text_weight)
    several = len(files) > 1 or options.sketches[0].is_dir()
    answers: dict[str, list[Match]] = {}
    for file in files:
        try:
            with listening(on_message=partial(print, file=sys.stderr)):
                answers[str(file)] = model.search(
                    file, options.k, photograph=options.photo, words=words
                )
        except InputError as error:
            # What is wrong with one of several is no reason to leave out the others.
            if not several or (file == files[-1] and not answers):
                raise
            Terminal(sys.stderr).message(f"left out: {error}")
            continue
        if not options.json:
            show(file, answers[str(file)])
    if options.json:
        shown = {
            file: [vars(match) | {"path": str(match.path)} for match in matches]
            for file, matches in answers.items()
        }
        print(json.dumps(shown if several else next(iter(shown.values()))))
    return 0 if len(answers) == len(files) else 1


def sketch_files(places: list[Path]) -> list[Path]:
    """Files that were named, and those of the folders that were, by name.

    Raises
    ------
    InputError
        If one does not exist, or a folder holds no file.
    """
    files: list[Path] = []
    for place in places:
        if place.is_dir():
            inside = sorted(Path(entry.path) for entry, is_system in walk(place) if not is_system)
            if not inside:
                raise InputError(f"{place} holds no file; give a folder of sketches")
            files += inside
        elif not place.exists():
            raise InputError(f"{place} does not exist; give a sketch: a picture file or an SVG")
        else:
            files.append(place)
    return list(dict.fromkeys(files))


def show(sketch: Path, matches: list[Match]) -> None:
    """Table of the nearest pictures of one sketch; titles where they say more than labels."""
    titled = any(match.title != match.label for match in matches)
    Terminal(sys.stdout).table(
        f"nearest to {sketch}",
        ["rank", "similarity", *(["title"] if titled else []), "label", "picture"],
        [
            [
                str(m.rank),
                f"{m.similarity:.4f}",
                *([m.title] if titled else []),
                m.label,
                str(m.path),
            ]
            for m in matches
        ],
        last_whole=True,
    )
