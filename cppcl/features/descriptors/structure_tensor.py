"""Structure tensors of a grid of cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from cppcl.features.base import Picture
from cppcl.features.contours.detection import CONTOURS, ContourOptions
from cppcl.features.descriptors.grids import cell_of
from cppcl.features.descriptors.pixels import resize
from cppcl.features.descriptors.shelo import sobel
from cppcl.features.layers import Layer, Numbers, Seen
from cppcl.features.stateless import StatelessExtractor, rows_of
from cppcl.pictures.decoding import pad_to_square, to_gray
from cppcl.validation import check_number

CANVAS = 256
LEAST_GRADIENT = 4 / 255
"""Root mean square of a cell's gradient below which it is empty: that of a ramp that rises by one
grey level in two pixels."""


@dataclass(frozen=True, kw_only=True)
class StructureTensor(ContourOptions, StatelessExtractor):
    r"""Normalised structure tensors of a 20 x 20 grid: 1200 values.

    With the Sobel gradient (gx, gy) of a canvas of 256 x 256 pixels, a cell has the tensor

    .. math:: T = \sum \begin{pmatrix} g_x^2 & g_x g_y \\ g_x g_y & g_y^2 \end{pmatrix}

    over its pixels, divided by its Frobenius norm, and zeros where the cell is empty. The values
    (T11, sqrt(2) T12, T22) of all cells, row by row, make the descriptor, so that the Euclidean
    distance of descriptors is that of the tensors in the Frobenius norm, summed in squares.

    Eitz, Hildebrand, Boubekeur and Alexa, "A descriptor for large scale image retrieval based on
    sketched feature lines", SBIM 2009. Ours are the least gradient of a cell that is not empty,
    and that cells empty on one side count as zeros instead of being left out of the distance.

    Parameters
    ----------
    contours : str
        'none' describes the picture's own grey values, padded to a square, as published; the
        others, of which 'strokes' is the default, are those of all contour descriptors: 'strokes',
        the dark pixels of a sketch, cropped to their bounding box; 'canny', edges of a photograph
        at the coarsest scale that leaves more than 2 % of its pixels; or the path of a network, a
        TorchScript file (.pt) or an ONNX file (.onnx).
    cells : int
        Cells along each side.
    """

    name: ClassVar[str] = "structure_tensor"
    version: ClassVar[int] = 1
    device: ClassVar[Literal["cpu", "gpu"]] = "cpu"
    sources: ClassVar[tuple[str, ...]] = ("none", *CONTOURS)

    cells: int = 20

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("option cells", self.cells, least=1, whole=True)

    @property
    def dimension(self) -> int:
        """Three values a cell: 1200 by default."""
        return 3 * self.cells**2

    def transform(self, pictures: Sequence[Picture]) -> NDArray[np.float32]:
        """Descriptors of n pictures, (n, dimension) float32."""
        return rows_of(pictures, self.dimension, self._describe)

    def explain(self, picture: Picture) -> list[Layer]:
        """Show the canvas with the edge in each cell, the longer the less it turns."""
        canvas, vector = self._canvas(picture), self._describe(picture)
        tensors = vector.reshape(self.cells, self.cells, 3)
        t11, t12, t22 = np.moveaxis(tensors, -1, 0) / np.array([1, np.sqrt(2), 1])[:, None, None]
        return [
            Seen(
                f"tensors, {self.cells} x {self.cells}, on {CANVAS} x {CANVAS}",
                canvas if self.contours == "none" else 1 - canvas,
                angles=(np.arctan2(2 * t12, t11 - t22) / 2 + np.pi / 2)[..., None],
                lengths=np.hypot(t11 - t22, 2 * t12)[..., None],
            ),
            Numbers("vector", vector.reshape(self.cells, -1), "row", "tensor of each cell"),
        ]

    def _canvas(self, picture: Picture) -> NDArray[np.float32]:
        if self.contours == "none":
            return resize(to_gray(pad_to_square(picture)), (CANVAS, CANVAS))
        return self.on_canvas(picture).astype(np.float32)

    def _describe(self, picture: Picture) -> NDArray[np.floating]:
        gx, gy = sobel(self._canvas(picture))
        cells = cell_of(CANVAS, self.cells)
        root = np.float32(np.sqrt(2))
        products = np.stack([gx * gx, root * gx * gy, gy * gy])
        tensors = cells @ products @ cells.T
        norms = np.linalg.norm(tensors, axis=0)
        area = np.outer(cells.sum(axis=1), cells.sum(axis=1))
        empty = tensors[0] + tensors[2] < LEAST_GRADIENT**2 * area
        tensors = np.where(empty, 0, tensors / np.where(empty, 1, norms))
        return np.moveaxis(tensors, 0, -1).ravel()
