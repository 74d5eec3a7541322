"""Histograms of oriented gradients of the lines of a picture, wherever they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from cppcl.features.base import MIB, Picture
from cppcl.features.contours.detection import ContourOptions
from cppcl.features.descriptors.hog import DIMENSION, SIDE, hog_layers, hog_of_square
from cppcl.features.layers import Layer
from cppcl.features.stateless import StatelessExtractor, rows_of
from cppcl.features.trained.inputs import seen_by_network


@dataclass(frozen=True, kw_only=True)
class LineHog(ContourOptions, StatelessExtractor):
    """HOG of lines that are cropped to their bounding box: 1296 values, as those of `hog`.

    The darkness of a sketch, or the contours of a photograph, is cropped, resized to nine tenths
    of 128 pixels and centred, so that a drawing and the edges of a picture are as large and in
    the same place. This is what the networks that are trained here see
    (`cppcl.features.trained.inputs`), and our own: no publication has it.

    Parameters
    ----------
    contours : str
        'strokes', the darkness of a sketch; 'colour_canny', the edges of a photograph's colours;
        'canny', those of its grey values; or the path of a network, as of `hog`.
    """

    name: ClassVar[str] = "line_hog"
    version: ClassVar[int] = 1
    device: ClassVar[Literal["cpu", "gpu"]] = "cpu"
    libraries: ClassVar[int] = 96 * MIB

    @property
    def dimension(self) -> int:
        """1296."""
        return DIMENSION

    def transform(self, pictures: Sequence[Picture]) -> NDArray[np.float32]:
        """Descriptors of n pictures, (n, 1296) float32."""
        return rows_of(pictures, self.dimension, lambda p: hog_of_square(self._lines(p)))

    def explain(self, picture: Picture) -> list[Layer]:
        """Show the lines, and the orientations of their cells."""
        return hog_layers(self._lines(picture), marks=True)

    def _lines(self, picture: Picture) -> NDArray[np.float32]:
        seen = seen_by_network(
            picture,
            "strokes" if self.contours == "strokes" else "edges",
            SIDE,
            contours=self.contours,
            threshold=self.threshold,
        )
        lines: NDArray[np.float32] = seen[0].astype(np.float32) / 255
        return lines
