"""DAISY descriptors of chosen pixels of a contour mask."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

RADIUS = 15
"""Distance of the outer ring from the centre, pixels."""
N_RINGS = 2
N_DIRECTIONS = 8
"""Directions of gradients in a histogram, and grid points on a ring."""
DIMENSION = (1 + N_RINGS * N_DIRECTIONS) * N_DIRECTIONS
PATCH = 2 * RADIUS + 1
"""Side of the square that the grid of a pixel spans."""

CONTOUR_VALUE = 1 / 255
"""What a marked pixel weighs; against `EPS`, it makes cells far from contours fade out."""
EPS = 1e-5
_FIRST_SIGMA, _LAYER_SIGMA = 0.5, 1.6
_RING_SIGMAS = tuple((ring + 1) * 0.5 * RADIUS / N_RINGS for ring in range(N_RINGS))
# Beyond this distance from every contour, and as far again from where borders mirror, all is 0.
_MARGIN = 32


def daisy(
    mask: NDArray[np.bool_], rows: NDArray[np.integer], columns: NDArray[np.integer]
) -> NDArray[np.float32]:
    r"""Descriptors of n pixels, (n, 136) float32.

    The mask, 1/255 where it is marked, is smoothed by a Gaussian of sigma 0.5 (5 taps), and its
    gradient (dx, dy) is found by central differences. Eight layers

    .. math:: L_h = \max(0, \cos(2\pi h/8)\,dx + \sin(2\pi h/8)\,dy)

    are smoothed to sigma 1.6, and from there by 3.75 pixels for the centre and the inner ring,
    and further to 7.5 pixels for the outer ring. The grid has 17 points: the pixel itself and
    eight on each of two rings of radius 7.5 and 15 pixels, from the right on clockwise. Each
    point's eight values, read bilinearly, are divided by their Euclidean norm plus 1e-5, so that
    cells far from any contour stay short. Borders are mirrored without repeating the edge, and
    points outside the mask give zeros.

    Tola, Lepetit and Fua, "DAISY: an efficient dense descriptor applied to wide-baseline stereo",
    PAMI 2010, with the parameters of Saavedra and Barrios, "Sketch based Image Retrieval using
    Learned KeyShapes", BMVC 2015. Our own implementation, from the equations.

    Parameters
    ----------
    mask : (h, w) bool array
        Contours.
    rows, columns : (n,) integer arrays
        The pixels, which lie inside the mask.
    """
    from cppcl.features.descriptors.daisy_kernels import sample

    descriptors = np.zeros((len(rows), DIMENSION), dtype=np.float32)
    marked_rows, marked_columns = (
        np.flatnonzero(mask.any(axis=1)),
        np.flatnonzero(mask.any(axis=0)),
    )
    if not len(rows) or not len(marked_rows):
        return descriptors
    top, bottom = marked_rows[0] - _MARGIN, marked_rows[-1] + _MARGIN + 1
    left, right = marked_columns[0] - _MARGIN, marked_columns[-1] + _MARGIN + 1
    top, left = max(top, 0), max(left, 0)
    steps, weights, layers = _grid()
    sample(
        _cubes(mask[top:bottom, left:right]),
        np.asarray(rows, dtype=np.int64) - top,
        np.asarray(columns, dtype=np.int64) - left,
        steps,
        weights,
        layers,
        np.float32(EPS),
        descriptors,
    )
    return descriptors


def _cubes(mask: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Smoothed layers of both rings, (2, h, w, 8) float32."""
    from cppcl.features.descriptors.daisy_kernels import orientation_layers

    height, width = mask.shape
    gray = np.where(mask, np.float32(CONTOUR_VALUE), np.float32(0))
    _smooth(gray, 1, gaussian_taps(_FIRST_SIGMA, 5), np.empty_like(gray), out=gray)
    angles = 2 * np.pi * np.arange(N_DIRECTIONS) / N_DIRECTIONS
    directions = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    layers = np.empty((height, width, N_DIRECTIONS), dtype=np.float32)
    orientation_layers(gray, directions, layers)

    cubes = np.empty((N_RINGS, height, width, N_DIRECTIONS), dtype=np.float32)
    source = layers.reshape(height, -1)
    across = np.empty_like(source)
    sigma = np.sqrt(_LAYER_SIGMA**2 - _FIRST_SIGMA**2)
    _smooth(source, N_DIRECTIONS, gaussian_taps(sigma), across, out=source)
    before = 0.0
    for ring, sigma in enumerate(_RING_SIGMAS):
        target = cubes[ring].reshape(height, -1)
        _smooth(
            source, N_DIRECTIONS, gaussian_taps(np.sqrt(sigma**2 - before**2)), across, out=target
        )
        source, before = target, sigma
    return cubes


def _smooth(
    planes: NDArray[np.float32],
    depth: int,
    taps: NDArray[np.float32],
    across: NDArray[np.float32],
    out: NDArray[np.float32],
) -> None:
    """Correlate planes, (h, w * depth), with taps both ways; `across` is room for half of it."""
    from cppcl.features.descriptors.daisy_kernels import smooth_columns, smooth_rows

    half = taps[len(taps) // 2 :]
    padded = np.empty(planes.shape[1] + 2 * depth * len(half), dtype=np.float32)
    smooth_rows(planes, half, depth, padded, across)
    smooth_columns(across, half, out)


def gaussian_taps(sigma: float, length: int | None = None) -> NDArray[np.float32]:
    """Gaussian filter that sums to 1; its length is floor(5 sigma), made odd, at least 3."""
    if length is None:
        length = max(int(5 * sigma) | 1, 3)
    offsets = np.arange(length) - length // 2
    taps = np.exp(-0.5 * (offsets / sigma) ** 2)
    normalised: NDArray[np.float32] = (taps / taps.sum()).astype(np.float32)
    return normalised


@lru_cache
def _grid() -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int64]]:
    """Whole steps, bilinear weights and cube of each grid point, from the pixel."""
    angles = 2 * np.pi * np.arange(N_DIRECTIONS) / N_DIRECTIONS
    circle = np.stack([np.sin(angles), np.cos(angles)], axis=1)
    radii = [(ring + 1) * RADIUS / N_RINGS for ring in range(N_RINGS)]
    points = np.round(np.concatenate([np.zeros((1, 2)), *(r * circle for r in radii)]), 9)
    steps = np.floor(points).astype(np.int64)
    down, right = (points - steps).T
    weights = np.stack(
        [(1 - down) * (1 - right), (1 - down) * right, down * (1 - right), down * right], axis=1
    )
    layers = np.repeat(np.arange(N_RINGS), N_DIRECTIONS)
    return steps, weights.astype(np.float32), np.concatenate([[0], layers])
