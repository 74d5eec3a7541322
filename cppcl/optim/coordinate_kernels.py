"""Compiled loops of coordinate descent; importing this imports numba."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.optim.compiled import compiled, compiled_within

Matrix = NDArray[Any]

LARGEST_PASSES = 100
"""Active sets tried for a sample."""
SMALLEST_BATCH = 16
"""Atoms that may enter an empty active set at once; it may double from then on."""
SWEEPS_AT_ONCE = 4
"""Sweeps between conjugate gradients."""
LOOSE = 0.03
"""Share of the largest violation to which the codes of an active set are solved at first."""
PADDING = 16
"""Rows of an active set's Gram matrix have a multiple of as many entries."""


@compiled_within
def subtract_rows(
    h: Matrix, matrix: Matrix, rows: Matrix, steps: Matrix, count: int
) -> None:  # pragma: no cover - compiled lines are not traced
    """``h -= steps[:count] @ matrix[rows[:count]]``, four rows at a time."""
    whole = count - count % 4
    for k in range(0, whole, 4):
        a, b, c, d = matrix[rows[k]], matrix[rows[k + 1]], matrix[rows[k + 2]], matrix[rows[k + 3]]
        s, t, u, v = steps[k], steps[k + 1], steps[k + 2], steps[k + 3]
        for i in range(len(h)):
            h[i] -= s * a[i] + t * b[i] + u * c[i] + v * d[i]
    for k in range(whole, count):
        a, s = matrix[rows[k]], steps[k]
        for i in range(len(h)):
            h[i] -= s * a[i]


@compiled_within
def largest_of(values: Matrix) -> Any:  # pragma: no cover - compiled lines are not traced
    """Largest value, or zero."""
    largest = values.dtype.type(0)
    for j in range(len(values)):
        largest = values[j] if values[j] > largest else largest
    return largest


@compiled_within
def admitted_above(
    excess: Matrix, limit: Any, wanted: int
) -> Any:  # pragma: no cover - compiled lines are not traced
    """Level that about as many values exceed as are wanted, not below the limit; by bisection."""
    zero, one = excess.dtype.type(0), excess.dtype.type(1)
    low, high = limit, largest_of(excess)
    level = low
    for _ in range(20):
        count = zero
        for j in range(len(excess)):
            count += one if excess[j] > level else zero
        if count > wanted:
            low = level
        elif level == limit or 4 * count >= 3 * wanted:
            return level
        else:
            high = level
        level = (low + high) / 2
    return low


@compiled_within
def step_of(
    z: Any, value: Any, t: Any, inverse: Any
) -> Any:  # pragma: no cover - compiled lines are not traced
    """By how much a code changes that moves to its minimum."""
    near = t if z > t else (-t if z < -t else z)
    return (z - near) * inverse - value


@compiled_within
def sweep(
    part: Matrix, c: Matrix, h: Matrix, t: Any, curvatures: Matrix, inverses: Matrix
) -> Any:  # pragma: no cover - compiled lines are not traced
    """Minimise over one code after the other, in place; the largest change of a slope."""
    moved = part.dtype.type(0)
    for k in range(0, len(c), 4):
        row_0, row_1, row_2, row_3 = part[k], part[k + 1], part[k + 2], part[k + 3]
        step_0 = step_of(h[k] + row_0[k] * c[k], c[k], t, inverses[k])
        z = h[k + 1] - step_0 * row_0[k + 1]
        step_1 = step_of(z + row_1[k + 1] * c[k + 1], c[k + 1], t, inverses[k + 1])
        z = h[k + 2] - step_0 * row_0[k + 2] - step_1 * row_1[k + 2]
        step_2 = step_of(z + row_2[k + 2] * c[k + 2], c[k + 2], t, inverses[k + 2])
        z = h[k + 3] - step_0 * row_0[k + 3] - step_1 * row_1[k + 3] - step_2 * row_2[k + 3]
        step_3 = step_of(z + row_3[k + 3] * c[k + 3], c[k + 3], t, inverses[k + 3])
        change = max(
            max(abs(step_0) * curvatures[k], abs(step_1) * curvatures[k + 1]),
            max(abs(step_2) * curvatures[k + 2], abs(step_3) * curvatures[k + 3]),
        )
        if change > 0:
            c[k] += step_0
            c[k + 1] += step_1
            c[k + 2] += step_2
            c[k + 3] += step_3
            moved = max(moved, change)
            for i in range(len(h)):
                h[i] -= (
                    step_0 * row_0[i] + step_1 * row_1[i] + step_2 * row_2[i] + step_3 * row_3[i]
                )
    return moved


@compiled_within
def conjugate_gradients(
    part: Matrix,
    c: Matrix,
    h: Matrix,
    t: Any,
    ridge: Any,
    limit: Any,
    support: Matrix,
    residual: Matrix,
    d: Matrix,
    product: Matrix,
) -> int:  # pragma: no cover - compiled lines are not traced
    """Minimise over the codes that are not zero, as far as none changes its sign, in place."""
    size = 0
    squares = part.dtype.type(0)
    for k in range(len(c)):
        if c[k] != 0:
            support[size] = k
            residual[size] = h[k] - ridge * c[k] - (t if c[k] > 0 else -t)
            d[size] = residual[size]
            squares += residual[size] * residual[size]
            size += 1
    for n in range(1, size + 1):
        product[: len(h)] = 0
        subtract_rows(product[: len(h)], part, support, d, size)
        curvature = part.dtype.type(0)
        for a in range(size):
            curvature -= d[a] * (product[support[a]] - ridge * d[a])
        if curvature <= 0:
            return n
        length = squares / curvature
        first = -1
        for a in range(size):
            value = c[support[a]]
            if value * (value + length * d[a]) < 0:
                length = -value / d[a]
                first = support[a]
        for a in range(size):
            c[support[a]] += length * d[a]
        for i in range(len(h)):
            h[i] += length * product[i]
        if first >= 0:
            # What is left of the code is rounding.
            left = c[first]
            c[first] = 0
            row = part[first]
            for i in range(len(h)):
                h[i] += left * row[i]
            return n
        before, squares = squares, part.dtype.type(0)
        largest = part.dtype.type(0)
        for a in range(size):
            residual[a] += length * (product[support[a]] - ridge * d[a])
            squares += residual[a] * residual[a]
            largest = max(largest, abs(residual[a]))
        if largest <= limit:
            return n
        share = squares / before
        for a in range(size):
            d[a] = residual[a] + share * d[a]
    return size


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
    dtype = gram.dtype
    active = np.empty(N, np.int64)  # atoms of the active set, in the order of their entry
    excess = np.empty(N, dtype)  # by how much other atoms violate the conditions
    part = np.empty((0, 0), dtype)  # Gram matrix of the active atoms
    c = np.empty(N + PADDING, dtype)  # their codes
    h = np.zeros(N + PADDING, dtype)  # their correlations with the residual
    curvatures = np.zeros(N + PADDING, dtype)
    inverses = np.empty(N + PADDING, dtype)
    rows = np.empty(N, np.int64)  # atoms whose codes changed
    steps = np.empty(N, dtype)
    residual = np.empty(N, dtype)
    product = np.empty(N + PADDING, dtype)
    for p in range(n):
        g, own, t, ridge = correlations[p], codes[p], thresholds[p], ridges[p]
        if t == np.inf:
            continue
        for j in range(N):
            excess[j] = abs(g[j])
        limit = tol * largest_of(excess)
        size = 0
        for j in range(N):
            if own[j] != 0:
                active[size] = j
                c[size] = own[j]
                size += 1
        subtract_rows(g, gram, active, c, size)
        known, done = 0, 0
        for _ in range(LARGEST_PASSES):
            for j in range(N):
                excess[j] = abs(g[j]) - t
            worst = dtype.type(0)
            for k in range(size):
                excess[active[k]] = 0
                slope = g[active[k]] - ridge * c[k]
                if c[k] != 0:
                    worst = max(worst, abs(slope - (t if c[k] > 0 else -t)))
                else:
                    worst = max(worst, abs(slope) - t)
            worst = max(worst, largest_of(excess))
            if worst <= limit:
                break
            if done >= max_iter:
                converged[p] = False
                break
            level = admitted_above(excess, limit, max(SMALLEST_BATCH, size))
            for j in range(N):
                if excess[j] > level:
                    active[size] = j
                    c[size] = 0
                    size += 1
            width = size + (-size) % PADDING
            if len(part) < width:
                grown = np.zeros((2 * width, 2 * width), dtype)
                for k in range(known):  # a copy of slices would take long to compile
                    for i in range(known):
                        grown[k, i] = part[k, i]
                part = grown
            for k in range(known, size):
                row = gram[active[k]]
                for i in range(k + 1):
                    part[k, i] = row[active[i]]
                    part[i, k] = part[k, i]
                curvatures[k] = part[k, k] + ridge
                inverses[k] = 1 / curvatures[k] if curvatures[k] > 0 else 0  # an atom of zeros
            known = size
            for k in range(size):
                part[k, size:width] = 0
                h[k] = g[active[k]]
            c[size:width] = 0
            inverses[size:width] = 0
            within = max(dtype.type(0.3) * limit, dtype.type(LOOSE) * worst)
            moved = within + 1
            while moved > within and done < max_iter:
                for _ in range(SWEEPS_AT_ONCE):
                    moved = sweep(part, c[:width], h[:width], t, curvatures, inverses)
                    done += 1
                    if moved <= within or done >= max_iter:
                        break
                else:
                    done += conjugate_gradients(
                        part, c[:size], h[:width], t, ridge, within, rows, residual, steps, product
                    )
            changed = 0
            for k in range(size):
                j = active[k]
                if c[k] != own[j]:
                    rows[changed] = j
                    steps[changed] = c[k] - own[j]
                    own[j] = c[k]
                    changed += 1
            subtract_rows(g, gram, rows, steps, changed)
        else:
            converged[p] = False
        sweeps[p] = done
