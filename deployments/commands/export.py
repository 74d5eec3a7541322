"""``cppcl export``: codes of a model as files that other tools read."""

from __future__ import annotations

import csv
from argparse import ArgumentParser, Namespace
from pathlib import Path

from deployments.commands.arguments import add_method, add_workspace, with_method
from tasks.workspace import Workspace

COLUMNS = ("row", "id", "path", "label", "group", "title")


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
        "folder",
        metavar="FOLDER",
        type=Path,
        help="where to write image_codes.npy and image_samples.csv, and the same of sketches "
        "where the model has some",
    )


def run(options: Namespace) -> int:
    """Write codes and what they are codes of; print the files.

    Row k of ``image_codes.npy`` (float32 or float64, (n, d)) is the picture in line ``row`` k of
    ``image_samples.csv``. Pictures that could not be read have no row.
    """
    import numpy as np

    from cppcl.errors import InputError
    from tasks.lineage import Lineage
    from tasks.samples import open_pictures, usable_rows

    if options.folder.exists() and not options.folder.is_dir():
        raise InputError(f"{options.folder} is a file; give a folder")
    workspace = Workspace(options.workspace)
    store = workspace.store
    model = workspace.find_model(with_method(options.model, options.method))
    lineage = Lineage.of_codes(store, model)
    options.folder.mkdir(parents=True, exist_ok=True)
    for modality, reference in lineage.encoded.items():
        features = store.open(reference)
        pictures = open_pictures(store, features.inputs["table"])
        table, rows = pictures.table, usable_rows(features).nonzero()[0]
        codes = options.folder / f"{modality}_codes.npy"
        np.save(codes, lineage.codes.rows(f"{modality}_codes", rows))
        samples = options.folder / f"{modality}_samples.csv"
        at = [table.rows(modality)[row] for row in rows]
        with samples.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(COLUMNS)
            for row, k in enumerate(at):
                path = pictures.root / table.paths[k]
                told = (table.ids[k], path, table.labels[k], table.groups[k], table.title(k))
                writer.writerow((row, *told))
        print(codes, samples, sep="\n")
    return 0
