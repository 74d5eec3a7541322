"""Groups of edges that belong together by proximity, continuity and similarity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SHORTEST_SEGMENT = 10
"""Pixels; shorter segments are dropped."""
FARTHEST_ENDS = 20.0
"""Pixels; ends farther apart are never linked."""
PROXIMITY, CONTINUITY, SIMILARITY = 5.0, 0.2, 0.2
"""Scales of the distance in pixels, of 1 - cos of the turn, and of the change of the gradient."""
LEAST_AFFINITY = 0.3
CLOSED_ENDS = 15.0
"""Pixels between the last two free ends below which a group counts as closed."""
CLOSURE_BONUS = 1.5
KEPT_SALIENCY = 0.7
"""Share of the total saliency that the kept groups reach."""
TANGENT_RADIUS = 5


@dataclass(frozen=True)
class Ends:
    """Free ends of segments: their places, directions and segments."""

    points: NDArray[np.float64]
    """(e, 2), row and column."""
    directions: NDArray[np.float64]
    """(e, 2) unit vectors outwards."""
    segments: NDArray[np.int64]
    """(e,)"""


def salient_edges(edges: NDArray[np.bool_], gradient: NDArray[np.floating]) -> NDArray[np.bool_]:
    """Edges of the most salient groups.

    Edges are thinned and cut at junctions into segments. Two segments are linked where an end of
    each has the affinity::

        exp(-d / 5) exp(-(1 - cos turn) / 0.2) exp(-|change of mean gradient| / 0.2) > 0.3

    with d their distance, below 20 pixels, and the turn that a line takes from one into the
    other; gradients are relative to the largest one on an edge. Linked segments make groups. A
    group's saliency is its number of pixels times its mean gradient, and half as much again
    where it is closed. Groups are kept from the most salient one on until they have 70 % of all
    saliency.

    Parameters
    ----------
    edges : (h, w) bool array
        Edge map.
    gradient : (h, w) array
        Magnitude of the gradient, not negative.

    Returns
    -------
    (h, w) bool array
        Lines of one pixel.
    """
    segments, n_segments = split_segments(edges)
    if not n_segments:
        return np.zeros_like(edges)
    lengths = np.bincount(segments.ravel(), minlength=n_segments + 1)[1:]
    totals = np.bincount(segments.ravel(), gradient.ravel(), minlength=n_segments + 1)[1:]
    largest = float(gradient[segments > 0].max())
    strengths = totals / lengths / (largest or 1.0)

    ends = segment_ends(segments)
    linked = affinities(ends, strengths) > LEAST_AFFINITY
    group_of, n_groups = _groups(ends, linked, n_segments)
    closed = _closed(ends, linked, group_of, n_groups)
    saliency = np.bincount(group_of, lengths * strengths, minlength=n_groups)
    saliency = np.where(closed, CLOSURE_BONUS * saliency, saliency)

    order = np.argsort(-saliency, kind="stable")
    before = np.cumsum(saliency[order]) - saliency[order]
    kept = order[before < KEPT_SALIENCY * saliency.sum()]
    of_segment = np.concatenate([[False], np.isin(group_of, kept)])
    return of_segment[segments]


def split_segments(edges: NDArray[np.bool_]) -> tuple[NDArray[np.int64], int]:
    """Label the segments of thinned edges between junctions, from 1 on; short ones are dropped.

    A junction is a pixel with more than two neighbours among eight.
    """
    from scipy import ndimage
    from skimage.morphology import skeletonize

    lines: NDArray[np.bool_] = skeletonize(edges)  # type: ignore[no-untyped-call]
    lines = lines & (_neighbours(lines) <= 2)
    labels, n_labels = ndimage.label(lines, np.ones((3, 3)))
    lengths = np.bincount(labels.ravel(), minlength=n_labels + 1)
    lengths[0] = 0
    kept = lengths >= SHORTEST_SEGMENT
    renamed = np.where(kept, np.cumsum(kept), 0)
    return renamed[labels], int(kept.sum())


def segment_ends(segments: NDArray[np.int64]) -> Ends:
    """Pixels of segments with at most one neighbour of eight, and the directions there.

    A direction runs from the mean of the segment's pixels within 5 pixels to the end.
    """
    rows, columns = np.nonzero((segments > 0) & (_neighbours(segments > 0) <= 1))
    directions = np.zeros((len(rows), 2))
    padded = np.pad(segments, TANGENT_RADIUS)
    span = 2 * TANGENT_RADIUS + 1
    for end, (row, column) in enumerate(zip(rows, columns, strict=True)):
        around = padded[row : row + span, column : column + span]
        near = np.argwhere(around == segments[row, column])
        directions[end] = TANGENT_RADIUS - near.mean(axis=0)
    norms = np.linalg.norm(directions, axis=1, keepdims=True)
    return Ends(
        np.stack([rows, columns], axis=1).astype(np.float64),
        directions / np.where(norms > 0, norms, 1),
        segments[rows, columns] - 1,
    )


def affinities(ends: Ends, strengths: NDArray[np.floating]) -> NDArray[np.float64]:
    """Affinity of every two ends, (e, e); 0 for those of one segment, or too far apart.

    Parameters
    ----------
    ends : Ends
        Free ends of segments.
    strengths : (n,) array
        Mean gradient of each segment, in [0, 1].
    """
    apart = np.linalg.norm(ends.points[:, None] - ends.points, axis=2)
    # A line that goes straight on leaves one end against the direction of the other.
    turn = 1 + ends.directions @ ends.directions.T
    of_end = strengths[ends.segments]
    change = np.abs(of_end[:, None] - of_end)
    affinity = np.exp(-apart / PROXIMITY - turn / CONTINUITY - change / SIMILARITY)
    possible = (apart < FARTHEST_ENDS) & (ends.segments[:, None] != ends.segments)
    return np.where(possible, affinity, 0.0)


def _groups(
    ends: Ends, linked: NDArray[np.bool_], n_segments: int
) -> tuple[NDArray[np.int64], int]:
    from scipy import sparse

    first, second = np.nonzero(linked)
    links = (np.ones(len(first)), (ends.segments[first], ends.segments[second]))
    graph = sparse.coo_array(links, shape=(n_segments, n_segments))
    n_groups, group_of = sparse.csgraph.connected_components(graph, directed=False)
    return group_of, int(n_groups)


def _closed(
    ends: Ends, linked: NDArray[np.bool_], group_of: NDArray[np.int64], n_groups: int
) -> NDArray[np.bool_]:
    """Groups without a free end, or with two that are close to one another."""
    free = ~linked.any(axis=1)
    group_of_end = group_of[ends.segments]
    counts = np.bincount(group_of_end[free], minlength=n_groups)
    closed: NDArray[np.bool_] = counts == 0
    for group in np.flatnonzero(counts == 2):
        first, second = ends.points[free & (group_of_end == group)]
        closed[group] = np.linalg.norm(first - second) < CLOSED_ENDS
    return closed


def _neighbours(marked: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Number of marked pixels among the eight around each."""
    from scipy import ndimage

    ones = np.ones((3, 3), dtype=np.int64)
    counts: NDArray[np.int64] = ndimage.convolve(marked.astype(np.int64), ones, mode="constant")
    return counts - marked
