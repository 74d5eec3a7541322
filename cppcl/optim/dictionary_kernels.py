"""Compiled loops of the dictionary step; importing this imports numba."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.optim.compiled import compiled
from cppcl.optim.coordinate_kernels import subtract_rows

Matrix = NDArray[Any]


@compiled
def move_atoms(
    Y: Matrix, gradient: Matrix, D: Matrix, curvature: float, out: Matrix
) -> tuple[float, float, float]:  # pragma: no cover - compiled lines are not traced
    """Step from Y and project, into `out`; see `cppcl.optim.dictionary`.

    Returns ``(Y - out) . (out - D)``, ``|out - D|^2`` and ``|out|^2``, in float64.
    """
    ahead, change, size = 0.0, 0.0, 0.0
    step = D.dtype.type(1 / curvature)
    one = D.dtype.type(1)
    for k in range(len(D)):
        norm = D.dtype.type(0)
        for i in range(D.shape[1]):
            value = Y[k, i] - gradient[k, i] * step
            out[k, i] = value
            norm += value * value
        scale = one / max(one, norm**0.5)
        row_ahead, row_change = D.dtype.type(0), D.dtype.type(0)
        for i in range(D.shape[1]):
            value = out[k, i] * scale
            out[k, i] = value
            moved = value - D[k, i]
            row_ahead += (Y[k, i] - value) * moved
            row_change += moved * moved
        ahead += row_ahead
        change += row_change
        size += norm * scale * scale
    return ahead, change, size


@compiled
def extrapolate(
    D_new: Matrix, D: Matrix, momentum: float, Y: Matrix
) -> None:  # pragma: no cover - compiled lines are not traced
    """Set ``Y = D_new + momentum (D_new - D)``."""
    factor = D.dtype.type(momentum)
    for k in range(len(D)):
        for i in range(D.shape[1]):
            Y[k, i] = D_new[k, i] + factor * (D_new[k, i] - D[k, i])


@compiled
def minimise_atoms(
    A: Matrix, residual: Matrix, D: Matrix, smallest: float
) -> float:  # pragma: no cover - compiled lines are not traced
    """Move a block of atoms, one after the other, to their minimisers, in place.

    Parameters
    ----------
    A : (k, k) array
        Moments of the block's codes.
    residual : (k, m) array
        ``B - A D`` of the block, by all atoms; overwritten.
    D : (k, m) array
        Its atoms.
    smallest : float
        Atoms with no more than this moment stay.

    Returns
    -------
    float
        Squared change of the atoms.
    """
    rows = np.arange(len(D))
    moves = np.zeros_like(D)
    one = D.dtype.type(1)
    change = 0.0
    for k in range(len(D)):
        if A[k, k] <= smallest:
            continue
        target, atom, move = residual[k], D[k], moves[k]
        subtract_rows(target, moves, rows, A[k], k)
        norm = D.dtype.type(0)
        for i in range(len(target)):
            target[i] = atom[i] + target[i] / A[k, k]
            norm += target[i] * target[i]
        scale = one / max(one, norm**0.5)
        moved = D.dtype.type(0)
        for i in range(len(target)):
            value = target[i] * scale
            move[i] = value - atom[i]
            atom[i] = value
            moved += move[i] * move[i]
        change += moved
    return change
