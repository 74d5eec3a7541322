"""``cppcl try``: from two folders to a page to draw on."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from pathlib import Path

from cppcl.datasets.files import scan_pictures
from cppcl.errors import InputError
from deployments.commands.arguments import (
    PORTS,
    add_listening,
    add_overrides,
    add_record,
    add_workspace,
)
from tasks.workspace import Workspace

EXPERIMENTS = {True: "folder", False: "pairs"}
"""Experiment of pictures in class folders, and of pictures paired by name."""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_workspace(parser)
    parser.add_argument(
        "sketches",
        type=Path,
        metavar="SKETCHES",
        help="folder of sketches, in a folder for each class, or with the names of their pictures",
    )
    parser.add_argument(
        "pictures", type=Path, metavar="PICTURES", help="folder of pictures, arranged the same way"
    )
    parser.add_argument(
        "--name",
        help="name of the run (default: that of the folder that holds both, or else of PICTURES)",
    )
    parser.add_argument(
        "--no-page", action="store_true", help="train and score only; serve no page"
    )
    add_overrides(parser)
    add_listening(parser, PORTS["serve"])
    add_record(parser)


def run(options: Namespace) -> int:
    """Run the experiment that fits the folders, then serve its search page."""
    from deployments.commands import run as command
    from deployments.commands import serve
    from flows.configuration.load import load_experiment

    source, overrides = arrangement(options.sketches, options.pictures, options.name)
    overrides += options.overrides
    name = load_experiment(source, overrides).name
    if not options.name:
        Workspace(options.workspace).check_folder(name, options.pictures)
    given = {"experiment": source, "overrides": overrides, "only": None, "start": None}
    code = command.run(Namespace(**(vars(options) | given), until=None, force=[]))
    if code or options.no_page:
        return code
    return serve.run(Namespace(**vars(options), models=[name], method=None))


def arrangement(sketches: Path, pictures: Path, name: str | None) -> tuple[str, list[str]]:
    """Experiment of two folders, and its ``key=value`` overrides.

    Raises
    ------
    InputError
        If one is not a folder or holds the other, or one of them has class folders and the other
        has none.
    """
    from flows.configuration.load import folder_name

    places = {"sketches": sketches, "images": pictures}
    paths = {key: place.absolute() for key, place in places.items()}
    in_classes = {}
    for place in places.values():
        if not place.is_dir():
            raise InputError(f"{place} is not a folder; give a folder of pictures")
        in_classes[place] = any("/" in key for key in scan_pictures(place, ".").files)
    if in_classes[sketches] != in_classes[pictures]:
        nested, flat = sorted(places.values(), key=in_classes.__getitem__, reverse=True)
        raise InputError(
            f"{nested} has pictures in class folders, {flat} has none; arrange both alike: a "
            "folder for each class, or equal file names for a sketch and its picture"
        )
    root = Path(os.path.commonpath([*paths.values()]))
    if root in paths.values():
        raise InputError(
            f"{sketches} and {pictures} are one folder, or one lies in the other, so sketches "
            "would be pictures too; give two folders beside each other"
        )
    overrides = [f"root={root}"]
    overrides += [f"dataset.{key}={path.relative_to(root)}" for key, path in paths.items()]
    if not name and {path.parent for path in paths.values()} != {root}:
        name = folder_name(pictures)  # that of what holds both says less
    if name:
        overrides.append(f"name={name}")
    return EXPERIMENTS[in_classes[sketches]], overrides
