"""Changes of pictures that leave what they show the same: a network sees each one differently."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

SHIFT = 0.05
"""Largest shift, as a share of the side. Publications have 32 of 256 pixels; here pictures are
cropped to their lines already."""
SCALES = (0.9, 1.1)
"""Of the lines of a sketch, or the edges of a photograph."""
CROP = (1.0, 1.3)
"""Of a photograph in colours, which is only enlarged, so that no margin shows."""
DROPPED = 0.1
"""Share of the strokes that a sketch is seen without."""
MOST_STROKES = 256
"""Strokes of a sketch that are told apart, with the ground, which is number 0."""


def strokes_of(lines: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Number of the stroke at each pixel of a drawing, (h, w); 0 is the ground.

    A stroke is a part of the middle lines between two places where lines meet, and the pixels
    nearest to it.
    """
    from scipy import ndimage
    from skimage.morphology import skeletonize

    mask = lines > MOST_STROKES // 4
    middle = skeletonize(mask)  # type: ignore[no-untyped-call]
    neighbours = ndimage.convolve(middle.astype(np.uint8), np.ones((3, 3), np.uint8)) - 1
    meeting = ndimage.binary_dilation(middle & (neighbours > 2), np.ones((3, 3)))
    numbers, n = ndimage.label(middle & ~meeting, np.ones((3, 3)))
    if not n:
        return mask.astype(np.uint8)
    rows, columns = ndimage.distance_transform_edt(
        numbers == 0, return_distances=False, return_indices=True
    )
    nearest = 1 + (numbers[rows, columns] - 1) % (MOST_STROKES - 1)
    found: NDArray[np.uint8] = np.where(lines > 0, nearest, 0).astype(np.uint8)
    return found


def without_strokes(
    drawings: NDArray[np.uint8], strokes: NDArray[np.uint8], rng: np.random.Generator
) -> NDArray[np.uint8]:
    """Leave out some strokes of each drawing.

    Parameters
    ----------
    drawings : (n, 1, h, w) uint8 array
        Lines, 0 on the ground.
    strokes : (n, h, w) uint8 array
        What `strokes_of` found in each.
    rng : numpy.random.Generator
        Decides which.
    """
    kept = rng.random((len(drawings), MOST_STROKES)) >= DROPPED
    kept[:, 0] = True
    shown = np.take_along_axis(kept, strokes.reshape(len(strokes), -1), axis=1)
    return drawings * shown.reshape(drawings.shape)


def other_width(lines: Tensor, rng: np.random.Generator) -> Tensor:
    """Make the lines of each picture wider or thinner, by up to a pixel at either side.

    Parameters
    ----------
    lines : Tensor, (n, c, h, w)
        Not negative.
    """
    share = torch.from_numpy(rng.uniform(-0.5, 1.0, len(lines)).astype(np.float32))
    share = share.to(lines.device, lines.dtype)[:, None, None, None]
    wider = functional.max_pool2d(lines, 3, stride=1, padding=1)
    thinner = -functional.max_pool2d(-lines, 3, stride=1, padding=1)
    return lines + share.clamp(min=0) * (wider - lines) - share.clamp(max=0) * (thinner - lines)


def moved(
    pictures: Tensor, rng: np.random.Generator, scales: tuple[float, float] = SCALES
) -> Tensor:
    """Mirror every other picture, and shift and scale each; what comes in from beyond is 0.

    Parameters
    ----------
    pictures : Tensor, (n, c, h, w)
        Any values.
    scales : (float, float)
        Least and largest scale.
    """
    n = len(pictures)
    mirror = rng.choice([-1.0, 1.0], n)
    scale = rng.uniform(*scales, n)
    shift = 2 * rng.uniform(-SHIFT, SHIFT, (n, 2))
    theta = np.zeros((n, 2, 3), dtype=np.float32)
    theta[:, 0, 0], theta[:, 1, 1], theta[:, :, 2] = mirror / scale, 1 / scale, shift
    grid = functional.affine_grid(
        torch.from_numpy(theta).to(pictures.device, pictures.dtype),
        list(pictures.shape),
        align_corners=False,
    )
    return functional.grid_sample(pictures, grid, align_corners=False)
