"""Keyshapes: clusters of DAISY descriptors of stroke pixels, and votes for them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import InputError
from cppcl.features.descriptors.daisy import PATCH, RADIUS, daisy
from cppcl.features.learning import UniformSample

STATISTICS = ("minimum", "maximum", "mean", "deviation", "count")
"""Of the Euclidean distances of a keyshape's members to it."""

_BATCH = 8192
_STARTS = 3
_SMALLEST_SCALE = 1e-3
_CHUNK = 8192


def sample_strokes(
    masks: Iterable[NDArray[np.bool_]], n_per_picture: int, n_samples: int, seed: int
) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
    """Draw marked pixels of masks, and describe them.

    Parameters
    ----------
    masks : iterable of (h, w) bool arrays
        Contours of training pictures; those without any count for nothing.
    n_per_picture : int
        Pixels drawn of each, or all where there are fewer.
    n_samples : int
        Pixels kept of all, or all where there are fewer.
    seed : int
        Of both draws.

    Returns
    -------
    descriptors : (n, 136) float32 array
    patches : (n, 121) uint8 array
        Surroundings of each pixel, (31, 31) flags packed row by row.

    Raises
    ------
    InputError
        No mask has a mark.
    """
    rng = np.random.default_rng(seed)
    sample = UniformSample(n_samples, rng)
    n_pictures = 0
    for mask in masks:
        n_pictures += 1
        rows, columns = np.nonzero(mask)
        if not len(rows):
            continue
        chosen = np.sort(rng.permutation(len(rows))[:n_per_picture])
        rows, columns = rows[chosen], columns[chosen]
        sample.add(daisy(mask, rows, columns), _patches(mask, rows, columns))
    if not sample.rows():
        raise InputError(
            f"none of the {n_pictures} training pictures has a contour to learn keyshapes from: "
            "give sketches with dark strokes on a light ground, or photographs with option "
            "contours='canny'"
        )
    descriptors, patches = sample.rows()
    return descriptors, patches


def learn_keyshapes(
    descriptors: NDArray[np.float32], n_keyshapes: int, seed: int
) -> NDArray[np.float32]:
    """Centres of clusters of descriptors, (n_keyshapes, 136) float32, by mini-batch k-means.

    Raises
    ------
    InputError
        There are fewer different descriptors than keyshapes.
    """
    n_different = len(np.unique(descriptors, axis=0))
    if n_different < n_keyshapes:
        raise InputError(
            f"{n_different} different stroke descriptors cannot make n_keyshapes={n_keyshapes} "
            "keyshapes: give more training pictures, or lower n_keyshapes"
        )
    from sklearn.cluster import MiniBatchKMeans
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    means = MiniBatchKMeans(
        n_keyshapes, batch_size=_BATCH, n_init=_STARTS, random_state=seed, compute_labels=False
    )
    # The order in which threads add up inertia would decide when it stops.
    with threadpool_limits(limits=1):
        means.fit(descriptors)
    centres: NDArray[np.float32] = means.cluster_centers_.astype(np.float32)
    return centres


def describe_members(
    descriptors: NDArray[np.float32],
    patches: NDArray[np.uint8],
    keyshapes: NDArray[np.float32],
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Statistics and looks of each keyshape's members, the descriptors nearest to it.

    Returns
    -------
    statistics : (K, 5) float32 array
        See `STATISTICS`; zeros for a keyshape without members.
    shapes : (K, 31, 31) float32 array
        Share of the members in whose surroundings each pixel is marked.
    """
    nearest, distances = [], []
    for first in range(0, len(descriptors), _CHUNK):
        squared = squared_distances(descriptors[first : first + _CHUNK], keyshapes)
        nearest.append(squared.argmin(axis=1))
        distances.append(np.sqrt(squared.min(axis=1)))
    member_of, distance = np.concatenate(nearest), np.concatenate(distances)

    statistics = np.zeros((len(keyshapes), len(STATISTICS)), dtype=np.float32)
    shapes = np.zeros((len(keyshapes), PATCH, PATCH), dtype=np.float32)
    for keyshape in np.unique(member_of):
        members = np.flatnonzero(member_of == keyshape)
        of_members = distance[members].astype(np.float64)
        statistics[keyshape] = (
            of_members.min(),
            of_members.max(),
            of_members.mean(),
            of_members.std(),
            len(members),
        )
        flags = np.unpackbits(patches[members], axis=1, count=PATCH * PATCH)
        shapes[keyshape] = flags.mean(axis=0, dtype=np.float64).reshape(PATCH, PATCH)
    return statistics, shapes


def vote_scales(statistics: NDArray[np.float32], squared_distance: bool) -> NDArray[np.float64]:
    """Largest distance of a member to each keyshape, the sigma of its votes, (K,) float64.

    A keyshape without members takes the median of the others, and none falls below a thousandth
    of it, so that no vote is divided by 0.
    """
    largest = statistics[:, STATISTICS.index("maximum")].astype(np.float64)
    if squared_distance:
        largest = largest**2
    counted = statistics[:, STATISTICS.index("count")] > 0
    typical = float(np.median(largest[counted])) if counted.any() else 0.0
    typical = typical or 1.0
    return np.maximum(np.where(counted, largest, typical), _SMALLEST_SCALE * typical)


def squared_distances(
    descriptors: NDArray[np.float32], keyshapes: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Squared Euclidean distances of descriptors to keyshapes, (n, K) float32."""
    distances: NDArray[np.float32] = descriptors @ (-2 * keyshapes.T)
    distances += np.einsum("ij,ij->i", descriptors, descriptors)[:, None]
    distances += np.einsum("ij,ij->i", keyshapes, keyshapes)
    np.maximum(distances, 0, out=distances)
    return distances


def _patches(
    mask: NDArray[np.bool_], rows: NDArray[np.integer], columns: NDArray[np.integer]
) -> NDArray[np.uint8]:
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(mask, RADIUS), (PATCH, PATCH))
    return np.packbits(windows[rows, columns].reshape(len(rows), -1), axis=1)
