"""What a descriptor sees of a picture, as layers that a figure shows to a person."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Seen:
    """A picture, with what was found in it.

    Attributes
    ----------
    title : str
        What it is.
    picture : (h, w, 3) uint8, (h, w) bool or (h, w) float array
        Colours; marks, drawn dark on white; or grey values in [0, 1].
    points : (n, 2) array or None
        Rows and columns, in pixels of the picture.
    groups : (n,) int array or None
        Number of the colour of each point, those below 0 being grey; all are of one colour if
        None.
    grid : int
        Cells along each side that lines divide the picture into; none are drawn if 0.
    boxes : (n, 4) array or None
        Left, top, right and bottom in pixels, right and bottom excluded.
    angles, lengths : (r, c, k) arrays or None
        Lines in the middle of each of r x c cells that divide the picture: their angle in
        radians, from the right clockwise as rows go down, and their length, not negative, of
        which the largest one fills a cell.
    """

    title: str
    picture: NDArray[Any]
    points: NDArray[Any] | None = None
    groups: NDArray[Any] | None = None
    grid: int = 0
    boxes: NDArray[Any] | None = None
    angles: NDArray[Any] | None = None
    lengths: NDArray[Any] | None = None


@dataclass(frozen=True)
class Tiles:
    """Small pictures side by side: (n, h, w) float in [0, 1], each with a caption.

    The frame of tile k has the colour of the points of group k.
    """

    title: str
    tiles: NDArray[Any]
    captions: tuple[str, ...]


@dataclass(frozen=True)
class Numbers:
    """A vector (m,), or a matrix (r, c) whose rows and columns are of something."""

    title: str
    values: NDArray[Any]
    rows: str = ""
    columns: str = ""


Layer = Seen | Tiles | Numbers

N_GROUPS = 6
"""Colours that can be told apart; what is rarer is grey."""


def titled(layers: list[Layer], prefix: str) -> list[Layer]:
    """Layers whose titles begin with a prefix."""
    return [replace(layer, title=f"{prefix}{layer.title}") for layer in layers]


def most_frequent(numbers: NDArray[np.integer]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Which numbers occur most often, and the place of each entry among these, or -1.

    Returns
    -------
    frequent : (at most 6,) int64 array
        From the most frequent one on; of two that are as frequent, the smaller first.
    groups : (n,) int64 array
    """
    found, counts = np.unique(numbers, return_counts=True)
    frequent = found[np.argsort(-counts, kind="stable")][:N_GROUPS].astype(np.int64)
    groups = np.full(len(numbers), -1, dtype=np.int64)
    for place, number in enumerate(frequent):
        groups[numbers == number] = place
    return frequent, groups
