"""Compiled loops of coordinate descent; importing this imports numba."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.optim.compiled import compiled

Matrix = NDArray[Any]

LARGEST_PASSES = 50
"""Active sets tried for a sample."""
SWEEPS_A_NEWTON_STEP = 50
"""Sweeps between Newton steps, which nearly equal atoms need."""
SMALLEST_BATCH = 16
"""Atoms that may enter an empty active set at once; it may double from then on."""


@compiled
def newton_step(
    part: Matrix, c: Matrix, h: Matrix, t: Any, ridge: Any, support: Matrix, L: Matrix
) -> None:  # pragma: no cover - compiled lines are not traced
    """Minimise over the codes that are not zero, as far as none changes its sign, in place."""
    size = 0
    largest = part.dtype.type(0)
    for k in range(len(c)):
        if c[k] != 0:
            support[size] = k
            size += 1
            largest = max(largest, part[k, k])
    # Equal atoms have a singular part; with this it is regular, and the step still descends.
    shift = ridge + part.dtype.type(1e-6) * largest
    step = np.empty(size, part.dtype)
    for a in range(size):
        k = support[a]
        for b in range(a + 1):
            total = part[k, support[b]]
            if a == b:
                total += shift
            for i in range(b):
                total -= L[a, i] * L[b, i]
            if a == b:
                if total <= 0:
                    return
                L[a, a] = total**0.5
            else:
                L[a, b] = total / L[b, b]
        total = h[k] - ridge * c[k]
        total -= t if c[k] > 0 else -t
        for i in range(a):
            total -= L[a, i] * step[i]
        step[a] = total / L[a, a]
    for a in range(size - 1, -1, -1):
        step[a] /= L[a, a]
        for i in range(a):
            step[i] -= L[a, i] * step[a]
    length = part.dtype.type(1)
    first = -1
    for a in range(size):
        value = c[support[a]]
        if value * (value + length * step[a]) < 0:
            length = -value / step[a]
            first = a
    for a in range(size):
        k = support[a]
        moved = length * step[a]
        if a == first:
            moved = -c[k]
            c[k] = 0
        else:
            c[k] += moved
        for i in range(len(c)):
            h[i] -= moved * part[k, i]


@compiled
def descend_rows(
    gram: Matrix,
    correlations: Matrix,
    codes: Matrix,
    thresholds: Matrix,
    ridges: Matrix,
    tol: Any,
    max_iter: int,
    sweeps: Matrix,
    converged: Matrix,
) -> None:  # pragma: no cover - compiled lines are not traced
    """Minimise for each row, in place; see `cppcl.optim.coordinate_descent.descend`."""
    n, N = codes.shape
    active = np.empty(N, np.int64)  # atoms of the active set, in the order of their entry
    is_active = np.zeros(N, np.bool_)
    candidates = np.empty(N, np.int64)
    excess = np.empty(N, gram.dtype)  # by how much candidates violate the conditions
    support = np.empty(N, np.int64)  # active atoms with a code
    factor = np.empty((0, 0), gram.dtype)
    c = np.empty(N, gram.dtype)  # codes of the active atoms
    h = np.empty(N, gram.dtype)  # their correlations with the residual
    for p in range(n):
        g, t, ridge = correlations[p], thresholds[p], ridges[p]
        if t == np.inf:
            continue
        largest = gram.dtype.type(0)
        size = 0
        for j in range(N):
            largest = max(largest, abs(g[j]))
            if codes[p, j] != 0:
                active[size] = j
                is_active[j] = True
                size += 1
        limit = tol * largest
        for k in range(size):
            value = codes[p, active[k]]
            row = gram[active[k]]
            for j in range(N):
                g[j] -= value * row[j]
        done = 0
        for _ in range(LARGEST_PASSES):
            n_candidates = 0
            worst = gram.dtype.type(0)
            for j in range(N):
                if not is_active[j]:
                    over = abs(g[j]) - t
                    if over > limit:
                        candidates[n_candidates] = j
                        excess[n_candidates] = over
                        n_candidates += 1
            for k in range(size):
                j = active[k]
                slope = g[j] - ridge * codes[p, j]
                if codes[p, j] > 0:
                    over = abs(slope - t)
                elif codes[p, j] < 0:
                    over = abs(slope + t)
                else:
                    over = abs(slope) - t
                worst = max(worst, over)
            if n_candidates == 0 and worst <= limit:
                break
            if done >= max_iter:
                converged[p] = False
                break
            least = gram.dtype.type(0)
            admitted = max(SMALLEST_BATCH, size)
            if n_candidates > admitted:
                least = np.sort(excess[:n_candidates])[n_candidates - admitted]
            for k in range(n_candidates):
                if excess[k] >= least:
                    active[size] = candidates[k]
                    is_active[candidates[k]] = True
                    size += 1
            part = np.empty((size, size), gram.dtype)
            if len(factor) < size:
                factor = np.empty((size, size), gram.dtype)
            for k in range(size):
                row = gram[active[k]]
                for i in range(size):
                    part[k, i] = row[active[i]]
                c[k] = codes[p, active[k]]
                h[k] = g[active[k]]
            while done < max_iter:
                done += 1
                moved = gram.dtype.type(0)
                for k in range(size):
                    row = part[k]
                    curvature = row[k] + ridge
                    if curvature <= 0:  # an atom of zeros
                        continue
                    z = h[k] + row[k] * c[k]
                    if z > t:
                        value = (z - t) / curvature
                    elif z < -t:
                        value = (z + t) / curvature
                    else:
                        value = gram.dtype.type(0)
                    step = value - c[k]
                    if step != 0:
                        c[k] = value
                        for i in range(size):
                            h[i] -= step * row[i]
                        moved = max(moved, abs(step) * curvature)
                if moved <= gram.dtype.type(0.3) * limit:
                    break
                if done % SWEEPS_A_NEWTON_STEP == 0:
                    newton_step(part, c[:size], h[:size], t, ridge, support, factor)
            kept = 0
            for k in range(size):
                j = active[k]
                step = c[k] - codes[p, j]
                codes[p, j] = c[k]
                if step != 0:
                    row = gram[j]
                    for i in range(N):
                        g[i] -= step * row[i]
                if c[k] != 0:
                    active[kept] = j
                    kept += 1
                else:
                    is_active[j] = False
            size = kept
        else:
            converged[p] = False
        sweeps[p] = done
        for k in range(size):
            is_active[active[k]] = False
