"""Structure tensors of large windows of a sketch, as words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from cppcl.features.base import Picture
from cppcl.features.descriptors.bag_of_words.shog import N_TILES, window_centres, window_side
from cppcl.features.descriptors.bag_of_words.visual_words import Local, VisualWords
from cppcl.features.descriptors.shelo import sobel
from cppcl.features.descriptors.structure_tensor import LEAST_GRADIENT
from cppcl.validation import check_number


@dataclass(frozen=True, kw_only=True)
class StructureTensorWords(VisualWords):
    r"""Words of structure tensors: those of 4 x 4 tiles in windows of an eighth of the picture.

    Windows are those of `cppcl.features.descriptors.bag_of_words.shog.Shog`. With the Sobel
    gradient (gx, gy) of the contours, each of their 4 x 4 tiles has the tensor

    .. math:: T = \sum \begin{pmatrix} g_x^2 & g_x g_y \\ g_x g_y & g_y^2 \end{pmatrix}

    over its pixels, divided by its Frobenius norm, and zeros where the tile is empty; the values
    (T11, sqrt(2) T12, T22) of all tiles, 48, are divided by their Euclidean norm. Windows with
    empty tiles alone count for nothing. Dimension: `n_words`, times 21 with the pyramid.

    The paper describes its baseline so: the tensors of Eitz, Hildebrand, Boubekeur and Alexa, "A
    descriptor for large scale image retrieval based on sketched feature lines", SBIM 2009, in a
    bag of words. It does not say of which windows; these are ours.

    Parameters
    ----------
    n_windows : int
        Number of windows, at the same relative places in every picture.
    """

    name: ClassVar[str] = "structure_tensor_words"
    version: ClassVar[int] = 1
    device: ClassVar[Literal["cpu", "gpu"]] = "cpu"
    length: ClassVar[int] = 3 * N_TILES * N_TILES
    longest_side: ClassVar[int] = 256

    n_windows: int = 500

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("option n_windows", self.n_windows, least=1, whole=True)

    def local_descriptors(self, picture: Picture) -> Local:
        """Tensors of the windows that are not empty, (n, 48) float32, and their centres."""
        mask = self.contours_of(picture)
        places = window_centres("random", self.n_windows, self.seed)
        centres = (places * mask.shape).astype(np.int64)
        descriptors, seen = window_tensors(mask, centres)
        return descriptors[seen], places[seen]


def window_tensors(
    mask: NDArray[np.bool_], centres: NDArray[np.int64]
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Structure tensors of the 4 x 4 tiles of windows of a contour mask.

    Parameters
    ----------
    mask : (h, w) bool array
        Contours; there are none beyond the borders.
    centres : (n, 2) int64 array
        Rows and columns of pixels of the mask.

    Returns
    -------
    descriptors : (n, 48) float32 array
        Tiles row by row, three values each; of unit norm, or zero.
    seen : (n,) bool array
        Which windows have a tile that is not empty.
    """
    gx, gy = sobel(np.pad(mask, 1).astype(np.float32))
    products = np.stack([gx * gx, gx * gy, gy * gy]).astype(np.int64)
    sums = np.pad(products.cumsum(axis=1).cumsum(axis=2), ((0, 0), (1, 0), (1, 0)))
    side = window_side(mask.shape)
    tile = side // N_TILES
    first = centres - side // 2 + 1  # of the mask with its rim
    edges = first[:, :, None] + tile * np.arange(N_TILES + 1)
    rows, columns = (np.clip(edges[:, axis], 0, sums.shape[1 + axis] - 1) for axis in (0, 1))
    corners = sums[:, rows[:, :, None], columns[:, None, :]]
    tensors = np.moveaxis(np.diff(np.diff(corners, axis=2), axis=3), 0, -1)
    tensors = tensors * np.array([1, np.sqrt(2), 1])
    norms = np.linalg.norm(tensors, axis=-1, keepdims=True)
    empty = tensors[..., :1] + tensors[..., 2:] < LEAST_GRADIENT**2 * tile**2
    tensors = np.where(empty, 0, tensors / np.where(empty, 1, norms))
    descriptors = tensors.reshape(len(centres), -1)
    lengths = np.linalg.norm(descriptors, axis=1)
    seen = lengths > 0
    descriptors = descriptors / np.where(seen, lengths, 1)[:, None]
    return descriptors.astype(np.float32), seen
