"""Compiled loops of local descriptors; importing this imports numba."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.optim.compiled import compiled

Array = NDArray[Any]


@compiled
def oriented_sums(
    magnitude: Array, bins: Array, sums: Array
) -> None:  # pragma: no cover - compiled lines are not traced
    """Magnitude of each bin above and to the left: (h, w) into (h + 1, w + 1, n_bins), zeroed."""
    n_bins = sums.shape[2]
    row = np.zeros(n_bins)
    for y in range(magnitude.shape[0]):
        row[:] = 0
        for x in range(magnitude.shape[1]):
            row[bins[y, x]] += magnitude[y, x]
            for b in range(n_bins):
                sums[y + 1, x + 1, b] = sums[y, x + 1, b] + row[b]


@compiled
def cell_histograms(
    sums: Array, rows: Array, columns: Array, side: int, n_cells: int, descriptors: Array
) -> None:  # pragma: no cover - compiled lines are not traced
    """Histograms of a grid of cells in n windows, of unit norm together, or zero.

    `sums` is what `oriented_sums` gives, `rows` and `columns` (n,) are first pixels of windows
    inside the picture, `side` that of a cell, `descriptors` (n, n_cells * n_cells * n_bins) what
    is filled.
    """
    n_bins = sums.shape[2]
    for p in range(len(rows)):
        total = 0.0
        for i in range(n_cells):
            top = rows[p] + i * side
            for j in range(n_cells):
                left = columns[p] + j * side
                for b in range(n_bins):
                    value = sums[top + side, left + side, b] - sums[top, left + side, b]
                    value += sums[top, left, b] - sums[top + side, left, b]
                    # Differences of sums leave some rounding where there is nothing.
                    value = value if value > 1e-9 else 0.0
                    descriptors[p, (n_cells * i + j) * n_bins + b] = value
                    total += value * value
        scale = 1 / np.sqrt(total) if total > 1e-6 else 0.0
        for k in range(descriptors.shape[1]):
            descriptors[p, k] *= scale


@compiled
def gather_across(
    layers: Array, firsts: Array, taps: Array, n_layers: int, across: Array
) -> None:  # pragma: no cover - compiled lines are not traced
    """Weighted sums along rows: (h, w * n_layers) into (n_cells, h, w * n_layers), zeroed.

    Cell i of pixel x sums ``taps[i, t]`` times the pixel ``x + firsts[i] + t``; there is nothing
    beyond the borders.
    """
    height, size = layers.shape
    for i in range(len(taps)):
        for y in range(height):
            for t in range(taps.shape[1]):
                step = (firsts[i] + t) * n_layers
                first, last = max(0, -step), min(size, size - step)
                if first >= last:
                    continue
                # Slices, as their lengths let the loop be vectorised.
                source, values = layers[y, first + step : last + step], across[i, y, first:last]
                weight = taps[i, t]
                for k in range(len(values)):
                    values[k] += weight * source[k]


@compiled
def gather_down(
    across: Array,
    rows: Array,
    columns: Array,
    firsts: Array,
    taps: Array,
    n_layers: int,
    descriptors: Array,
) -> None:  # pragma: no cover - compiled lines are not traced
    """The same along the columns of n pixels, into (n, n_cells * n_cells * n_layers), zeroed."""
    n_cells, height = across.shape[:2]
    for p in range(len(rows)):
        left = columns[p] * n_layers
        for i in range(n_cells):
            for t in range(taps.shape[1]):
                y, weight = rows[p] + firsts[i] + t, taps[i, t]
                if not 0 <= y < height:
                    continue
                for j in range(n_cells):
                    start = (i * n_cells + j) * n_layers
                    values = descriptors[p, start : start + n_layers]
                    source = across[j, y, left : left + n_layers]
                    for b in range(len(values)):
                        values[b] += weight * source[b]


@compiled
def least_differences(
    codes: Array, places: Array, offsets: Array, bounds: Array, table: Array, least: Array
) -> None:  # pragma: no cover - compiled lines are not traced
    """Fewest pixels in which a patch differs from those of each bin, into (n, n_bins).

    `codes` are patches as bits, `places` (n,) indices of the centres among them, `offsets` steps
    to other patches, those of bin b from ``bounds[b]`` on, `table` the number of bits of numbers
    below 2**13.
    """
    for p in range(len(places)):
        code, place = codes[places[p]], places[p]
        for b in range(len(bounds) - 1):
            fewest = 64
            for k in range(bounds[b], bounds[b + 1]):
                different = code ^ codes[place + offsets[k]]
                count = table[different & 8191] + table[different >> 13]
                fewest = count if count < fewest else fewest
            least[p, b] = fewest
