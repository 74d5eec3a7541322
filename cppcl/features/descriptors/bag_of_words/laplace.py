"""Harmonic functions on a grid of pixels, with given values at some of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import InputError

TOLERANCE = 1e-6
"""Residual, in the norm of the preconditioner, as a share of the first one."""
_SMOOTHING = 2
"""Steps of Jacobi's method before and after the coarser grid."""
_DAMPING = 0.8
_COARSEST = 4
_COARSEST_STEPS = 30
_ITERATIONS = 200


def harmonic(
    known: NDArray[np.bool_], values: NDArray[np.float64], tolerance: float = TOLERANCE
) -> NDArray[np.float64]:
    r"""Extend values from some pixels to all by the Laplace equation.

    At every pixel p that is not known

    .. math:: \sum_{q \in N(p)} (u_p - u_q) = 0

    with N(p) its up to four neighbours inside the grid: borders are natural (no flow crosses
    them). Solved by conjugate gradients, preconditioned by a V-cycle of multigrid over squares
    of 2 x 2 unknowns; about a dozen steps, whatever the number and place of known pixels.

    Parameters
    ----------
    known : (h, w) bool array
        Where values are given; at least one pixel.
    values : (..., h, w) float64 array
        Fields to extend; what they hold elsewhere is not read.
    tolerance : float
        Relative size of the residual at which to stop.

    Returns
    -------
    (..., h, w) float64 array
        The given values where they are known.

    Raises
    ------
    InputError
        No pixel is known.
    """
    if not known.any():
        raise InputError(
            f"no pixel of {known.shape} has a known value; a harmonic function needs at least one"
        )
    levels = _grids(known)
    fields = values.reshape(-1, *known.shape)
    solved = np.stack([_extend(known, field, levels, tolerance) for field in fields])
    return solved.reshape(values.shape)


@dataclass(frozen=True)
class _Grid:
    """Equations of one level, and room for work on it."""

    diagonal: NDArray[np.float64]
    right: NDArray[np.float64]
    down: NDArray[np.float64]
    inverse: NDArray[np.float64]
    x: NDArray[np.float64]
    residual: NDArray[np.float64]
    coarse: NDArray[np.float64]


def _grid(diagonal: NDArray[np.float64], *links: NDArray[np.float64]) -> _Grid:
    right, down = links
    inverse = np.divide(_DAMPING, diagonal, out=np.zeros_like(diagonal), where=diagonal > 1e-9)
    shape = diagonal.shape
    coarse = np.empty(tuple((side - 1) // 2 + 2 for side in shape))
    return _Grid(diagonal, right, down, inverse, np.zeros(shape), np.zeros(shape), coarse)


def _grids(known: NDArray[np.bool_]) -> list[_Grid]:
    """Equations from the finest grid to the coarsest."""
    from cppcl.features.descriptors.bag_of_words.laplace_kernels import coarsen

    free = np.pad(~known, 1)
    neighbours = np.full(known.shape, 4.0)
    neighbours[0] -= 1
    neighbours[-1] -= 1
    neighbours[:, 0] -= 1
    neighbours[:, -1] -= 1
    diagonal, right, down = np.zeros((3, *free.shape))
    diagonal[1:-1, 1:-1] = neighbours * ~known
    right[:, :-1] = free[:, :-1] & free[:, 1:]
    down[:-1] = free[:-1] & free[1:]
    levels = [_grid(diagonal, right, down)]
    while max(levels[-1].diagonal.shape) > _COARSEST + 2:
        grid = levels[-1]
        coarse = np.empty((3, *grid.coarse.shape))
        coarsen(grid.diagonal, grid.right, grid.down, coarse)
        levels.append(_grid(*coarse))
    return levels


def _extend(
    known: NDArray[np.bool_],
    values: NDArray[np.float64],
    levels: list[_Grid],
    tolerance: float,
) -> NDArray[np.float64]:
    from cppcl.features.descriptors.bag_of_words.laplace_kernels import inner, product, step, turn

    given = np.pad(np.where(known, values, 0.0), 1)
    around = given[:-2, 1:-1] + given[2:, 1:-1] + given[1:-1, :-2] + given[1:-1, 2:]
    grid = levels[0]
    residual = np.pad(np.where(known, 0.0, around), 1)
    solution, direction, change = np.zeros((3, *residual.shape))
    before = first = 0.0
    for iteration in range(_ITERATIONS):
        steepest = _cycle(levels, 0, residual)
        size = inner(steepest, residual)
        first = first or size
        if size <= tolerance**2 * first:
            break
        turn(steepest, size / before if iteration else 0.0, direction)
        curvature = product(grid.diagonal, grid.right, grid.down, direction, change)
        step(size / curvature, direction, change, solution, residual)
        before = size
    return np.where(known, values, solution[1:-1, 1:-1])


def _cycle(levels: list[_Grid], level: int, b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Approximate solution of A x = b by one V-cycle, symmetric in b."""
    from cppcl.features.descriptors.bag_of_words.laplace_kernels import prolong, restrict, smooth

    grid = levels[level]
    A, x = (grid.diagonal, grid.right, grid.down), grid.x
    np.multiply(grid.inverse, b, out=x)
    if level == len(levels) - 1:
        for _ in range(_COARSEST_STEPS):
            smooth(*A, grid.inverse, b, x, grid.residual)
        return x
    for _ in range(_SMOOTHING - 1):
        smooth(*A, grid.inverse, b, x, grid.residual)
    restrict(*A, b, x, grid.residual, grid.coarse)
    prolong(grid.diagonal, _cycle(levels, level + 1, grid.coarse), x)
    for _ in range(_SMOOTHING):
        smooth(*A, grid.inverse, b, x, grid.residual)
    return x
