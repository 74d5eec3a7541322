"""Histograms of oriented gradients of a whole picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from cppcl.features.base import Picture
from cppcl.features.pixels import resize
from cppcl.features.stateless import StatelessExtractor, rows_of
from cppcl.images import pad_to_square, to_gray

SIDE = 128


@dataclass(frozen=True, kw_only=True)
class Hog(StatelessExtractor):
    """Global HOG of 1296 values: 6 x 6 blocks of 2 x 2 cells with 9 orientations.

    The picture is padded to a square on white, never stretched, and resized to 128 x 128; cells
    are 18 pixels wide and blocks are normalised by clipped L2 norm, after Dalal and Triggs,
    "Histograms of Oriented Gradients for Human Detection", CVPR 2005. This is the form whose
    1296 values are reported for sketches in the comparisons on the TU-Berlin Extension.
    """

    name: ClassVar[str] = "hog"
    version: ClassVar[int] = 1
    device: ClassVar[Literal["cpu", "gpu"]] = "cpu"

    @property
    def dimension(self) -> int:
        """1296."""
        return 1296

    def transform(self, pictures: Sequence[Picture]) -> NDArray[np.float32]:
        """Descriptors of n pictures, (n, 1296) float32."""
        return rows_of(pictures, self.dimension, _describe)


def _describe(picture: Picture) -> NDArray[np.floating]:
    from skimage.feature import hog

    gray = resize(to_gray(pad_to_square(picture)), (SIDE, SIDE))
    descriptor: NDArray[np.floating] = hog(
        gray, orientations=9, pixels_per_cell=(18, 18), cells_per_block=(2, 2), block_norm="L2-Hys"
    )
    return descriptor
