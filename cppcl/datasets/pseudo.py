"""Pseudo-sketches in a sample table: contours of images as sketches, for training alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cppcl.datasets.splits.seeded import Split
from cppcl.datasets.table import SampleTable
from cppcl.errors import InputError
from cppcl.modality import Modality

PREFIX = "sketch/contours-of/"
"""What the id of a pseudo-sketch begins with, before that of its image."""
FOLDER, BASE = "contours", "pictures"
"""Folders of the drawn contours, and of all other pictures, below a common root."""


def with_pseudo_sketches(table: SampleTable, drawn: Mapping[int, str]) -> SampleTable:
    """Add sketches after all others, so that rows of these stay what they are.

    Parameters
    ----------
    table : SampleTable
        Sketches and images.
    drawn : dict of int to str
        Digest of the picture of every pseudo-sketch, by the row of its image among images; its
        file is `pseudo_path`.
    """
    images = table.rows("image")
    of = [int(images[row]) for row in drawn]

    sketch: Modality = "sketch"

    def more(column: str) -> tuple[str, ...]:
        values = getattr(table, column)
        return (*values, *(values[row] for row in of))

    return SampleTable(
        ids=(*table.ids, *(PREFIX + table.ids[row].removeprefix("image/") for row in of)),
        sha256=(*table.sha256, *drawn.values()),
        paths=(*(f"{BASE}/{path}" for path in table.paths), *map(pseudo_path, drawn)),
        modality=table.modality + (sketch,) * len(of),
        labels=more("labels"),
        groups=more("groups"),
        titles=more("titles") if table.titles else (),
    )


def pseudo_path(image: int) -> str:
    """File of the contours of an image, by its row among images."""
    return f"{FOLDER}/{image:06}.png"


def real_rows(table: SampleTable) -> NDArray[np.bool_]:
    """Tell rows of the table from pseudo-sketches."""
    # Not by the id alone: a class may be called like the prefix.
    return np.array(
        [
            not (name.startswith(PREFIX) and path.startswith(f"{FOLDER}/"))
            for name, path in zip(table.ids, table.paths, strict=True)
        ],
        dtype=np.bool_,
    )


def real_samples(table: SampleTable) -> SampleTable:
    """Leave out pseudo-sketches; rows of all others stay what they are."""
    kept = np.flatnonzero(real_rows(table)).tolist()
    if len(kept) == len(table):
        return table
    columns = {
        name: tuple(getattr(table, name)[row] for row in kept)
        for name in ("ids", "sha256", "paths", "modality", "labels", "groups")
    }
    titles = tuple(table.titles[row] for row in kept) if table.titles else ()
    return SampleTable(**columns, titles=titles)


def train_on_contours(table: SampleTable, split: Split, share: float, *, seed: int) -> Split:
    """Let the contours of training images train as sketches, beside the real ones.

    Parameters
    ----------
    table : SampleTable
        With pseudo-sketches.
    split : Split
        Of the real samples.
    share : float
        Of the training images of each class whose contours train, in (0, 1]; at least one.
    seed : int
        Of the draw; a larger share adds to a smaller one.

    Raises
    ------
    InputError
        No training image has contours.
    """
    row_of = {name: row for row, name in enumerate(table.column("ids", "sketch"))}
    ids, labels = table.column("ids", "image"), table.column("labels", "image")
    rng = np.random.default_rng([seed, 3])
    of_class: dict[str, list[int]] = {}
    for row in split.train_images[rng.permutation(len(split.train_images))].tolist():
        name = PREFIX + ids[row].removeprefix("image/")
        if name in row_of:
            of_class.setdefault(labels[row], []).append(row_of[name])
    added = [
        row for rows in of_class.values() for row in rows[: max(1, int(share * len(rows) + 0.5))]
    ]
    if not added:
        raise InputError("pseudo_share: none of the training images has contours")
    rows: NDArray[np.int64] = np.array(sorted(added), dtype=np.int64)
    return replace(split, train_sketches=np.concatenate([split.train_sketches, rows]))
