"""Compiled loops of scores of windows; importing this imports numba."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.optim.compiled import compiled

Array = NDArray[Any]


@compiled
def integral_histogram(
    labels: Array, n_labels: int
) -> Array:  # pragma: no cover - compiled lines are not traced
    """Count labels above and to the left: (h, w) to (h + 1, w + 1, n_labels) int32."""
    height, width = labels.shape
    sums = np.zeros((height + 1, width + 1, n_labels), np.int32)
    row = np.zeros(n_labels, np.int32)
    for y in range(height):
        row[:] = 0
        for x in range(width):
            row[labels[y, x]] += 1
            for label in range(n_labels):
                sums[y + 1, x + 1, label] = sums[y, x + 1, label] + row[label]
    return sums


@compiled
def straddling_shares(sums: Array, windows: Array) -> Array:  # pragma: no cover
    """Pixels of the smaller part of every region that a window cuts, over the window's area."""
    n_regions = sums.shape[2]
    totals = sums[-1, -1]
    shares = np.empty(len(windows))
    for k in range(len(windows)):
        left, top, right, bottom = windows[k]
        a, b = sums[bottom, right], sums[top, right]
        c, d = sums[bottom, left], sums[top, left]
        cut = 0
        for region in range(n_regions):
            inside = a[region] - b[region] - c[region] + d[region]
            cut += min(inside, totals[region] - inside)
        shares[k] = cut / ((right - left) * (bottom - top))
    return shares


@compiled
def histogram_distances(sums: Array, windows: Array, enlarged: Array) -> Array:  # pragma: no cover
    """Chi-squared distances of the histograms in windows to those around, 0 without surround."""
    n_bins = sums.shape[2]
    distances = np.zeros(len(windows))
    for k in range(len(windows)):
        left, top, right, bottom = windows[k]
        a, b = sums[bottom, right], sums[top, right]
        c, d = sums[bottom, left], sums[top, left]
        n_inside = (right - left) * (bottom - top)
        left, top, right, bottom = enlarged[k]
        e, f = sums[bottom, right], sums[top, right]
        g, h = sums[bottom, left], sums[top, left]
        n_around = (right - left) * (bottom - top) - n_inside
        if n_around > 0:
            total = 0.0
            for label in range(n_bins):
                inside = a[label] - b[label] - c[label] + d[label]
                around = e[label] - f[label] - g[label] + h[label] - inside
                p, q = inside / n_inside, around / n_around
                if p + q > 0:
                    total += (p - q) ** 2 / (p + q)
            distances[k] = total
    return distances


@compiled
def salient_mass(values: Array, least: float, windows: Array) -> Array:  # pragma: no cover
    """Sum of the values from `least` on in each window, times their share of its area."""
    height, width = values.shape
    sums = np.zeros((height + 1, width + 1, 2))
    for y in range(height):
        total, count = 0.0, 0.0
        for x in range(width):
            if values[y, x] >= least:
                total += values[y, x]
                count += 1
            sums[y + 1, x + 1, 0] = sums[y, x + 1, 0] + total
            sums[y + 1, x + 1, 1] = sums[y, x + 1, 1] + count
    masses = np.empty(len(windows))
    for k in range(len(windows)):
        left, top, right, bottom = windows[k]
        inside = sums[bottom, right] - sums[top, right] - sums[bottom, left] + sums[top, left]
        masses[k] = inside[0] * inside[1] / ((right - left) * (bottom - top))
    return masses


@compiled
def suppress(windows: Array, largest_overlap: float, n_kept: int) -> Array:  # pragma: no cover
    """Numbers of the first windows that overlap none before them too much, at most `n_kept`."""
    kept = np.empty(n_kept, np.int64)
    n = 0
    for k in range(len(windows)):
        left, top, right, bottom = windows[k]
        area = (right - left) * (bottom - top)
        passed = True
        for e in range(n):
            other = windows[kept[e]]
            shared = max(min(right, other[2]) - max(left, other[0]), 0) * max(
                min(bottom, other[3]) - max(top, other[1]), 0
            )
            union = area + (other[2] - other[0]) * (other[3] - other[1]) - shared
            if shared > largest_overlap * union:
                passed = False
                break
        if passed:
            kept[n] = k
            n += 1
            if n == n_kept:
                break
    return kept[:n]
