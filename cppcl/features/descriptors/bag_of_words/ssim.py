"""Self-similarity at contour pixels, as words."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from cppcl.features.base import Picture
from cppcl.features.descriptors.bag_of_words.visual_words import Local, VisualWords

PATCH = 5
"""Side of a patch, pixels."""
RADII = (2.5, 5, 10, 20, 40)
"""Inner and outer radii of the rings, pixels."""
RADIUS = 40
N_ANGLES = 20
NOISE = 5
"""Different pixels of a patch that count for little: one line of it."""
SALIENT = np.exp(-1)
"""Similarity below which nothing around is like the centre."""

_BITS = 13  # two tables of so many bits hold a patch of 25


@dataclass(frozen=True, kw_only=True)
class SelfSimilarity(VisualWords):
    r"""Words of local self-similarities: where around a contour pixel it looks alike.

    Contours are brought to a longest side of 200 pixels. The 5 x 5 patch of a contour pixel p is
    compared with that of every pixel q within 40 pixels; beyond the borders nothing is marked.
    With SSD the number of pixels in which two patches differ,

    .. math:: S(q) = \exp\left(-\frac{SSD(p, q)}{\max(\nu, \max_{|r - p|_\infty \le 1}
              SSD(p, r))}\right), \qquad \nu = 5.

    The largest S is kept in each of 20 angles, from the right anticlockwise, of 4 rings with
    radii 2.5, 5, 10, 20 and 40 pixels, and the 80 values, inner ring first, are stretched to
    [0, 1]. Uninformative ones count for nothing: those of one value, and those where no S exceeds
    1/e, so nothing around is like the patch. Dimension: `n_words`, times 21 with the pyramid.

    Shechtman and Irani, "Matching local self-similarities across images and videos", CVPR 2007,
    on contours as in Hu and Collomosse, "A performance evaluation of gradient field HOG
    descriptor for sketch based image retrieval", CVIU 2013. Ours are the radii of the rings,
    which leave the patch itself out, the noise :math:`\nu`, what is uninformative, and that
    sketches are cropped to their strokes first. Black and white contours swapped have the same
    self-similarities, but where borders are near.
    """

    name: ClassVar[str] = "self_similarity"
    version: ClassVar[int] = 1
    device: ClassVar[Literal["cpu", "gpu"]] = "cpu"
    length: ClassVar[int] = N_ANGLES * (len(RADII) - 1)

    def local_descriptors(self, picture: Picture) -> Local:
        """Descriptors of contour pixels, (n, 80) float32, and where these are."""
        mask = self.contours_of(picture)
        pixels = np.argwhere(mask)
        similarity = similarities(mask, pixels)
        lowest, highest = similarity.min(axis=1), similarity.max(axis=1)
        seen = (highest > lowest) & (highest > SALIENT)
        similarity, lowest, highest = similarity[seen], lowest[seen], highest[seen]
        stretched = (similarity - lowest[:, None]) / (highest - lowest)[:, None]
        return stretched.astype(np.float32), (pixels[seen] + 0.5) / mask.shape


def similarities(mask: NDArray[np.bool_], pixels: NDArray[np.int64]) -> NDArray[np.float64]:
    """Largest similarity in every bin around n pixels of a mask, (n, 80) float64.

    On a mask, SSD is the number of different bits: patches are numbers of 25 bits.
    """
    from cppcl.features.descriptors.bag_of_words.local_kernels import least_differences

    codes = patch_codes(np.pad(mask, RADIUS))
    stride = codes.shape[1]
    steps, bounds = log_polar_bins()
    places = (pixels[:, 0] + RADIUS) * stride + pixels[:, 1] + RADIUS
    least = np.empty((len(pixels), len(bounds) - 1), dtype=np.uint8)
    flat = codes.ravel()
    least_differences(flat, places, steps @ (stride, 1), bounds, _bit_counts(), least)

    neighbours = [flat[places + row * stride + step] for row in (-1, 0, 1) for step in (-1, 0, 1)]
    variation = np.bitwise_count(np.stack(neighbours) ^ flat[places]).max(axis=0)
    largest: NDArray[np.float64] = np.exp(-(least / np.maximum(variation, NOISE)[:, None]))
    return largest


def patch_codes(mask: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Patch around every pixel as a number, bit 5 i + j for row i and column j; (h, w) int32."""
    height, width = mask.shape
    padded = np.pad(mask, PATCH // 2).astype(np.int32)
    lines = np.zeros((len(padded), width), dtype=np.int32)
    codes = np.zeros(mask.shape, dtype=np.int32)
    for j in range(PATCH):
        lines |= padded[:, j : j + width] << j
    for i in range(PATCH):
        codes |= lines[i : i + height] << (PATCH * i)
    return codes


@lru_cache
def log_polar_bins() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Steps from a pixel to those around it, (n, 2) rows and columns, bin after bin.

    Returns
    -------
    steps : (n, 2) int64 array
    bounds : (81,) int64 array
        Where the steps of each bin start, and their number.
    """
    steps = np.argwhere(np.ones((2 * RADIUS + 1, 2 * RADIUS + 1))) - RADIUS
    down, right = steps.T
    distances = np.hypot(down, right)
    rings = np.searchsorted(RADII, distances, side="right") - 1
    rings[distances == RADIUS] = len(RADII) - 2
    angles = np.floor(N_ANGLES * (np.arctan2(-down, right) / (2 * np.pi) % 1)).astype(np.int64)
    inside = (rings >= 0) & (distances <= RADIUS)
    bins = (rings * N_ANGLES + angles % N_ANGLES)[inside]
    counts = np.bincount(bins, minlength=N_ANGLES * (len(RADII) - 1))
    ordered = steps[inside][np.argsort(bins, kind="stable")]
    bounds = np.concatenate([[0], np.cumsum(counts)])
    for array in (ordered, bounds):
        array.flags.writeable = False
    return ordered, bounds


@lru_cache
def _bit_counts() -> NDArray[np.uint8]:
    counts: NDArray[np.uint8] = np.bitwise_count(np.arange(2**_BITS))
    return counts
