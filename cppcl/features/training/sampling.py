"""Which sketches and images a network compares: pairs and triplets, drawn exactly."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import InputError

Rows = NDArray[np.int64]


class Partners:
    """Images of the same class as a sketch, and of other classes, each as likely as the others.

    Parameters
    ----------
    sketch_targets : (n,) int array
        Class of every sketch.
    image_targets : (m,) int array
        Class of every image.

    Attributes
    ----------
    sketches : (k,) int64 array
        Sketches that have an image of their class, and one of another.

    Raises
    ------
    InputError
        No sketch has both.
    """

    def __init__(self, sketch_targets: NDArray[np.integer], image_targets: NDArray[np.integer]):
        self._order = np.argsort(image_targets, kind="stable").astype(np.int64)
        ordered = image_targets[self._order]
        self._first = np.searchsorted(ordered, sketch_targets, side="left")
        self._size = np.searchsorted(ordered, sketch_targets, side="right") - self._first
        self._n = len(image_targets)
        self.sketches: Rows = np.flatnonzero((self._size > 0) & (self._size < self._n))
        if not len(self.sketches):
            raise InputError(
                f"none of the {len(sketch_targets)} training sketches has a training image of its "
                f"class and one of another class (there are {self._n} training images); a network "
                "that compares needs both"
            )

    def same(self, sketches: Rows, rng: np.random.Generator) -> Rows:
        """Draw for each sketch an image of its class."""
        drawn = self._first[sketches] + rng.integers(0, self._size[sketches])
        found: Rows = self._order[drawn]
        return found

    def other(self, sketches: Rows, rng: np.random.Generator) -> Rows:
        """Draw for each sketch an image of another class."""
        first, size = self._first[sketches], self._size[sketches]
        drawn = rng.integers(0, self._n - size)
        # Images of the sketch's own class lie side by side and are stepped over.
        found: Rows = self._order[drawn + size * (drawn >= first)]
        return found

    def triplets(self, rng: np.random.Generator) -> Rows:
        """Draw one triplet for each sketch: sketch, image of its class, image of another.

        Returns
        -------
        (k, 3) int64 array
            In random order.
        """
        sketches = rng.permutation(self.sketches)
        return np.stack([sketches, self.same(sketches, rng), self.other(sketches, rng)], axis=1)


def in_batches(rows: Rows, size: int) -> list[Rows]:
    """Divide rows evenly into batches of at most so many."""
    return np.array_split(rows, -(-len(rows) // size))


LEAST_HELD_CLASSES = 8
"""Classes that must be held out, or else samples of each class are."""


def held_out_rows(
    sketch_targets: NDArray[np.int64],
    image_targets: NDArray[np.int64],
    share: float,
    rng: np.random.Generator,
    sketch_asks: NDArray[np.bool_] | None = None,
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]] | None:
    """Choose which training sketches and images are held out.

    Whole classes are where a share of them is at least eight; else this share of the samples of
    each class.

    Parameters
    ----------
    sketch_targets : (n,) int64 array
        Class of every sketch.
    image_targets : (m,) int64 array
        Class of every image.
    share : float
        Share that is held out.
    rng : numpy.random.Generator
        Decides which.
    sketch_asks : (n,) bool array, optional
        Sketches that may be asked with, all by default. Of the others, those of a class that is
        held out are too; where samples are held out, all of them train.

    Returns
    -------
    (n,) and (m,) bool arrays, or None
        None where too few would be held out to judge by.
    """
    asks = np.ones(len(sketch_targets), np.bool_) if sketch_asks is None else sketch_asks
    both = np.intersect1d(sketch_targets[asks], image_targets)
    n_classes = round(share * len(both))
    if n_classes >= LEAST_HELD_CLASSES:
        held = rng.permutation(both)[:n_classes]
        return np.isin(sketch_targets, held), np.isin(image_targets, held)
    chosen = []
    for targets, eligible in ((sketch_targets, asks), (image_targets, True)):
        mask = np.zeros(len(targets), dtype=np.bool_)
        for number in both:
            rows = rng.permutation(np.flatnonzero((targets == number) & eligible))
            mask[rows[: int(share * len(rows))]] = True
        chosen.append(mask)
    if min(mask.sum() for mask in chosen) < LEAST_HELD_CLASSES:
        return None
    return chosen[0], chosen[1]
