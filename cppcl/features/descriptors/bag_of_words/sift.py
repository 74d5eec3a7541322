"""SIFT at contour pixels, as words."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from cppcl.features.base import Picture
from cppcl.features.descriptors.bag_of_words.visual_words import Local, VisualWords
from cppcl.features.layers import Layer, Seen

N_CELLS = 4
"""Cells along each side of a patch."""
N_BINS = 8
"""Directions of gradients in a cell."""
CELL_SIDES = (4, 8, 12)
"""Sides of a cell, pixels: patches of 16, 32 and 48."""
SIDE_PER_SIGMA = 3
"""Side of a cell over the deviation of the Gaussian by which contours are smoothed."""
SMOOTHED = 0.5
"""Deviation of the Gaussian that contours are taken to be smoothed by already, pixels."""
CLIP = 0.2
SMALLEST_NORM = 1e-6
N_SHOWN = 12
"""Patches that are shown to a person."""


@dataclass(frozen=True, kw_only=True)
class Sift(VisualWords):
    r"""Words of SIFT, upright, in patches of 16, 32 and 48 pixels around contour pixels.

    Contours are brought to a longest side of 200 pixels, 1 on 0, and nothing is marked beyond
    the borders. For patches of 4 x 4 cells of side s they are smoothed to a Gaussian of s / 3;
    central differences give magnitude and direction, anticlockwise from the right. A pixel at
    (x, y) from the centre adds its magnitude, weighted by :math:`\exp(-(x^2 + y^2) / 8 s^2)`, to
    the nearest two of 8 directions and two cells each way, trilinearly. The 128 values are
    divided by their Euclidean norm, clipped at 0.2, and divided by their norm again. Dimension:
    `n_words`, times 21 with the pyramid.

    Lowe, "Distinctive image features from scale-invariant keypoints", IJCV 2004, on contours as
    in Hu and Collomosse, "A performance evaluation of gradient field HOG descriptor for sketch
    based image retrieval", CVIU 2013. Ours are the three sizes, and that sketches are cropped to
    their strokes first.
    """

    name: ClassVar[str] = "sift"
    version: ClassVar[int] = 1
    device: ClassVar[Literal["cpu", "gpu"]] = "cpu"
    length: ClassVar[int] = N_CELLS * N_CELLS * N_BINS

    def local_descriptors(self, picture: Picture) -> Local:
        """Descriptors of contour pixels, small patches first, (n, 128) float32, and the pixels."""
        mask = self.contours_of(picture)
        pixels = np.argwhere(mask)
        found, places = [], []
        for side in CELL_SIDES:
            margin = N_CELLS * side
            image = smoothed(np.pad(mask, margin).astype(np.float32), side / SIDE_PER_SIGMA)
            descriptors = sift(image, pixels + margin, side)
            seen = descriptors.any(axis=1)
            found.append(descriptors[seen])
            places.append((pixels[seen] + 0.5) / mask.shape)
        return np.concatenate(found), np.concatenate(places)

    def explain_local(self, mask: NDArray[np.bool_]) -> list[Layer]:
        """Show patches of the three sizes around some contour pixels."""
        pixels = np.argwhere(mask)
        shown = pixels[:: max(1, len(pixels) // N_SHOWN)]
        sides = N_CELLS * np.resize(CELL_SIDES, len(shown))[:, None]
        first = shown[:, ::-1] + 0.5 - sides / 2
        return [Seen("some of the patches", mask, boxes=np.hstack([first, first + sides]))]


def smoothed(image: NDArray[np.float32], sigma: float) -> NDArray[np.float32]:
    """Bring an image to a Gaussian of this deviation, pixels, from the one it has already."""
    from scipy import ndimage

    more = float(np.sqrt(sigma**2 - SMOOTHED**2))
    result: NDArray[np.float32] = ndimage.gaussian_filter(image, more, mode="nearest")
    return result


def sift(
    image: NDArray[np.float32], pixels: NDArray[np.integer], side: int
) -> NDArray[np.float32]:
    """SIFT of upright patches of a smoothed image.

    Parameters
    ----------
    image : (h, w) float32 array
        Gradients of its outermost pixels, and beyond, are zero.
    pixels : (n, 2) integer array
        Rows and columns of centres.
    side : int
        Side of a cell, pixels.

    Returns
    -------
    (n, 128) float32 array
        Cells row by row, the directions of a cell together; zeros where there is no gradient.

    Notes
    -----
    Weights of a pixel are products of one along the row and one along the column, so sums are
    taken first along the rows of the whole image, then along the columns of the chosen pixels.
    """
    from cppcl.features.descriptors.bag_of_words.local_kernels import gather_across, gather_down

    height, width = image.shape
    layers = direction_layers(image).reshape(height, width * N_BINS)
    firsts, taps = cell_taps(side)
    across = np.zeros((N_CELLS, *layers.shape), dtype=np.float32)
    gather_across(layers, firsts, taps, N_BINS, across)
    descriptors = np.zeros((len(pixels), N_CELLS * N_CELLS * N_BINS), dtype=np.float32)
    gather_down(across, pixels[:, 0], pixels[:, 1], firsts, taps, N_BINS, descriptors)
    return _unit(np.minimum(_unit(descriptors), np.float32(CLIP)))


def direction_layers(image: NDArray[np.float32]) -> NDArray[np.float32]:
    """Gradient magnitude, shared by the two nearest of 8 directions, (h, w, 8) float32."""
    dx, dy = np.zeros((2, *image.shape), dtype=np.float32)
    dx[1:-1, 1:-1] = image[1:-1, 2:] - image[1:-1, :-2]
    dy[1:-1, 1:-1] = image[:-2, 1:-1] - image[2:, 1:-1]
    magnitude = np.hypot(dx, dy)
    turns = np.arctan2(dy, dx) * np.float32(N_BINS / (2 * np.pi)) % N_BINS
    below = np.floor(turns)
    share = turns - below
    nearest = below.astype(np.int64)[..., None]
    layers = np.zeros((*image.shape, N_BINS), dtype=np.float32)
    # The remainder of a tiny negative number is N_BINS itself.
    np.put_along_axis(layers, nearest % N_BINS, (magnitude * (1 - share))[..., None], axis=-1)
    np.put_along_axis(layers, (nearest + 1) % N_BINS, (magnitude * share)[..., None], axis=-1)
    return layers


@lru_cache
def cell_taps(side: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """First offset of each cell along an axis, (4,), and weights from there on, (4, 2 side)."""
    centres = (np.arange(N_CELLS) - (N_CELLS - 1) / 2) * side
    firsts = np.floor(centres - side).astype(np.int64) + 1
    offsets = firsts[:, None] + np.arange(2 * side)
    taps = np.maximum(1 - np.abs(offsets - centres[:, None]) / side, 0)
    taps *= np.exp(-0.5 * (offsets / (side * N_CELLS / 2)) ** 2)
    return firsts, taps.astype(np.float32)


def _unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(norms > SMALLEST_NORM, norms, np.inf), np.float32)
