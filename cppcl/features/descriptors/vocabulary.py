"""Visual words: centres of local descriptors, and histograms of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import InputError

PYRAMID = ((1, 0.25), (2, 0.25), (4, 0.5))
"""Cells along each side, and weight, of every level of the spatial pyramid."""
N_CELLS = sum(side * side for side, _ in PYRAMID)
"""Cells of all levels: 21."""

_BATCH = 8192
_BLOCK = 256


def learn_words(
    descriptors: NDArray[np.float32], n_words: int, seed: int, n_pictures: int
) -> NDArray[np.float32]:
    """Centres of clusters of local descriptors, by mini-batch k-means.

    Parameters
    ----------
    descriptors : (n, d) float32 array
        A sample of the training pictures' descriptors.
    n_words : int
        Number of words.
    seed : int
        Of the starts and of the batches.
    n_pictures : int
        Pictures that the descriptors are of, for the message of the error.

    Returns
    -------
    (n_words, d) float32 array

    Raises
    ------
    InputError
        There are fewer different descriptors than words.
    """
    rows = np.ascontiguousarray(descriptors)
    n_different = len(np.unique(rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1])))))
    if n_different < n_words:
        raise InputError(
            f"{n_different} different local descriptors of {n_pictures} training pictures cannot "
            f"make n_words={n_words} words: give more training pictures, raise "
            "samples_per_picture and max_samples, or lower n_words"
        )
    from sklearn.cluster import MiniBatchKMeans
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    means = MiniBatchKMeans(
        n_words, batch_size=_BATCH, n_init=1, random_state=seed, compute_labels=False
    )
    # The order in which threads add up inertia would decide when it stops.
    with threadpool_limits(limits=1):
        means.fit(rows)
    centres: NDArray[np.float32] = means.cluster_centers_.astype(np.float32)
    return centres


def nearest_words(
    descriptors: NDArray[np.float32], words: NDArray[np.float32]
) -> NDArray[np.int64]:
    """Word of each descriptor, the nearest by Euclidean distance, (n,) int64.

    The nearest of the words w to x has the largest ``x w - |w|^2 / 2``: a matrix product, taken
    in blocks of descriptors that stay in the cache.
    """
    nearest = np.empty(len(descriptors), dtype=np.int64)
    columns = np.ascontiguousarray(words.T)
    half_norms = np.einsum("ij,ij->i", words, words) / 2
    scores = np.empty((min(_BLOCK, len(descriptors)), len(words)), dtype=words.dtype)
    for first in range(0, len(descriptors), _BLOCK):
        block = descriptors[first : first + _BLOCK]
        similarity = np.matmul(block, columns, out=scores[: len(block)])
        similarity -= half_norms
        similarity.argmax(axis=1, out=nearest[first : first + _BLOCK])
    return nearest


def word_histogram(
    words: NDArray[np.integer],
    positions: NDArray[np.floating],
    n_words: int,
    pyramid: bool = False,
) -> NDArray[np.float64]:
    """Share of each word among a picture's local descriptors.

    Parameters
    ----------
    words : (n,) integer array
        Words of the descriptors.
    positions : (n, 2) array
        Their rows and columns as shares of the picture's height and width, in [0, 1].
    n_words : int
        Number of words.
    pyramid : bool
        Whether the cells of 1 x 1, 2 x 2 and 4 x 4 grids have histograms of their own, row by
        row, weighted by 1/4, 1/4 and 1/2, so that the intersection of two pyramids is the match
        of Lazebnik, Schmid and Ponce, "Beyond bags of features: spatial pyramid matching for
        recognizing natural scene categories", CVPR 2006.

    Returns
    -------
    (n_words,) or (21 * n_words,) float64 array
        Sums to 1; zeros for a picture without any descriptor.
    """
    levels = PYRAMID if pyramid else ((1, 1.0),)
    histograms = []
    for side, weight in levels:
        cells = np.minimum((positions * side).astype(np.int64), side - 1)
        places = (cells[:, 0] * side + cells[:, 1]) * n_words + words
        counts = np.bincount(places, minlength=side * side * n_words)
        histograms.append(weight * counts / max(len(words), 1))
    return np.concatenate(histograms)


def inverse_document_frequency(
    n_pictures_with: NDArray[np.integer], n_pictures: int
) -> NDArray[np.float32]:
    """Weight of each word, log(n / F) for a word that F of n training pictures have, float32.

    A word that none of them has counts as if one had.
    """
    weights: NDArray[np.float32] = np.log(n_pictures / np.maximum(n_pictures_with, 1)).astype(
        np.float32
    )
    return weights
