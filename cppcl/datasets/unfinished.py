"""Sketches of which there are several shares of the strokes: ids that end with a percentage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cppcl.datasets.pseudo import PREFIX
from cppcl.datasets.splits.seeded import Split
from cppcl.datasets.table import SampleTable
from cppcl.errors import InputError

TENTHS = (10, 20, 30, 40, 50, 60, 70, 80, 90, 100)
"""Percentages of the length of all strokes."""


def check_shares(shares: Sequence[int]) -> None:
    """Raise `InputError` unless these are percentages, each once."""
    if not shares or len(set(shares)) < len(shares) or not all(0 < s <= 100 for s in shares):
        raise InputError(
            f"shares={list(shares)} must be percentages from 1 to 100, each once, at least one"
        )


def drawn_share(sample: str) -> float | None:
    """Share of its strokes that a sketch of an unfinished drawing shows; None of another id."""
    if sample.startswith(PREFIX):  # contours are whole, whatever their image is called
        return None
    kind, _, rest = sample.partition("/")
    percent = rest.rpartition("/")[2]
    return int(percent) / 100 if kind == "sketch" and "/" in rest and percent.isdecimal() else None


def drawn_shares(ids: Sequence[str]) -> NDArray[np.float64]:
    """Share of its strokes that each sketch shows, (n,); 1 of one that is a whole sketch."""
    return np.array([1.0 if (share := drawn_share(i)) is None else share for i in ids])


def drawn_at_least(table: SampleTable, split: Split, share: float) -> Split:
    """Leave out training sketches that show less of their strokes.

    Raises
    ------
    InputError
        None is left.
    """
    rows = split.train_sketches
    shares = drawn_shares(table.column("ids", "sketch"))
    kept = rows[shares[rows] >= share]
    if not len(kept):
        raise InputError(
            f"least_drawn={share:g}: no training sketch shows so much of its strokes; the fullest "
            f"shows {shares[rows].max(initial=0):g}"
        )
    return replace(split, train_sketches=kept)


def fuller_is_easier(ids: Sequence[str], groups: Sequence[str]) -> list[tuple[str, str]]:
    """Every two sketches of one group of which one is fuller: ids of it and of the other."""
    of_group: dict[str, list[tuple[float, str]]] = {}
    for name, group in zip(ids, groups, strict=True):
        if (share := drawn_share(name)) is not None:
            of_group.setdefault(group, []).append((share, name))
    return [
        (fuller, emptier)
        for found in of_group.values()
        for share, fuller in sorted(found)
        for less, emptier in sorted(found)
        if less < share
    ]
