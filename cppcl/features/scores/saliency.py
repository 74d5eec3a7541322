"""Saliency of a picture at several scales, by the residual of its spectra."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from cppcl.features.base import Picture
from cppcl.features.scores.windows import to_pixels

SCALES = (16, 24, 32, 48, 64)
"""Sides of the maps, pixels."""
SALIENT = 0.1
"""Share of a map's largest value from which on a pixel is salient."""
AVERAGED = 3
"""Radius of the disk over which a map is averaged, pixels."""
FADED = 0.5
"""Share of a map's side, both borders together, over which it fades into its mean."""
FLAT = 1.0
"""Grey levels; a channel that varies less has no saliency."""


def saliency_map(picture: Picture, side: int) -> NDArray[np.float64]:
    """Spectral residual of each channel of a picture, resized to a square.

    The logarithm of the amplitude spectrum, less its mean over 3 x 3 frequencies, is
    transformed back with the phases; its squared magnitude is averaged over a disk and brought
    to [0, 1]. Hou and Zhang, "Saliency Detection: A Spectral Residual Approach", CVPR 2007; of
    each channel at several scales: Alexe, Deselaers and Ferrari, PAMI 2012.

    Towards its borders a channel fades into its mean first, which is ours: Fourier's transform
    continues a picture by itself, and the jumps between opposite borders were the most salient
    places of photographs, in the corners above all.

    Parameters
    ----------
    picture : (H, W, 3) uint8 array
        Any picture.
    side : int
        Side of the maps, pixels.

    Returns
    -------
    (3, side, side) float64 array
        In [0, 1]; zeros of a channel that hardly varies.
    """
    from PIL import Image
    from scipy import ndimage
    from scipy.signal.windows import tukey

    image = Image.fromarray(np.ascontiguousarray(picture))
    small = np.asarray(image.resize((side, side), Image.Resampling.BILINEAR), dtype=np.float64)
    channels = np.moveaxis(small, -1, 0)
    flat = np.ptp(channels, axis=(1, 2)) < FLAT
    mean = channels.mean(axis=(1, 2), keepdims=True)
    fading = tukey(side + 2, FADED)[1:-1]
    faded = mean + (channels - mean) * np.multiply.outer(fading, fading)
    spectrum = np.fft.fft2(faded / 255)
    amplitude = np.abs(spectrum)
    log = np.log(np.maximum(amplitude, 1e-9))
    residual = log - ndimage.uniform_filter(log, (0, 3, 3), mode="wrap")
    # exp(residual) with the phase of the spectrum
    factor = np.exp(residual - log)
    saliency = np.abs(np.fft.ifft2(spectrum * factor)) ** 2
    saliency = ndimage.convolve(saliency, _disk(AVERAGED)[None], mode="reflect")
    saliency -= saliency.min(axis=(1, 2), keepdims=True)
    largest = saliency.max(axis=(1, 2), keepdims=True)
    scaled: NDArray[np.float64] = saliency / np.where(largest > 0, largest, 1)
    scaled[flat] = 0
    return scaled


def saliency_maps(picture: Picture) -> list[NDArray[np.float64]]:
    """Maps of every scale, each (3, side, side), finest last."""
    return [saliency_map(picture, side) for side in SCALES]


def window_saliencies(
    maps: Sequence[NDArray[np.float64]], windows: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Multi-scale saliency of every window in the map of every scale and channel.

    The salient values inside a window as a share of those of the whole map, times the share of
    the window's pixels that are salient. Within a map this orders windows as the multi-scale
    saliency of Alexe, Deselaers and Ferrari (PAMI 2012) does; as shares, windows of different
    maps and pictures can be compared.

    Parameters
    ----------
    maps : sequence of (3, side, side) arrays
        As from `saliency_maps`.
    windows : (n, 4) float64 array
        In the unit square, as `cppcl.features.scores.windows.random_windows` draws them.

    Returns
    -------
    (3 * len(maps), n) float64 array
        In [0, 1]; zeros of a map without saliency.
    """
    from cppcl.features.scores.window_kernels import salient_mass

    rows = []
    for of_scale in maps:
        side = of_scale.shape[-1]
        on_grid = to_pixels(windows, side, side)
        for channel in of_scale:
            total = float(channel[channel >= SALIENT].sum())
            rows.append(salient_mass(channel, SALIENT, on_grid) / (total or 1.0))
    return np.stack(rows)


@lru_cache
def _disk(radius: int) -> NDArray[np.float64]:
    y, x = np.mgrid[-radius : radius + 1, -radius : radius + 1]
    inside = (x**2 + y**2 <= radius**2).astype(np.float64)
    weights: NDArray[np.float64] = inside / inside.sum()
    return weights
