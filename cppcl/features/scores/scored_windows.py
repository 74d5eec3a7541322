"""Windows of a picture with what they score."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.features.base import Picture
from cppcl.features.layers import Layer, Numbers, Seen


@dataclass(frozen=True)
class ScoredWindows:
    """Windows of one picture with what they score, and what the picture scores by them.

    Attributes
    ----------
    windows : (n, 4) float64 array
        Left, top, right and bottom in the unit square.
    scores : (n,) float64 array
        Higher is more like an object, or more detailed.
    best : (k,) int64 array
        Which of them are best, the best one first.
    easiness : float
        Score of the picture.
    cues : dict of str to picture
        What the windows were measured on, by name: colours, marks or grey values, as in
        `cppcl.features.layers.Seen`.
    """

    windows: NDArray[np.float64]
    scores: NDArray[np.float64]
    best: NDArray[np.int64]
    easiness: float
    cues: dict[str, NDArray[Any]] = field(default_factory=dict)

    def layers(self, picture: Picture) -> list[Layer]:
        """Show the best windows over a picture, the cues, and the score of the picture."""
        height, width = picture.shape[:2]
        boxes = self.windows[self.best] * np.array([width, height, width, height])
        highest, lowest = self.scores[self.best[[0, -1]]]
        what = (
            f"{len(self.best)} best of {len(self.windows)} windows, {highest:.3g} to {lowest:.3g}"
        )
        return [
            Seen(what, picture, boxes=boxes),
            *cue_layers(self.cues),
            Numbers("easiness", np.array([self.easiness])),
        ]


def cue_layers(cues: dict[str, NDArray[Any]]) -> list[Layer]:
    """One layer a cue."""
    return [Seen(name, cue) for name, cue in cues.items()]
