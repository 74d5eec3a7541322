"""Compiled loops over the admissible pairs of a semiorder; importing this imports numba.

`first` and `last` are ranges of positions as in `cppcl.curriculum.semiorder.Semiorder`, and `v`
holds the pacing variables by position. Every class is a run of positions with one `last`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.optim.compiled import compiled, compiled_within

Vector = NDArray[np.float64]
Integers = NDArray[np.int64]


@compiled_within
def add_to(tree: Any, rank: int, value: float) -> None:  # pragma: no cover
    """Count a value at a rank, and its first two powers, in a Fenwick tree (n + 1, 3)."""
    k = rank + 1
    while k < len(tree):
        tree[k, 0] += 1
        tree[k, 1] += value
        tree[k, 2] += value * value
        k += k & -k


@compiled_within
def sums_below(tree: Any, rank: int) -> tuple[float, float, float]:  # pragma: no cover
    """Count, sum and sum of squares of the values at ranks below one."""
    count, total, squares = 0.0, 0.0, 0.0
    k = rank
    while k > 0:
        count += tree[k, 0]
        total += tree[k, 1]
        squares += tree[k, 2]
        k -= k & -k
    return count, total, squares


@compiled_within
def rank_of(ordered: Any, x: float, including: bool) -> int:  # pragma: no cover
    """Number of values in increasing order below x, or of those up to it."""
    low, high = 0, len(ordered)
    while low < high:
        middle = (low + high) // 2
        if ordered[middle] < x or (including and ordered[middle] == x):
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def all_pairs_hinge(
    first: Integers, last: Integers, v: Vector, by_value: Integers, eps: float, gradient: Vector
) -> float:  # pragma: no cover
    """Huberised hinge over all admissible pairs, and its gradient, added in place.

    Two sweeps over every class, one for the harder and one for the easier sample of a pair, with
    the samples on the other side in a Fenwick tree by the rank of their variable: O(n log n)
    time and O(n) memory, exact but for rounding. `by_value` holds the positions sorted by class
    and variable. With ``eps = 0`` the plain hinge.
    """
    value = 0.0
    start = 0
    while start < len(first):
        stop = last[start]
        n = stop - start
        ordered, rank = np.empty(n), np.empty(n, np.int64)
        for k in range(n):
            ordered[k] = v[by_value[start + k]]
            rank[by_value[start + k] - start] = k
        # Harder samples from the last one on: their easier ones only become more.
        tree = np.zeros((n + 1, 3))
        added = stop
        for harder in range(stop - 1, start - 1, -1):
            while added > first[harder]:
                added -= 1
                add_to(tree, rank[added - start], v[added])
            x = v[harder]
            far = rank_of(ordered, x - eps, False)
            count, total, squares = sums_below(tree, far)
            value += count * (x - 0.5 * eps) - total
            gradient[harder] += count
            if eps > 0:
                up_to = rank_of(ordered, x, False)
                near, near_total, near_squares = sums_below(tree, up_to)
                near, near_total = near - count, near_total - total
                near_squares -= squares
                # sum of (x - v)^2 over those in between
                value += (near * x * x - 2 * x * near_total + near_squares) / (2 * eps)
                gradient[harder] += (near * x - near_total) / eps
        # Easier samples from the first one on.
        tree[:] = 0
        added = start
        for easier in range(start, stop):
            while added < stop and first[added] <= easier:
                add_to(tree, rank[added - start], v[added])
                added += 1
            x = v[easier]
            everything, total, _ = sums_below(tree, n)
            far = rank_of(ordered, x + eps, True)
            below, below_total, _ = sums_below(tree, far)
            gradient[easier] -= everything - below
            if eps > 0:
                few, few_total, _ = sums_below(tree, rank_of(ordered, x, True))
                gradient[easier] -= ((below_total - few_total) - (below - few) * x) / eps
        start = stop
    return value


@compiled
def chain_hinge(first: Integers, last: Integers, v: Vector) -> float:  # pragma: no cover
    """Sum over easier samples of how far the largest of their harder ones exceeds them."""
    value = 0.0
    start = 0
    while start < len(first):
        stop = last[start]
        largest, added = -np.inf, start
        for easier in range(start, stop):
            while added < stop and first[added] <= easier:
                largest = max(largest, v[added])
                added += 1
            if largest > v[easier]:
                value += largest - v[easier]
        start = stop
    return value


@compiled
def smooth_chain_hinge(
    first: Integers, last: Integers, v: Vector, eps: float, gradient: Vector
) -> float:  # pragma: no cover
    """Huberised `chain_hinge` of a soft maximum, and its gradient, added in place.

    The soft maximum of the first p variables is ``t log(sum exp(v / t))`` with
    ``t = eps / (1 + log n)``, n the samples of the class: at most eps above the maximum.
    Sums run along the order, relative to the largest variable so far, and back.
    """
    value = 0.0
    start = 0
    while start < len(first):
        stop = last[start]
        n = stop - start
        t = eps / (1 + np.log(n))
        largest, sums = np.empty(n), np.empty(n)  # of the variables up to each position
        running, total = -np.inf, 0.0
        for k in range(n):
            x = v[start + k]
            if x > running:
                total = total * np.exp((running - x) / t) + 1 if k else 1.0
                running = x
            else:
                total += np.exp((x - running) / t)
            largest[k], sums[k] = running, total
        slopes, n_harder = np.zeros(n), np.zeros(n, np.int64)
        added = 0
        for k in range(n):
            while added < n and first[start + added] <= start + k:
                added += 1
            n_harder[k] = added
            if added:
                z = largest[added - 1] + t * np.log(sums[added - 1]) - v[start + k]
                slopes[k] = min(max(z / eps, 0.0), 1.0)
                value += slopes[k] * (z - 0.5 * eps * slopes[k])
                gradient[start + k] -= slopes[k]
        # Every slope goes to the harder samples in proportion to their exponentials.
        share, k = 0.0, n - 1
        for harder in range(n - 1, -1, -1):
            if harder < n - 1:
                share *= np.exp((largest[harder] - largest[harder + 1]) / t)
            while k >= 0 and n_harder[k] > harder:
                share += slopes[k] / sums[harder]
                k -= 1
            gradient[start + harder] += share * np.exp((v[start + harder] - largest[harder]) / t)
        start = stop
    return value


@compiled_within
def pair_hash(harder: Any, easier: Any) -> Any:  # pragma: no cover
    """Pseudo-random 64-bit hash of a pair of 64-bit numbers (splitmix64's finaliser)."""
    z = harder * np.uint64(0x9E3779B97F4A7C15) + easier
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@compiled
def hashed_pairs(
    first: Integers, last: Integers, hashes: Any, limit: Any, most: int
) -> Any:  # pragma: no cover
    """Positions (harder, easier) of the admissible pairs whose hash is below a limit, (P, 2).

    `hashes` (m,) uint64 are of the samples at each position. At most the first `most` pairs.
    """
    found = np.empty((most, 2), np.int64)
    n = 0
    for harder in range(len(first)):
        for easier in range(first[harder], last[harder]):
            if pair_hash(hashes[harder], hashes[easier]) < limit:
                if n == most:
                    return found
                found[n, 0] = harder
                found[n, 1] = easier
                n += 1
    return found[:n]
