"""Binary codes: what they are, and what is found within a Hamming radius."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cppcl.errors import InputError

HAMMING_RADIUS = 2
"""Within which publications score binary codes."""
_CHUNK = 2**24
"""Distances that are held at once."""


def check_binary(name: str, codes: ArrayLike) -> NDArray[np.float32]:
    """Codes (n, m) of -1 and 1 in single precision; those that are all zero may stand for none.

    Raises
    ------
    InputError
        If another entry occurs; the message names the first.
    """
    values = np.asarray(codes)
    wrong = (np.abs(values) != 1) & values.any(axis=1, keepdims=True)
    if wrong.any():
        row, column = map(int, np.argwhere(wrong)[0])
        raise InputError(
            f"{name} row {row} holds {values[row, column]}, and a Hamming radius is of codes of "
            "-1 and 1; leave radius out, or make binary codes of them"
        )
    return values.astype(np.float32)


def precision_within(
    query_codes: ArrayLike,
    gallery_codes: ArrayLike,
    query_classes: NDArray[np.int64],
    gallery_classes: NDArray[np.int64],
    radius: int,
) -> NDArray[np.float64]:
    """Share of relevant codes among those within a Hamming radius of each query, (q,).

    It is 0 where there are none, also for codes that are all zero.

    Parameters
    ----------
    query_codes, gallery_codes : array_like, (q, m) and (g, m)
        Entries -1 and 1; rows of zeros are within no radius.
    query_classes, gallery_classes : (q,) and (g,) int64
        Equal numbers are relevant.
    radius : int
        Most bits that may differ.

    Raises
    ------
    InputError
        For codes that are not binary.
    """
    queries = check_binary("query_codes", query_codes)
    gallery = check_binary("gallery_codes", gallery_codes)
    # The product of codes at Hamming distance h is m - 2 h; that with zeros is 0.
    least = queries.shape[1] - 2 * radius
    some, usable = ((codes != 0).any(axis=1) for codes in (queries, gallery))
    precision = np.zeros(len(queries))
    size = max(1, _CHUNK // len(gallery))
    for first in range(0, len(queries), size):
        part = slice(first, first + size)
        within = (queries[part] @ gallery.T >= least) & usable & some[part, None]
        relevant = within & (gallery_classes == query_classes[part, None])
        found = within.sum(axis=1)
        precision[part] = relevant.sum(axis=1) / np.maximum(found, 1)
    return precision
