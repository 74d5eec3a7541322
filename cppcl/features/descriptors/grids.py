"""Grids of cells over a picture, as matrices that sum pixels into cells."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Weights = NDArray[np.float32]


@lru_cache
def cell_of(size: int, n_cells: int) -> Weights:
    """Which cell each of `size` pixels lies in, (n_cells, size) of 0 and 1."""
    cells = np.arange(size) * n_cells // size
    return _read_only(cells == np.arange(n_cells)[:, None])


@lru_cache
def nearest_cells(size: int, n_cells: int) -> tuple[Weights, Weights]:
    """Bilinear shares of each pixel's two nearest cells, and which cells these are.

    At u = index / size * n_cells the cells l = floor(u - 0.5) and l + 1 share a pixel by
    1 - (u - 0.5 - l) and u - 0.5 - l; the share of a cell outside the grid is lost.

    Returns
    -------
    shares, touched : (n_cells, size) float32 arrays
        Shares in [0, 1], and 1 for each of the two cells.
    """
    u = np.arange(size) / size * n_cells - 0.5
    left = np.floor(u)
    cells = np.arange(n_cells)[:, None]
    right_share = u - left
    shares = (cells == left) * (1 - right_share) + (cells == left + 1) * right_share
    return _read_only(shares), _read_only((cells == left) | (cells == left + 1))


def nearest_bins(
    angles: NDArray[np.floating], n_bins: int
) -> tuple[NDArray[np.int64], NDArray[np.floating]]:
    """Two nearest bins of angles in [0, pi), which close a circle, and the second one's share.

    Returns
    -------
    first : int64 array
        The next bin, modulo `n_bins`, is the second one.
    share : array
        Of the second bin; the first one has the rest.
    """
    u = angles / np.pi * n_bins - 0.5
    first = np.floor(u)
    return first.astype(np.int64) % n_bins, u - first


def _read_only(weights: NDArray[np.generic]) -> Weights:
    array = weights.astype(np.float32)
    array.flags.writeable = False
    return array
