"""Windows that hold whole contours: groups of edges inside, none across the border."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import InputError
from cppcl.features.base import Picture
from cppcl.features.contours.detection import adaptive_canny
from cppcl.features.layers import Layer
from cppcl.features.scores.colour_contrast import shrink
from cppcl.features.scores.windows import ScoredWindows, highest, random_windows, to_pixels
from cppcl.features.stateless import StatelessExtractor, rows_of
from cppcl.pictures.decoding import to_gray
from cppcl.validation import check_number

LONGEST_SIDE = 160
N_BEST = 30
GRADIENT_SIGMA = 1.0
WINDOW_SCALE = (0.1, 1.0)


class EdgeGroups(NamedTuple):
    """Edge pixels of a picture and the groups that they make."""

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    """(e,) places of edge pixels."""
    magnitudes: NDArray[np.float64]
    """(e,) of the gradient, in [0, 1]."""
    groups: NDArray[np.int64]
    """(e,) group of each, from 0 on."""
    affinities: NDArray[np.float64]
    """(g, g) symmetric, in [0, 1]."""


@dataclass(frozen=True, kw_only=True)
class EdgeBoxes(StatelessExtractor):
    r"""Easiness of an image by whole contours: median of its 30 best edge boxes; nothing learned.

    A quick alternative to `objectness`. A window scores by the edges whose groups lie wholly
    inside,

    .. math:: h = \frac{\sum_i w_i m_i - \sum_{p \in inner} m_p}{2 (width + height)^{1.5}}, \qquad
              w_i = 1 - \max_{paths} \prod a,

    with :math:`m_i` the gradient of group i, :math:`w_i` how little it hangs together with groups
    across the border, by affinities a of neighbouring groups along a path, and the inner window
    of half the sides. Zitnick and Dollar, "Edge Boxes: Locating Object Proposals from Edges",
    ECCV 2014. Ours: edges are found by Canny's detector at an adaptive scale, as their learned
    detector needs a model; windows are random, the same for all pictures relative to their
    sides, and not refined; a window without edges scores 0.

    Parameters
    ----------
    n_windows : int
        Windows that are scored.
    overlap : float
        Largest intersection over union of two of the 30, above 0 and at most 1.
    seed : int
        Of the windows.
    """

    name: ClassVar[str] = "edge_boxes"
    version: ClassVar[int] = 1
    device: ClassVar[Literal["cpu", "gpu"]] = "cpu"

    n_windows: int = 3000
    overlap: float = 0.7
    seed: int = 0

    def __post_init__(self) -> None:
        check_number("option n_windows", self.n_windows, least=1, whole=True)
        check_number("option seed", self.seed, least=0, whole=True)
        check_number("option overlap", self.overlap, above=0)
        if self.overlap > 1:
            raise InputError(f"option overlap={self.overlap} must be at most 1")

    @property
    def dimension(self) -> int:
        """One."""
        return 1

    def transform(self, pictures: Sequence[Picture]) -> NDArray[np.float32]:
        """Scores of n images, (n, 1) float32."""
        return rows_of(pictures, 1, lambda picture: self.scored_windows(picture).easiness)

    def explain(self, picture: Picture) -> list[Layer]:
        """Show the edges, the best windows and the scores."""
        return self.scored_windows(picture).layers(shrink(picture, LONGEST_SIDE))

    def scored_windows(self, picture: Picture) -> ScoredWindows:
        """Score the windows of a picture."""
        gray = to_gray(shrink(picture, LONGEST_SIDE)).astype(np.float64)
        windows = random_windows(self.n_windows, self.seed, scale=WINDOW_SCALE)
        pixels = to_pixels(windows, gray.shape[1], gray.shape[0])
        found = edge_groups(gray)
        scores = box_scores(found, pixels)
        best = highest(pixels, scores, self.overlap, N_BEST)
        edges = np.ones(gray.shape)
        edges[found.rows, found.columns] = 0.8 - 0.8 * found.magnitudes
        return ScoredWindows(
            windows, scores, best, float(np.median(scores[best])), {"edges": edges}
        )


def edge_groups(gray: NDArray[np.float64]) -> EdgeGroups:
    """Edges of a picture in groups of nearly straight pieces, with their affinities.

    A group grows from an edge pixel along its eight neighbours, the one of most similar
    orientation first, until the turns add up to a right angle. Neighbouring groups, at most two
    pixels apart, have the affinity ``|cos(a - c) cos(b - c)|^2`` with a and b their orientations
    and c that of the line between their centres.

    Parameters
    ----------
    gray : (h, w) float64 array
        Grey values in [0, 1].
    """
    from scipy import ndimage

    from cppcl.features.scores.window_kernels import group_affinities, grow_groups

    edges = adaptive_canny(gray)
    smooth = ndimage.gaussian_filter(gray, GRADIENT_SIGMA, mode="nearest")
    dy, dx = ndimage.sobel(smooth, axis=0), ndimage.sobel(smooth, axis=1)
    magnitude = np.hypot(dx, dy)
    rows, columns = np.nonzero(edges)
    # An edge runs across its gradient.
    orientations = np.arctan2(dy, dx)[rows, columns] + np.pi / 2
    of_pixel = np.full(edges.shape, -1, dtype=np.int64)
    of_pixel[rows, columns] = np.arange(len(rows))
    groups = grow_groups(rows, columns, orientations, of_pixel)
    n_groups = int(groups.max(initial=-1)) + 1
    magnitudes = magnitude[rows, columns] / (magnitude.max() or 1.0)
    affinities = group_affinities(rows, columns, orientations, groups, of_pixel, n_groups)
    return EdgeGroups(rows, columns, magnitudes, groups, affinities)


def box_scores(found: EdgeGroups, windows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Scores of windows in pixels, (n,), not negative."""
    from cppcl.features.scores.window_kernels import score_boxes

    scores: NDArray[np.float64] = score_boxes(*found, windows)
    return scores
