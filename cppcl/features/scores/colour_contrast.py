"""How much the windows of a picture differ in colour from what surrounds them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from cppcl.features.base import Picture
from cppcl.features.layers import Layer
from cppcl.features.scores.windows import ScoredWindows, random_windows, to_pixels
from cppcl.features.stateless import StatelessExtractor, rows_of
from cppcl.validation import check_number

LONGEST_SIDE = 160
N_HIGHEST = 30
SURROUND = 0.5
"""Share of a window's side added on each side of it (theta_CC = 100)."""


@dataclass(frozen=True, kw_only=True)
class ColourContrast(StatelessExtractor):
    """Median of the 30 highest colour contrasts among windows of a picture; higher is easier.

    A simple stand-in for objectness: of its cues only colour contrast, and over a fixed set of
    random windows instead of proposals. The contrast of a window is the chi-squared distance of
    its Lab histogram (4 x 8 x 8 bins) to that of its surround, the window enlarged by half its
    sides on every side, without the window itself: Alexe, Deselaers and Ferrari, "Measuring the
    Objectness of Image Windows", PAMI 2012. It lies between 0 and 2; a picture of one colour
    scores 0.

    Parameters
    ----------
    n_windows : int
        Number of windows; the median is over all where there are fewer than 30.
    seed : int
        Of the windows, which are the same for all pictures relative to their sides.
    """

    name: ClassVar[str] = "colour_contrast"
    version: ClassVar[int] = 1
    device: ClassVar[Literal["cpu", "gpu"]] = "cpu"

    n_windows: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        check_number("option n_windows", self.n_windows, least=1, whole=True)
        check_number("option seed", self.seed, least=0, whole=True)

    @property
    def dimension(self) -> int:
        """One."""
        return 1

    def transform(self, pictures: Sequence[Picture]) -> NDArray[np.float32]:
        """Scores of n pictures, (n, 1) float32."""
        return rows_of(pictures, 1, self._score)

    def _score(self, picture: Picture) -> float:
        return self.scored_windows(picture).easiness

    def explain(self, picture: Picture) -> list[Layer]:
        """Show the windows of highest contrast, and the scores."""
        return self.scored_windows(picture).layers(shrink(picture, LONGEST_SIDE))

    def scored_windows(self, picture: Picture) -> ScoredWindows:
        """Measure the windows of a picture, the median of whose best is its score."""
        small = shrink(picture, LONGEST_SIDE)
        height, width = small.shape[:2]
        windows = random_windows(self.n_windows, self.seed)
        contrasts = colour_contrasts(colour_bins(small), to_pixels(windows, width, height))
        best = np.argsort(-contrasts, kind="stable")[:N_HIGHEST]
        return ScoredWindows(windows, contrasts, best, float(np.median(contrasts[best])))


def shrink(picture: Picture, longest_side: int) -> Picture:
    """Resize a picture to a longest side in pixels, unless it is small enough."""
    height, width = picture.shape[:2]
    scale = longest_side / max(height, width)
    if scale >= 1:
        return picture
    from PIL import Image

    size = max(1, round(width * scale)), max(1, round(height * scale))
    image = Image.fromarray(np.ascontiguousarray(picture))
    return np.asarray(image.resize(size, Image.Resampling.BILINEAR))


def colour_bins(picture: Picture) -> NDArray[np.int64]:
    """Histogram bin of every pixel: 4 of lightness, 8 each of a and b; (H, W) int64 below 256."""
    from skimage.color import rgb2lab

    lab = rgb2lab(picture)
    shift, width = np.array([0, 120, 120]), np.array([25, 30, 30])
    steps = np.floor((lab + shift) / width).astype(np.int64)
    lightness, a, b = np.moveaxis(np.clip(steps, 0, (3, 7, 7)), -1, 0)
    bins: NDArray[np.int64] = (lightness * 8 + a) * 8 + b
    return bins


def colour_contrasts(bins: NDArray[np.int64], windows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Chi-squared distance of each window's histogram to its surround's.

    Parameters
    ----------
    bins : (H, W) int64 array
        Histogram bin of every pixel.
    windows : (n, 4) int64 array
        Left, top, right and bottom in pixels, right and bottom excluded.

    Returns
    -------
    (n,) float64 array
        Between 0 and 2; 0 where a window covers the whole picture and has no surround.
    """
    from cppcl.features.scores.window_kernels import histogram_distances, integral_histogram

    height, width = bins.shape
    occupied, renumbered = np.unique(bins, return_inverse=True)
    sums = integral_histogram(renumbered.reshape(bins.shape), len(occupied))
    margin = np.rint((windows[:, 2:] - windows[:, :2]) * SURROUND).astype(np.int64)
    enlarged = np.hstack([windows[:, :2] - margin, windows[:, 2:] + margin])
    enlarged = np.clip(enlarged, 0, np.array([width, height, width, height]))
    distances: NDArray[np.float64] = histogram_distances(sums, windows, enlarged)
    return distances
