"""Windows for scores that average over places in a picture, and sums inside them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def random_windows(
    n_windows: int,
    seed: int,
    scale: tuple[float, float] = (0.1, 0.8),
    aspect: tuple[float, float] = (0.5, 2.0),
) -> NDArray[np.float64]:
    """Draw windows in the unit square.

    Parameters
    ----------
    n_windows : int
        How many.
    seed : int
        The same windows come from the same seed.
    scale : (smallest, largest)
        Square root of a window's area, drawn log-uniformly.
    aspect : (smallest, largest)
        Width over height, drawn log-uniformly; sides are clipped to 1.

    Returns
    -------
    (n_windows, 4) float64 array
        Left, top, right and bottom, uniformly placed.
    """
    rng = np.random.default_rng(seed)
    side = _log_uniform(rng, scale, n_windows)
    root_aspect = np.sqrt(_log_uniform(rng, aspect, n_windows))
    sides = np.minimum(np.stack([side * root_aspect, side / root_aspect], axis=1), 1.0)
    corner = rng.random((n_windows, 2)) * (1.0 - sides)
    return np.hstack([corner, corner + sides])


def _log_uniform(
    rng: np.random.Generator, limits: tuple[float, float], n: int
) -> NDArray[np.float64]:
    low, high = np.log(limits)
    return np.exp(rng.uniform(low, high, n))


def to_pixels(windows: NDArray[np.float64], width: int, height: int) -> NDArray[np.int64]:
    """Round windows of the unit square to the pixels of a picture.

    Returns
    -------
    (n_windows, 4) int64 array
        Left, top, right and bottom, right and bottom excluded, at least one pixel each way.
    """
    size = np.array([width, height])
    first = np.minimum(np.rint(windows[:, :2] * size).astype(np.int64), size - 1)
    last = np.clip(np.rint(windows[:, 2:] * size).astype(np.int64), first + 1, size)
    return np.hstack([first, last])


def integral(planes: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Sum over all pixels above and to the left: (..., H, W) to (..., H + 1, W + 1)."""
    height, width = planes.shape[-2:]
    sums = np.zeros((*planes.shape[:-2], height + 1, width + 1), dtype=np.int32)
    np.cumsum(planes, axis=-2, dtype=np.int32, out=sums[..., 1:, 1:])
    np.cumsum(sums[..., 1:, 1:], axis=-1, out=sums[..., 1:, 1:])
    return sums


def window_sums(sums: NDArray[np.int32], windows: NDArray[np.int64]) -> NDArray[np.int32]:
    """Count the marked pixels inside each window.

    Parameters
    ----------
    sums : (..., H + 1, W + 1) int32 array
        From `integral`.
    windows : (n_windows, 4) int64 array
        As returned by `to_pixels`.

    Returns
    -------
    (..., n_windows) int32 array
    """
    left, top, right, bottom = windows.T
    inside: NDArray[np.int32] = (
        sums[..., bottom, right]
        - sums[..., top, right]
        - sums[..., bottom, left]
        + sums[..., top, left]
    )
    return inside


def areas(windows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Count the pixels of each window."""
    extent: NDArray[np.int64] = windows[:, 2:] - windows[:, :2]
    return extent[:, 0] * extent[:, 1]
