"""Histograms of oriented gradients of a whole picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from cppcl.features.base import MIB, Picture
from cppcl.features.contours.detection import CONTOURS, ContourOptions
from cppcl.features.descriptors.pixels import resize
from cppcl.features.layers import Layer, Numbers, Seen
from cppcl.features.stateless import StatelessExtractor, rows_of
from cppcl.pictures.decoding import pad_to_square, to_gray

SIDE = 128
CELL = 18
N_CELLS = SIDE // CELL
"""Cells along each side: 7."""
N_BINS = 9
DIMENSION = 1296


@dataclass(frozen=True, kw_only=True)
class Hog(ContourOptions, StatelessExtractor):
    """Global HOG of 1296 values: 6 x 6 blocks of 2 x 2 cells with 9 orientations.

    The picture is padded to a square on white, never stretched, and resized to 128 x 128; cells
    are 18 pixels wide and blocks are normalised by clipped L2 norm, after Dalal and Triggs,
    "Histograms of Oriented Gradients for Human Detection", CVPR 2005. This is the form whose
    1296 values are reported for sketches in the comparisons on the TU-Berlin Extension. Sketches
    and photographs are alike only in their contours: see option `contours`.

    Parameters
    ----------
    contours : str
        'none', the default, describes the picture's own grey values. Else, on a canvas of 256
        pixels: 'strokes', the dark pixels of a sketch, cropped to their bounding box; 'canny', the
        edges of a photograph at the coarsest scale that leaves more than 2 % of its pixels;
        'colour_canny', the edges of its colours; or the path of a network that maps a picture to
        contours, a TorchScript file (.pt) or an ONNX file (.onnx).
    """

    name: ClassVar[str] = "hog"
    version: ClassVar[int] = 1
    device: ClassVar[Literal["cpu", "gpu"]] = "cpu"
    libraries: ClassVar[int] = 64 * MIB
    sources: ClassVar[tuple[str, ...]] = ("none", *CONTOURS)

    contours: str = "none"

    @property
    def dimension(self) -> int:
        """1296."""
        return DIMENSION

    def transform(self, pictures: Sequence[Picture]) -> NDArray[np.float32]:
        """Descriptors of n pictures, (n, 1296) float32."""
        return rows_of(pictures, self.dimension, self._describe)

    def explain(self, picture: Picture) -> list[Layer]:
        """Show the square that is described, and the orientations of its cells."""
        return hog_layers(self._square(picture), marks=self.contours != "none")

    def _describe(self, picture: Picture) -> NDArray[np.floating]:
        return hog_of_square(self._square(picture))

    def _square(self, picture: Picture) -> NDArray[np.float32]:
        if self.contours == "none":
            return to_gray(pad_to_square(picture))
        return self.on_canvas(picture).astype(np.float32)


def hog_of_square(gray: NDArray[np.float32]) -> NDArray[np.floating]:
    """HOG of a square picture of any size, (1296,); that of its negative is the same."""
    from skimage.feature import hog

    descriptor: NDArray[np.floating] = hog(
        resize(gray, (SIDE, SIDE)),
        orientations=N_BINS,
        pixels_per_cell=(CELL, CELL),
        cells_per_block=(2, 2),
        block_norm="L2-Hys",
    )
    return descriptor


def hog_layers(gray: NDArray[np.float32], *, marks: bool) -> list[Layer]:
    """Orientations of edges in each cell, the mean over the blocks that hold it, and the vector.

    Parameters
    ----------
    gray : (n, n) float32 array
        What `hog_of_square` describes.
    marks : bool
        True if 1 is a mark, to be drawn dark, and not white.
    """
    vector = hog_of_square(gray)
    blocks = vector.reshape(N_CELLS - 1, N_CELLS - 1, 2, 2, N_BINS)
    sums, counts = np.zeros((N_CELLS, N_CELLS, N_BINS)), np.zeros((N_CELLS, N_CELLS, 1))
    for i in range(2):
        for j in range(2):
            inside = slice(i, i + N_CELLS - 1), slice(j, j + N_CELLS - 1)
            sums[inside] += blocks[:, :, i, j]
            counts[inside] += 1
    # Bins are of gradients; edges run across them.
    edges = np.pi * (np.arange(N_BINS) + 0.5) / N_BINS + np.pi / 2
    covered = N_CELLS * CELL
    shown = resize(gray, (SIDE, SIDE))[:covered, :covered]
    return [
        Seen(
            f"cells, {N_CELLS} x {N_CELLS}, on {SIDE} x {SIDE}",
            1 - shown if marks else shown,
            angles=np.broadcast_to(edges, sums.shape),
            lengths=sums / counts,
        ),
        Numbers("vector", vector.reshape(-1, 4 * N_BINS), "block", "orientation of each cell"),
    ]
