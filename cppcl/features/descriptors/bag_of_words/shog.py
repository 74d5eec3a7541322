"""Histograms of oriented gradients of large windows of a sketch (SHOG), as words."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from cppcl.features.base import Picture
from cppcl.features.descriptors.bag_of_words.visual_words import Local, VisualWords
from cppcl.features.layers import Layer, Seen
from cppcl.features.scores.windows import integral, window_sums
from cppcl.validation import check_choice, check_number

AREA = 0.125
"""Area of a window as a share of the picture's."""
N_TILES = 4
"""Tiles along each side of a window."""
N_ORIENTATIONS = 4
BLUR_SIGMA, BLUR_RADIUS = 2.0, 3
"""The Gaussian of 7 x 7 pixels before gradients are taken."""
N_SHOWN = 12
"""Windows that are shown to a person."""
TILE_SIGMA = 1 / 3
"""Deviation of the Gaussian that gathers a tile's responses, in sides of a tile."""


@dataclass(frozen=True, kw_only=True)
class Shog(VisualWords):
    r"""Words of SHOG: 4 x 4 tiles of 4 orientations in windows of an eighth of the picture.

    Contours, brought to a longest side of 256 pixels, are blurred by a Gaussian of sigma 2 in
    7 x 7 pixels; Sobel gives magnitude m and orientation :math:`\theta`, modulo :math:`\pi`. With
    :math:`t = 4 \theta / \pi`, a pixel gives the two orientations k nearest to t

    .. math:: R_k = m \max(0, 1 - |t - k|_{\bmod 4}), \qquad k = 0, \dots, 3.

    Windows are squares whose side is the square root of 0.125 of the picture's area, rounded up
    to a multiple of 4; each of the 4 x 4 tiles, of side s, reads :math:`G_{s/3} * R_k` at its
    centre. The 64 values are divided by their Euclidean norm. Windows without any contour count
    for nothing. Dimension: `n_words`, times 21 with the pyramid.

    Eitz, Hildebrand, Boubekeur and Alexa, "Sketch-based image retrieval: benchmark and
    bag-of-features descriptors", TVCG 2011. Ours are that sketches are marked by Otsu's threshold
    and cropped to their strokes first, that windows are centred anywhere in the picture, which is
    blank beyond its borders, at the same relative places in every picture, and that orientations
    are centred on 0, 45, 90 and 135 degrees.

    Parameters
    ----------
    sampling : {'random', 'grid'}
        Windows are centred at random places, or in the cells of a square grid.
    n_windows : int
        Number of windows; for 'grid' at most so many: 625 make 25 x 25.
    """

    name: ClassVar[str] = "shog"
    version: ClassVar[int] = 1
    device: ClassVar[Literal["cpu", "gpu"]] = "cpu"
    length: ClassVar[int] = N_TILES * N_TILES * N_ORIENTATIONS
    longest_side: ClassVar[int] = 256

    sampling: Literal["random", "grid"] = "random"
    n_windows: int = 500

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("option sampling", self.sampling, ("random", "grid"))
        check_number("option n_windows", self.n_windows, least=1, whole=True)

    def local_descriptors(self, picture: Picture) -> Local:
        """Descriptors of the windows with a contour, (n, 64) float32, and their centres."""
        mask = self.contours_of(picture)
        places = window_centres(self.sampling, self.n_windows, self.seed)
        centres = (places * mask.shape).astype(np.int64)
        descriptors, seen = describe_windows(mask, centres)
        return descriptors[seen], places[seen]

    def explain_local(self, mask: NDArray[np.bool_]) -> list[Layer]:
        """Show some of the windows."""
        places = window_centres(self.sampling, self.n_windows, self.seed)
        shown = places[:: max(1, len(places) // N_SHOWN)]
        side = window_side(mask.shape)
        first = (shown * mask.shape).astype(np.int64)[:, ::-1] - side // 2
        return [Seen("some of the windows", mask, boxes=np.hstack([first, first + side]))]


@lru_cache
def window_centres(sampling: str, n_windows: int, seed: int) -> NDArray[np.float64]:
    """Rows and columns of centres in the unit square, (n, 2) float64."""
    if sampling == "grid":
        side = int(np.sqrt(n_windows))
        steps = (np.arange(side) + 0.5) / side
        places = np.stack(np.meshgrid(steps, steps, indexing="ij"), axis=-1).reshape(-1, 2)
    else:
        places = np.random.default_rng(seed).random((n_windows, 2))
    places.flags.writeable = False
    return places


def describe_windows(
    mask: NDArray[np.bool_], centres: NDArray[np.int64]
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """SHOG of windows of a contour mask.

    Parameters
    ----------
    mask : (h, w) bool array
        Contours; there are none beyond the borders.
    centres : (n, 2) int64 array
        Rows and columns of pixels of the mask.

    Returns
    -------
    descriptors : (n, 64) float32 array
        Tiles row by row, the orientations of a tile together; of unit norm, or zero.
    seen : (n,) bool array
        Which windows hold a contour pixel, and a gradient.
    """
    side = window_side(mask.shape)
    tile = side // N_TILES
    first = centres - side // 2
    inner = np.clip(first, 0, None)
    last = np.minimum(first + side, mask.shape)
    corners = np.hstack([inner[:, ::-1], last[:, ::-1]])
    marked = window_sums(integral(mask), corners) > 0

    # Maps reach half a window beyond the mask on each side, so that every tile has its centre.
    margin = side // 2
    across = _smoothing(mask.shape[1], margin, tile)
    down = _smoothing(mask.shape[0], margin, tile)
    maps = down @ orientation_responses(mask) @ across.T
    offsets = tile * np.arange(N_TILES) + tile // 2 + margin
    rows, columns = (first[:, axis, None] + offsets for axis in (0, 1))
    values = maps[:, rows[:, :, None], columns[:, None, :]]
    descriptors = np.moveaxis(values, 0, -1).reshape(len(centres), -1)
    norms = np.linalg.norm(descriptors, axis=1)
    seen = marked & (norms > 0)
    descriptors = descriptors / np.where(seen, norms, 1)[:, None] * seen[:, None]
    return descriptors.astype(np.float32), seen


def window_side(shape: tuple[int, ...]) -> int:
    """Side of a window in pixels, a multiple of 4."""
    return N_TILES * int(np.ceil(np.sqrt(AREA * shape[0] * shape[1]) / N_TILES))


def orientation_responses(mask: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Gradient magnitude of a blurred mask by orientation, (4, h, w) float32."""
    from scipy import ndimage

    blurred = ndimage.gaussian_filter(
        mask.astype(np.float32), BLUR_SIGMA, mode="constant", radius=BLUR_RADIUS
    )
    dy, dx = (ndimage.sobel(blurred, axis=axis, mode="constant") for axis in (0, 1))
    magnitude = np.hypot(dx, dy)
    turns = np.arctan2(dy, dx) * np.float32(N_ORIENTATIONS / np.pi) % N_ORIENTATIONS
    responses = np.empty((N_ORIENTATIONS, *mask.shape), dtype=np.float32)
    for k in range(N_ORIENTATIONS):
        distance = np.abs(turns - k)
        distance = np.minimum(distance, N_ORIENTATIONS - distance)
        responses[k] = magnitude * np.maximum(1 - distance, 0)
    return responses


@lru_cache(maxsize=16)
def _smoothing(n: int, margin: int, tile: int) -> NDArray[np.float32]:
    """Gaussian smoothing of n values, blank beyond them, to n + 2 margin values, as a matrix."""
    distances = np.arange(n + 2 * margin)[:, None] - margin - np.arange(n)
    sigma = TILE_SIGMA * tile
    weights = np.exp(-0.5 * (distances / sigma) ** 2) / (sigma * np.sqrt(2 * np.pi))
    weights[np.abs(distances) > 4 * sigma] = 0
    smoothing: NDArray[np.float32] = weights.astype(np.float32)
    smoothing.flags.writeable = False
    return smoothing
