"""Compiled loops of scores of windows; importing this imports numba."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.optim.compiled import compiled, compiled_within

Array = NDArray[Any]


@compiled
def integral_count(
    marked: Array,
) -> Array:  # pragma: no cover - compiled lines are not traced
    """Count marks above and to the left: (h, w) to (h + 1, w + 1) int32."""
    height, width = marked.shape
    sums = np.zeros((height + 1, width + 1), np.int32)
    for y in range(height):
        count = 0
        for x in range(width):
            count += marked[y, x]
            sums[y + 1, x + 1] = sums[y, x + 1] + count
    return sums


@compiled
def integral_histogram(labels: Array, n_labels: int) -> Array:  # pragma: no cover
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
                # Of shares over their common denominator: equal ones differ by exactly 0.
                p, q = inside * n_around, around * n_inside
                if p + q > 0:
                    total += float(p - q) ** 2 / float(p + q)
            distances[k] = total / n_inside / n_around
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


@compiled_within
def turn_between(a: float, b: float) -> float:  # pragma: no cover
    """Angle between two orientations, from 0 to a right angle."""
    difference = abs(a - b) % np.pi
    return min(difference, np.pi - difference)


@compiled
def grow_groups(
    rows: Array, columns: Array, orientations: Array, of_pixel: Array
) -> Array:  # pragma: no cover
    """Group of every edge pixel; the turns inside a group add up to a right angle at most.

    Every pixel in turn that has no group begins one, which goes on to the neighbour without
    group that turns least, from either end of what it has.
    """
    height, width = of_pixel.shape
    groups = np.full(len(rows), -1, np.int64)
    n_groups = 0
    for first in range(len(rows)):
        if groups[first] >= 0:
            continue
        groups[first] = n_groups
        left = np.pi / 2
        for _ in range(2):  # one way, then the other
            at = first
            while True:
                best, least = -1, np.inf
                for y in range(max(rows[at] - 1, 0), min(rows[at] + 2, height)):
                    for x in range(max(columns[at] - 1, 0), min(columns[at] + 2, width)):
                        e = of_pixel[y, x]
                        if e >= 0 and groups[e] < 0:
                            turn = turn_between(orientations[at], orientations[e])
                            if turn < least:
                                best, least = e, turn
                if best < 0 or least > left:
                    break
                groups[best] = n_groups
                left -= least
                at = best
        n_groups += 1
    return groups


@compiled
def group_affinities(
    rows: Array,
    columns: Array,
    orientations: Array,
    groups: Array,
    of_pixel: Array,
    n_groups: int,
) -> Array:  # pragma: no cover
    """How much neighbouring groups continue one another, (n_groups, n_groups)."""
    height, width = of_pixel.shape
    sums = np.zeros((n_groups, 5))  # row, column, cos and sin of the doubled orientation, pixels
    for e in range(len(rows)):
        of_group = sums[groups[e]]
        of_group[0] += rows[e]
        of_group[1] += columns[e]
        of_group[2] += np.cos(2 * orientations[e])
        of_group[3] += np.sin(2 * orientations[e])
        of_group[4] += 1
    affinities = np.zeros((n_groups, n_groups))
    for e in range(len(rows)):
        i = groups[e]
        for y in range(max(rows[e] - 2, 0), min(rows[e] + 3, height)):
            for x in range(max(columns[e] - 2, 0), min(columns[e] + 3, width)):
                if of_pixel[y, x] < 0:
                    continue
                j = groups[of_pixel[y, x]]
                if j <= i or affinities[i, j] > 0:
                    continue
                line = np.arctan2(
                    sums[j, 0] / sums[j, 4] - sums[i, 0] / sums[i, 4],
                    sums[j, 1] / sums[j, 4] - sums[i, 1] / sums[i, 4],
                )
                one = np.arctan2(sums[i, 3], sums[i, 2]) / 2
                other = np.arctan2(sums[j, 3], sums[j, 2]) / 2
                affinity = (np.cos(one - line) * np.cos(other - line)) ** 2
                affinities[i, j] = affinities[j, i] = affinity
    return affinities


@compiled
def score_boxes(
    rows: Array,
    columns: Array,
    magnitudes: Array,
    groups: Array,
    affinities: Array,
    windows: Array,
) -> Array:  # pragma: no cover
    """Edge boxes score of every window, not negative."""
    n_groups = len(affinities)
    sizes, totals = np.zeros(n_groups, np.int64), np.zeros(n_groups)
    for e in range(len(rows)):
        sizes[groups[e]] += 1
        totals[groups[e]] += magnitudes[e]
    # Neighbours in compressed rows: few pairs of groups have any affinity.
    first = np.zeros(n_groups + 1, np.int64)
    for i in range(n_groups):
        first[i + 1] = first[i] + np.count_nonzero(affinities[i])
    neighbours, strengths = np.empty(first[-1], np.int64), np.empty(first[-1])
    for i in range(n_groups):
        at = first[i]
        for j in range(n_groups):
            if affinities[i, j] > 0:
                neighbours[at], strengths[at] = j, affinities[i, j]
                at += 1
    scores = np.zeros(len(windows))
    inside = np.empty(n_groups, np.int64)
    across = np.empty(n_groups)
    for k in range(len(windows)):
        left, top, right, bottom = windows[k]
        width, height = right - left, bottom - top
        inner_left, inner_top = left + width / 4, top + height / 4
        inside[:] = 0
        central = 0.0
        for e in range(len(rows)):
            if left <= columns[e] < right and top <= rows[e] < bottom:
                inside[groups[e]] += 1
                if (
                    inner_left <= columns[e] < inner_left + width / 2
                    and inner_top <= rows[e] < inner_top + height / 2
                ):
                    central += magnitudes[e]
        for i in range(n_groups):
            across[i] = 1.0 if 0 < inside[i] < sizes[i] else 0.0
        changed = True
        while changed:  # the best path to every group from those across the border
            changed = False
            for i in range(n_groups):
                if inside[i] == sizes[i]:
                    for at in range(first[i], first[i + 1]):
                        j = neighbours[at]
                        if inside[j] > 0 and across[j] * strengths[at] > across[i] + 1e-12:
                            across[i] = across[j] * strengths[at]
                            changed = True
        total = -central
        for i in range(n_groups):
            if inside[i] == sizes[i]:
                total += (1 - across[i]) * totals[i]
        scores[k] = max(total, 0.0) / (2 * (width + height) ** 1.5)
    return scores
