"""Weights of the graph within a modality, from the samples' features."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import InputError
from cppcl.learning.graph import number_labels
from cppcl.learning.preparation import row_norms
from cppcl.validation import check_choice, check_labels, check_matrix, check_number

Within = Literal["none", "knn", "dense"]
"""Which samples of a modality are linked: none, neighbours of a class, or all."""

LARGEST_DENSE = 10_000
"""Most samples of the complete graph, which has a weight for every two of them."""
BLOCK = 1 << 22
"""Most distances held at once."""


def within_weights(
    features: NDArray[Any],
    labels: Sequence[Hashable] | NDArray[Any],
    kind: Within,
    *,
    n_neighbors: int = 10,
    sigma: float = 1.0,
) -> Any:
    r"""Gaussian weights between samples of one modality, ``exp(-|f_p - f_q|^2 / (2 sigma^2))``.

    The paper (its construction of the graph) links every two samples of a modality ('dense').
    On features of unit norm and at ``sigma = 1`` these weights lie between 0.14 and 1 whatever
    the classes, and outweigh the links between modalities many times; on longer features they
    vanish. 'knn' links each sample to its nearest ones of the same class, in time linear in the
    number of classes.

    Parameters
    ----------
    features : (n, m) array
        One sample a row; scaled to unit norm here for 'knn'.
    labels : sequence of n hashables
        Classes (or other groups), for 'knn'.
    kind : {'none', 'knn', 'dense'}
        Which samples are linked.
    n_neighbors : int, default 10
        Neighbours of each sample, for 'knn'; two samples are linked where either is among the
        other's.
    sigma : float, default 1
        Width of the Gaussian.

    Returns
    -------
    sparse array (n, n) or None
        Symmetric weights of the features' dtype, zero on the diagonal; None for 'none'.

    Raises
    ------
    InputError
        For options out of range, labels of another length, or a complete graph over more than
        10,000 samples.
    """
    from scipy import sparse

    check_choice("kind", kind, Within)
    check_number("n_neighbors", n_neighbors, least=1, whole=True)
    check_number("sigma", sigma, above=0)
    features = check_matrix(features, "features")
    n = len(features)
    labels = check_labels(labels, n, "labels")
    if kind == "none":
        return None
    if kind == "dense" and n > LARGEST_DENSE:
        raise InputError(
            f"printed 'dense_graph' links every two of {n} samples, and takes at most "
            f"{LARGEST_DENSE}; use within='knn'"
        )
    if kind == "dense":
        # In float64, so that both weights of a pair round to the same, and of a size whose square
        # is a number.
        largest = float(np.abs(features).max(initial=0)) or 1.0
        blocks = _squared_distances(features.astype(np.float64) / largest)
        width = float(sigma) / largest
        return sparse.vstack(
            [sparse.csr_array(_gaussian(block, width).astype(features.dtype)) for block in blocks],
            format="csr",
        )
    norms = row_norms(features)[:, None]
    unit = np.divide(features, norms, where=norms > 0, out=np.zeros_like(features))
    classes = number_labels(labels)[0]
    order = np.argsort(classes, kind="stable")
    rows, columns, squared = [], [], []
    for members in np.split(order, np.cumsum(np.bincount(classes))[:-1]):
        k = min(n_neighbors, len(members) - 1)
        first = 0
        for block in _squared_distances(unit[members]):
            nearest = np.argpartition(block, max(k - 1, 0), axis=1)[:, :k]
            rows.append(np.repeat(members[first : first + len(block)], k))
            columns.append(members[nearest.ravel()])
            squared.append(np.take_along_axis(block, nearest, axis=1).ravel())
            first += len(block)
    weights = _gaussian(np.concatenate(squared), float(sigma))
    entries = (weights, (np.concatenate(rows), np.concatenate(columns)))
    directed = sparse.csr_array(entries, shape=(n, n))
    return directed.maximum(directed.T)


def _gaussian(squared: NDArray[Any], sigma: float) -> NDArray[Any]:
    with np.errstate(over="ignore", under="ignore"):  # far apart: no weight
        weights: NDArray[Any] = np.exp(-((np.sqrt(squared) / sigma) ** 2) / 2)
    return weights


def _squared_distances(F: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Squared distances of a few rows at a time to all rows, infinite to the row itself."""
    squares = np.einsum("pm,pm->p", F, F)
    height = max(1, BLOCK // len(F))
    for first in range(0, len(F), height):
        rows = slice(first, first + height)
        block = F[rows] @ F.T
        block *= -2
        block += squares
        block += squares[rows, None]
        np.maximum(block, 0, out=block)
        own = np.arange(len(block))
        block[own, first + own] = np.inf
        yield block
