"""How much detail a sketch has: density of strokes in the rims of random windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from cppcl.features.base import Picture
from cppcl.features.contours.strokes import normalised_strokes
from cppcl.features.layers import Layer
from cppcl.features.scores.windows import (
    ScoredWindows,
    random_windows,
    rim_densities,
    rims,
    to_pixels,
)
from cppcl.features.stateless import StatelessExtractor, rows_of
from cppcl.validation import check_flag, check_number

CANVAS = 256
N_SHOWN = 30


@dataclass(frozen=True, kw_only=True)
class Edgeness(StatelessExtractor):
    """Mean over random windows of the edge density cue of objectness; higher is easier.

    A window's cue is the share of stroke pixels in its rim times the rim's thickness in pixels:
    the edge density of Alexe, Deselaers and Ferrari, "Measuring the Objectness of Image
    Windows", PAMI 2012, with the strokes themselves in place of an edge map, which would double
    them. Every sketch is measured in the same windows, after its strokes were brought to one
    place and size. A sketch without strokes scores 0; a filled shape thins to its axis and scores
    little.

    Parameters
    ----------
    n_windows : int
        Number of windows.
    seed : int
        Of the windows.
    thin : bool
        True if strokes are thinned first, so that a thick pen does not pass for detail.
    """

    name: ClassVar[str] = "edgeness"
    version: ClassVar[int] = 1
    device: ClassVar[Literal["cpu", "gpu"]] = "cpu"

    n_windows: int = 100
    seed: int = 0
    thin: bool = True

    def __post_init__(self) -> None:
        check_number("option n_windows", self.n_windows, least=1, whole=True)
        check_number("option seed", self.seed, least=0, whole=True)
        check_flag("option thin", self.thin)

    @property
    def dimension(self) -> int:
        """One."""
        return 1

    def transform(self, pictures: Sequence[Picture]) -> NDArray[np.float32]:
        """Scores of n sketches, (n, 1) float32, in pixels of a 256 x 256 canvas."""
        return rows_of(pictures, 1, self._score)

    def _score(self, picture: Picture) -> float:
        return self.scored_windows(picture).easiness

    def explain(self, picture: Picture) -> list[Layer]:
        """Show the strokes on the canvas with the windows of most detail, and the scores."""
        strokes = self._strokes(picture)
        drawn = np.repeat(np.where(strokes, 0, 255).astype(np.uint8)[..., None], 3, axis=2)
        return self._score_windows(strokes).layers(drawn)

    def scored_windows(self, picture: Picture) -> ScoredWindows:
        """Measure the windows of a picture, whose mean is its score; the 30 highest are best.

        Windows are in the canvas on which strokes are brought to one place and size.
        """
        return self._score_windows(self._strokes(picture))

    def _strokes(self, picture: Picture) -> NDArray[np.bool_]:
        return normalised_strokes(picture, canvas=CANVAS, thin=self.thin)

    def _score_windows(self, strokes: NDArray[np.bool_]) -> ScoredWindows:
        outer, inner = rim_windows(self.n_windows, self.seed)
        densities = rim_densities(strokes, outer, inner)
        best = np.argsort(-densities, kind="stable")[:N_SHOWN]
        return ScoredWindows(outer / CANVAS, densities, best, float(densities.mean()))


@lru_cache
def rim_windows(n_windows: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Outer and inner windows in pixels of the canvas, (n_windows, 4) int64 each."""
    outer = to_pixels(random_windows(n_windows, seed), CANVAS, CANVAS)
    inner = rims(outer)
    for windows in (outer, inner):
        windows.flags.writeable = False
    return outer, inner
