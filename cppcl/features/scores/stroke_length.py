"""How long the lines of a sketch are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from cppcl.features.base import Picture
from cppcl.features.contours.strokes import normalised_strokes
from cppcl.features.layers import Layer, Seen
from cppcl.features.stateless import StatelessExtractor, rows_of

CANVAS = 256


@dataclass(frozen=True, kw_only=True)
class StrokeLength(StatelessExtractor):
    """Length of the thinned strokes of a sketch, in sides of the canvas; longer is easier.

    Strokes are brought to one place and size and thinned to lines of one pixel, whose number is
    divided by the side of the canvas: a step along a diagonal counts as one along a side. A
    sketch without strokes scores 0. Section 4 of the paper calls sketches with more details
    easier; this measure of detail is ours. Simulated annotators answer by it.
    """

    name: ClassVar[str] = "stroke_length"
    version: ClassVar[int] = 1
    device: ClassVar[Literal["cpu", "gpu"]] = "cpu"

    @property
    def dimension(self) -> int:
        """One."""
        return 1

    def transform(self, pictures: Sequence[Picture]) -> NDArray[np.float32]:
        """Scores of n sketches, (n, 1) float32, in sides of the canvas."""
        return rows_of(pictures, 1, lambda picture: self._lines(picture).sum() / CANVAS)

    def explain(self, picture: Picture) -> list[Layer]:
        """Show the thinned strokes on the canvas."""
        lines = self._lines(picture)
        drawn = np.repeat(np.where(lines, 0, 255).astype(np.uint8)[..., None], 3, axis=2)
        return [Seen(f"strokes, {lines.sum() / CANVAS:.2f} sides of the canvas long", drawn)]

    def _lines(self, picture: Picture) -> NDArray[np.bool_]:
        return normalised_strokes(picture, canvas=CANVAS, thin=True)
