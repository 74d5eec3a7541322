"""Pairs of samples worth asking people about: each sample with its nearest of the same class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import InputError

ROWS_AT_ONCE = 1024


def classes_to_ask_within(labels: NDArray[Any] | Sequence[Any]) -> NDArray[np.int64]:
    """Number the classes that pairs are formed within, (n,).

    All samples form one class where no class has two, as in the scope 'auto' of
    `cppcl.curriculum.semiorder.order_by_scores`.
    """
    _, classes = np.unique(np.asarray(labels, dtype=str), return_inverse=True)
    if len(classes) and np.bincount(classes).max() == 1:
        return np.zeros(len(classes), dtype=np.int64)
    return classes.astype(np.int64)


def nearest_pairs(
    features: NDArray[np.floating], classes: NDArray[np.integer], *, seed: int = 0
) -> NDArray[np.int64]:
    """Pair each sample with its nearest of the same class.

    These are the pairs that people were asked about in Section 4 of the paper, with SHOG as the
    feature.

    Parameters
    ----------
    features : (n, m) array
        One row a sample. Rows are compared by cosine; samples whose row is zero or not finite
        take no part.
    classes : (n,) array
        Class of each sample.
    seed : int
        Of the order in which pairs are listed, so that any beginning is of all classes.

    Returns
    -------
    (p, 2) int64
        Rows, the lower one first, each pair once. Of several nearest the lowest row is taken.

    Raises
    ------
    InputError
        If lengths differ.
    """
    values = np.asarray(features)
    if values.ndim != 2 or len(values) != len(classes):
        raise InputError(
            f"features have shape {values.shape} and classes {np.shape(classes)}; give one row "
            "of features and one class a sample"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        norms = np.linalg.norm(values, axis=1)
    usable = np.isfinite(norms) & (norms > 0)
    found: set[tuple[int, int]] = set()
    for number in np.unique(np.asarray(classes)[usable]):
        members = np.flatnonzero(usable & (classes == number))
        if len(members) < 2:
            continue
        unit = values[members] / norms[members, None]
        for start in range(0, len(members), ROWS_AT_ONCE):
            part = np.arange(start, min(start + ROWS_AT_ONCE, len(members)))
            similarity = unit[part] @ unit.T
            similarity[np.arange(len(part)), part] = -np.inf
            nearest = members[np.argmax(similarity, axis=1)]
            found |= {
                (min(a, b), max(a, b))
                for a, b in zip(members[part].tolist(), nearest.tolist(), strict=True)
            }
    pairs = np.array(sorted(found), dtype=np.int64).reshape(-1, 2)
    order: NDArray[np.int64] = np.random.default_rng(seed).permutation(len(pairs))
    return pairs[order]
