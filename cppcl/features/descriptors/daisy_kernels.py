"""Compiled loops of DAISY and of its keyshapes; importing this imports numba."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.optim.compiled import compiled, compiled_within

Array = NDArray[Any]


@compiled
def orientation_layers(
    gray: Array, directions: Array, layers: Array
) -> None:  # pragma: no cover - compiled lines are not traced
    """Positive part of the gradient along each direction: (h, w) into (h, w, 8)."""
    height, width = gray.shape
    half = gray.dtype.type(0.5)
    for y in range(height):
        # Mirrored at the border, both neighbours are the same pixel.
        above = gray[max(y - 1, 0) if 0 < y < height - 1 else y]
        below = gray[y + 1 if 0 < y < height - 1 else y]
        for x in range(width):
            dx = gray.dtype.type(0)
            if 0 < x < width - 1:
                dx = half * (gray[y, x + 1] - gray[y, x - 1])
            dy = half * (below[x] - above[x])
            for k in range(8):
                along = directions[k, 0] * dx + directions[k, 1] * dy
                layers[y, x, k] = max(along, gray.dtype.type(0))


@compiled
def smooth_rows(
    planes: Array, taps: Array, depth: int, padded: Array, out: Array
) -> None:  # pragma: no cover - compiled lines are not traced
    """Correlate every row with symmetric taps, the border mirrored.

    `planes` is (h, w * depth) with `depth` values a pixel, `taps` the middle tap and those on one
    side of it, `padded` room for a row with as many pixels as taps on both sides.
    """
    height, size = planes.shape
    width, radius = size // depth, len(taps) - 1
    for y in range(height):
        row, result = planes[y], out[y]
        empty = True
        for i in range(size):
            if row[i] != 0:
                empty = False
                break
        if empty:
            result[:] = 0
            continue
        for x in range(-radius, width + radius):
            source = mirrored(x, width)
            for k in range(depth):
                padded[(x + radius) * depth + k] = row[source * depth + k]
        for t in range(radius + 1):
            first, second, weight = (radius - t) * depth, (radius + t) * depth, taps[t]
            before, after = padded[first : first + size], padded[second : second + size]
            if t == 0:
                for i in range(size):
                    result[i] = weight * before[i]
            else:
                for i in range(size):
                    result[i] += weight * (before[i] + after[i])


@compiled
def smooth_columns(
    planes: Array, taps: Array, out: Array
) -> None:  # pragma: no cover - compiled lines are not traced
    """Correlate every column of (h, w) with symmetric taps, the border mirrored."""
    height, size = planes.shape
    filled = np.zeros(height, np.bool_)
    for y in range(height):
        for i in range(size):
            if planes[y, i] != 0:
                filled[y] = True
                break
    for y in range(height):
        result = out[y]
        result[:] = 0
        for t in range(len(taps)):
            first, second = mirrored(y - t, height), mirrored(y + t, height)
            above, below, weight = planes[first], planes[second], taps[t]
            if t == 0:
                if filled[y]:
                    for i in range(size):
                        result[i] = weight * above[i]
            elif filled[first] or filled[second]:
                for i in range(size):
                    result[i] += weight * (above[i] + below[i])


@compiled_within
def mirrored(index: int, size: int) -> int:  # pragma: no cover - compiled lines are not traced
    """Index inside 0 ... size - 1 that a border without repetition mirrors."""
    if size == 1:
        return 0
    period = 2 * size - 2
    index = abs(index) % period
    return min(index, period - index)


@compiled
def sample(
    cubes: Array,
    rows: Array,
    columns: Array,
    steps: Array,
    weights: Array,
    layers: Array,
    eps: Any,
    descriptors: Array,
) -> None:  # pragma: no cover - compiled lines are not traced
    """Read the grid points of each pixel bilinearly, and normalise each cell.

    `cubes` is (2, h, w, 8), `steps` (17, 2) the whole pixels from a pixel to a grid point,
    downwards and to the right, `weights` (17, 4) those of its four neighbours, `layers` (17,) its
    cube, `descriptors` (n, 17 * 8) what is filled.
    """
    height, width = cubes.shape[1:3]
    values = np.empty(8, cubes.dtype)
    for p in range(len(rows)):
        for g in range(len(steps)):
            top, left = rows[p] + steps[g, 0], columns[p] + steps[g, 1]
            if top < 0 or left < 0 or top >= height or left >= width:
                for k in range(8):
                    descriptors[p, g * 8 + k] = 0
                continue
            bottom, right = min(top + 1, height - 1), min(left + 1, width - 1)
            cube = cubes[layers[g]]
            a, b, c, d = weights[g]
            total = cubes.dtype.type(0)
            for k in range(8):
                value = a * cube[top, left, k] + b * cube[top, right, k]
                value += c * cube[bottom, left, k] + d * cube[bottom, right, k]
                values[k] = value
                total += value * value
            scale = 1 / (np.sqrt(total) + eps)
            for k in range(8):
                descriptors[p, g * 8 + k] = values[k] * scale


@compiled
def soft_votes(
    distances: Array, scales: Array, n_nearest: int, nearest: Array, votes: Array
) -> None:  # pragma: no cover - compiled lines are not traced
    """Nearest keyshapes of each descriptor, and its votes for them, which sum to 1.

    `distances` is (n, K), `scales` (K,) the sigma of each keyshape; `nearest` and `votes` are
    (n, n_nearest) and filled from the nearest on.
    """
    n_keyshapes = distances.shape[1]
    closest = np.empty(n_nearest, np.float64)
    for p in range(len(distances)):
        found = 0
        for j in range(n_keyshapes):
            distance = distances[p, j]
            if found == n_nearest and distance >= closest[found - 1]:
                continue
            place = min(found, n_nearest - 1)
            found = place + 1
            while place > 0 and closest[place - 1] > distance:
                closest[place] = closest[place - 1]
                nearest[p, place] = nearest[p, place - 1]
                place -= 1
            closest[place] = distance
            nearest[p, place] = j
        # Shifted by the largest exponent, so that far descriptors do not lose their votes.
        largest = -np.inf
        for i in range(n_nearest):
            sigma = scales[nearest[p, i]]
            ratio = closest[i] / sigma
            closest[i] = -0.5 * ratio * ratio - np.log(sigma)
            largest = max(largest, closest[i])
        total = 0.0
        for i in range(n_nearest):
            closest[i] = np.exp(closest[i] - largest)
            total += closest[i]
        for i in range(n_nearest):
            votes[p, i] = closest[i] / total


@compiled
def block_votes(
    rows: Array,
    columns: Array,
    shape: tuple[int, int],
    nearest: Array,
    votes: Array,
    histograms: Array,
) -> None:  # pragma: no cover - compiled lines are not traced
    """Add votes to the four nearest blocks of a grid, (B, B, K), by bilinear weights.

    Weights of blocks outside the grid are lost.
    """
    n_blocks = len(histograms)
    for p in range(len(rows)):
        v, u = rows[p] * n_blocks / shape[0] - 0.5, columns[p] * n_blocks / shape[1] - 0.5
        top, left = int(np.floor(v)), int(np.floor(u))
        for i in range(2):
            if not 0 <= top + i < n_blocks:
                continue
            weight_y = v - top if i else 1 - (v - top)
            for j in range(2):
                if not 0 <= left + j < n_blocks:
                    continue
                weight = weight_y * (u - left if j else 1 - (u - left))
                block = histograms[top + i, left + j]
                for k in range(nearest.shape[1]):
                    block[nearest[p, k]] += weight * votes[p, k]
