"""Ruled and squared paper: parallel lines at even distances across the page."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]

LARGEST_SLOPE = 0.15
"""Largest slope of ruled lines against the edge of the picture (8.5 degrees)."""

N_SLOPES = 121
RUN = 1 / 24
"""Length of a straight run that may be a piece of a line, as a share of the page's width."""

DRIFT = 4
"""Rows by which a line may bend, or run off the common slope, to either side."""

LEAST_COVER = 0.5
"""Share of the page's width that a line covers."""

LEAST_LINES = 3
UNEVENNESS = 0.15
"""How far distances may be from multiples of the least, as a share of it."""

THICKNESS_FACTOR = 2.0
"""What is this many times as thick as the line is a stroke that crosses it."""


def without_ruled_lines(strokes: Mask) -> Mask:
    """Remove ruled lines, in one direction or both; strokes that cross them stay.

    A line is a ruled one only among at least three that are parallel, run over half of the page
    and lie at multiples of one distance: a horizon or a table that was drawn stays.

    Parameters
    ----------
    strokes : (H, W) bool array
        Dark pixels.

    Returns
    -------
    (H, W) bool array
    """
    rows = ruled_rows(strokes)
    columns = ruled_rows(strokes.T).T
    return strokes & ~rows & ~columns


def ruled_rows(strokes: Mask) -> Mask:
    """Pixels of nearly horizontal ruled lines.

    Parameters
    ----------
    strokes : (H, W) bool array
        Dark pixels.

    Returns
    -------
    (H, W) bool array
        Nothing where there are no such lines.
    """
    from scipy.ndimage import maximum_filter1d, minimum_filter1d

    width = strokes.shape[1]
    run = 2 * max(1, round(RUN * width / 2)) + 1
    shifts = np.rint(common_slope(strokes) * (np.arange(width) - width / 2)).astype(np.int64)
    border = int(np.abs(shifts).max())
    level = _shifted(np.pad(strokes, ((border, border), (0, 0))), -shifts)
    shrunk = minimum_filter1d(level, run, axis=1, mode="constant", cval=0)
    pieces = maximum_filter1d(shrunk, run, axis=1, mode="constant", cval=0)
    cover = maximum_filter1d(pieces, 2 * DRIFT + 1, axis=0).mean(axis=1)
    lines = _evenly_spaced(cover)
    if lines is None:
        return np.zeros_like(strokes)
    near = np.zeros(len(level), np.bool_)
    for line in lines:
        near[max(0, line - DRIFT - 1) : line + DRIFT + 2] = True
    pieces &= near[:, None]
    height = _heights(level)
    thickness = float(np.median(height[pieces]))
    # Pieces are joined over the strokes that cross them, and are as thick as the line is.
    joined = maximum_filter1d(pieces, 2 * run + 1, axis=1, mode="constant", cval=0)
    band = maximum_filter1d(joined, 3, axis=0, mode="constant", cval=0) & near[:, None]
    found = _shifted(level & band & (height <= THICKNESS_FACTOR * thickness), shifts)
    return found[border : len(found) - border]


def common_slope(strokes: Mask) -> float:
    """Slope, in pixels down a pixel to the right, at which dark pixels lie in the fewest rows."""
    rows, columns = np.nonzero(strokes)
    height, width = strokes.shape
    offset = int(LARGEST_SLOPE * width) + 1
    best, found = -1.0, 0.0
    # By size, so that of equal ones the least is taken.
    slopes = np.linspace(-LARGEST_SLOPE, LARGEST_SLOPE, N_SLOPES)
    for slope in slopes[np.argsort(np.abs(slopes), kind="stable")]:
        at = np.rint(rows - slope * (columns - width / 2)).astype(np.int64) + offset
        counts = np.bincount(at, minlength=height + 2 * offset).astype(np.float64)
        if (sharpness := float(counts @ counts)) > best:
            best, found = sharpness, float(slope)
    return found


def _evenly_spaced(cover: NDArray[np.floating]) -> NDArray[np.int64] | None:
    """Rows of lines at multiples of one distance, also lines seen only in part; None without."""
    from scipy.signal import find_peaks

    padded = np.concatenate([[0.0], cover, [0.0]])
    lines: NDArray[np.int64] = find_peaks(padded, height=LEAST_COVER, distance=DRIFT)[0] - 1
    if len(lines) < LEAST_LINES:
        return None
    distances = np.diff(lines)
    step = float(np.median(distances))
    if step <= 2 * DRIFT:
        return None
    multiples = np.maximum(1, np.rint(distances / step))
    if (np.abs(distances - multiples * step) > UNEVENNESS * step).any():
        return None
    step = float(lines[-1] - lines[0]) / float(multiples.sum())
    # A line that leaves the picture at its side covers little of it.
    before = np.arange(lines[0] - step, 0, -step)[::-1]
    after = np.arange(lines[-1] + step, len(cover), step)
    rows: NDArray[np.int64] = np.rint(np.concatenate([before, lines, after])).astype(np.int64)
    return rows


def _shifted(mask: Mask, shifts: NDArray[np.int64]) -> Mask:
    """Move each column down by its number of rows; what leaves the picture is lost."""
    height, width = mask.shape
    rows = np.arange(height)[:, None] - shifts
    inside = (rows >= 0) & (rows < height)
    moved: Mask = mask[np.clip(rows, 0, height - 1), np.arange(width)] & inside
    return moved


def _heights(mask: Mask) -> NDArray[np.int64]:
    """Length of the vertical run of dark pixels that each dark pixel is in; 0 elsewhere."""
    padded = np.zeros((mask.shape[0] + 2, mask.shape[1]), np.int8)
    padded[1:-1] = mask
    edges = np.diff(padded, axis=0)
    # Column by column, starts and ends come in the same order.
    columns, starts = np.nonzero(edges.T == 1)
    ends = np.nonzero(edges.T == -1)[1]
    lengths = np.zeros((mask.shape[1], mask.shape[0] + 1), np.int64)
    np.add.at(lengths, (columns, starts), ends - starts)
    np.add.at(lengths, (columns, ends), starts - ends)
    return np.cumsum(lengths[:, :-1], axis=1).T
