"""Compiled loops over grids of linear equations with five terms; importing this imports numba.

Arrays are (h + 2, w + 2) float64: the unknowns of a grid, and a rim of zeros. The equation of an
unknown is ``diagonal x - right x_right - left x_left - down x_down - up x_up``, where `left` and
`up` are the `right` and `down` of those neighbours; all are 0 where nothing is unknown.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from cppcl.optim.compiled import compiled, compiled_within

Array = NDArray[Any]


@compiled_within
def product(
    diagonal: Array, right: Array, down: Array, x: Array, out: Array
) -> float:  # pragma: no cover - compiled lines are not traced
    """Left sides A x of the equations, into `out`; returns x A x."""
    total = 0.0
    for i in range(1, x.shape[0] - 1):
        # Slices, as their lengths let the loop be vectorised.
        middle, above, below = x[i, 1:-1], x[i - 1, 1:-1], x[i + 1, 1:-1]
        before, after = x[i, :-2], x[i, 2:]
        own, to_before, to_after = diagonal[i, 1:-1], right[i, :-2], right[i, 1:-1]
        to_above, to_below, result = down[i - 1, 1:-1], down[i, 1:-1], out[i, 1:-1]
        for j in range(len(middle)):
            value = own[j] * middle[j]
            value -= to_after[j] * after[j] + to_before[j] * before[j]
            value -= to_below[j] * below[j] + to_above[j] * above[j]
            result[j] = value
            total += value * middle[j]
    return total


@compiled
def smooth(
    diagonal: Array,
    right: Array,
    down: Array,
    inverse: Array,
    b: Array,
    x: Array,
    residual: Array,
) -> None:  # pragma: no cover - compiled lines are not traced
    """One step of Jacobi's method on A x = b, `inverse` times the residual."""
    product(diagonal, right, down, x, residual)
    for i in range(1, x.shape[0] - 1):
        row, scale, wanted, reached = x[i], inverse[i], b[i], residual[i]
        for j in range(len(row)):
            row[j] += scale[j] * (wanted[j] - reached[j])


@compiled
def restrict(
    diagonal: Array, right: Array, down: Array, b: Array, x: Array, residual: Array, coarse: Array
) -> None:  # pragma: no cover - compiled lines are not traced
    """Sum b - A x over squares of 2 x 2 unknowns, into `coarse`."""
    product(diagonal, right, down, x, residual)
    coarse[:] = 0
    for i in range(1, x.shape[0] - 1):
        for j in range(1, x.shape[1] - 1):
            coarse[(i + 1) // 2, (j + 1) // 2] += b[i, j] - residual[i, j]


@compiled
def prolong(
    diagonal: Array, coarse: Array, x: Array
) -> None:  # pragma: no cover - compiled lines are not traced
    """Add the value of its square to each unknown."""
    for i in range(1, x.shape[0] - 1):
        for j in range(1, x.shape[1] - 1):
            if diagonal[i, j] > 0:
                x[i, j] += coarse[(i + 1) // 2, (j + 1) // 2]


@compiled
def coarsen(
    diagonal: Array, right: Array, down: Array, coarse: Array
) -> None:  # pragma: no cover - compiled lines are not traced
    """Half the sums of the equations of squares of 2 x 2 unknowns, into (3, ., .) `coarse`.

    `coarse` holds the diagonal, right and down of a grid with one unknown a square. Halving makes
    up for unknowns that are equal within squares: it gives the five-point Laplacian of the
    coarse grid exactly.
    """
    coarse[:] = 0
    for i in range(1, diagonal.shape[0] - 1):
        k = (i + 1) // 2
        for j in range(1, diagonal.shape[1] - 1):
            m = (j + 1) // 2
            coarse[0, k, m] += diagonal[i, j] / 2
            if j % 2:
                coarse[0, k, m] -= right[i, j]
            else:
                coarse[1, k, m] += right[i, j] / 2
            if i % 2:
                coarse[0, k, m] -= down[i, j]
            else:
                coarse[2, k, m] += down[i, j] / 2


@compiled
def inner(x: Array, y: Array) -> float:  # pragma: no cover - compiled lines are not traced
    """Sum of products."""
    total = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            total += x[i, j] * y[i, j]
    return total


@compiled
def step(
    length: float, direction: Array, change: Array, x: Array, residual: Array
) -> None:  # pragma: no cover - compiled lines are not traced
    """Move x along a direction, and the residual along A times it."""
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            x[i, j] += length * direction[i, j]
            residual[i, j] -= length * change[i, j]


@compiled
def turn(
    steepest: Array, momentum: float, direction: Array
) -> None:  # pragma: no cover - compiled lines are not traced
    """Next direction of conjugate gradients."""
    for i in range(direction.shape[0]):
        for j in range(direction.shape[1]):
            direction[i, j] = steepest[i, j] + momentum * direction[i, j]
