"""How long an extractor takes, measured on two pictures that are drawn here."""

from __future__ import annotations

import time
from functools import lru_cache
from typing import Literal

import numpy as np

from cppcl.features.base import Extractor, Picture

Kind = Literal["sketch", "photograph"]
SIDE = 256
N_REPEATS = 3


@lru_cache
def example(kind: Kind) -> Picture:
    """Draw a sketch, thin dark lines on white, or what stands for a photograph; (256, 256, 3)."""
    rows, columns = np.mgrid[:SIDE, :SIDE] - SIDE / 2
    radius, angle = np.hypot(rows, columns), np.arctan2(rows, columns)
    if kind == "sketch":
        lines = [
            np.abs(radius - 90 - 12 * np.sin(7 * angle)) < 2,
            np.abs(np.hypot(rows + 25, columns - 30) - 18) < 2,
            np.abs(np.hypot(rows + 25, columns + 30) - 18) < 2,
            (np.abs(rows - 50 + columns**2 / 90) < 2) & (np.abs(columns) < 45),
        ]
        gray = np.where(np.any(lines, axis=0), 20, 255)
        picture = np.repeat(gray[..., None], 3, axis=2)
    else:
        rng = np.random.default_rng(0)
        inside = (radius < 70 + 15 * np.sin(5 * angle))[..., None]
        ground = np.stack([120 + 0.3 * rows, 150 + 0.2 * columns, 90 - 0.2 * rows], axis=-1)
        thing = np.stack([200 - radius, 90 + 0.5 * rows, 60 + 0.4 * columns], axis=-1)
        waves = 25 * np.sin(rows / 9 + np.cos(columns / 14))[..., None]
        picture = np.where(inside, thing, ground + waves) + rng.normal(0, 4, (SIDE, SIDE, 3))
    drawn: Picture = np.clip(np.rint(picture), 0, 255).astype(np.uint8)
    drawn.flags.writeable = False
    return drawn


def as_if_learned(extractor: Extractor) -> Extractor:
    """Give an extractor random arrays for what it learns: applying them takes as long."""
    if extractor.learns:
        rng = np.random.default_rng(0)
        extractor.from_arrays({name: rng.random(s) for name, s in extractor.shapes.items()})
    return extractor


def milliseconds(extractor: Extractor, picture: Picture, repeats: int = N_REPEATS) -> float:
    """Median time to extract the features of a picture, after a first run that loads and compiles.

    Parameters
    ----------
    extractor : Extractor
        Fitted, if it learns.
    picture : (h, w, 3) uint8 array
        The picture.
    repeats : int
        Number of timed runs, at least 1.
    """
    extractor.transform([picture])
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        extractor.transform([picture])
        seconds.append(time.perf_counter() - started)
    return 1000 * float(np.median(seconds))
