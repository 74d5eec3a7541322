"""Histograms of the orientations of edges in local cells: HELO and SHELO."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import InputError
from cppcl.features.base import MIB, Picture
from cppcl.features.contours.detection import ContourOptions
from cppcl.features.descriptors.grids import cell_of, nearest_bins, nearest_cells
from cppcl.features.layers import Layer, Numbers, Seen
from cppcl.features.stateless import StatelessExtractor, rows_of
from cppcl.validation import check_choice, check_flag, check_number

Floats = NDArray[np.floating]


@dataclass(frozen=True, kw_only=True)
class Helo(ContourOptions, StatelessExtractor):
    r"""Histogram of edge local orientations (HELO): 72 values of the whole picture.

    Contours are brought to 200 pixels on a canvas of 256, which a grid divides into W x W cells.
    With the Sobel gradient (gx, gy) of the contour mask, the edge in a cell runs at the angle

    .. math:: \alpha = \tfrac12 \operatorname{atan2}\bigl(\textstyle\sum 2 g_x g_y,
              \sum (g_x^2 - g_y^2)\bigr) + \tfrac{\pi}{2} \pmod \pi

    over its pixels. Cells with no more marked pixels than half their side are left out; every
    other one counts once in a histogram of K angles.

    Saavedra and Bustos, "An improved histogram of edge local orientations for sketch-based image
    retrieval", DAGM 2010. Ours is the smoothing of the histogram by (1, 2, 1) / 4 around the
    circle, and that it sums to 1; without any cell it is 0.

    Parameters
    ----------
    cells : int
        Cells W along each side.
    bins : int
        Bins K of the histogram over angles from 0 to 180 degrees.
    smooth_cells : bool
        True if both sums are smoothed over 3 x 3 cells by a Gaussian of sigma 0.5 first.
    """

    name: ClassVar[str] = "helo"
    version: ClassVar[int] = 1
    device: ClassVar[Literal["cpu", "gpu"]] = "cpu"
    libraries: ClassVar[int] = 64 * MIB

    cells: int = 25
    bins: int = 72
    smooth_cells: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("option cells", self.cells, least=1, whole=True)
        check_number("option bins", self.bins, least=1, whole=True)
        check_flag("option smooth_cells", self.smooth_cells)

    @property
    def dimension(self) -> int:
        """Bins: 72 by default."""
        return self.bins

    def transform(self, pictures: Sequence[Picture]) -> NDArray[np.float32]:
        """Descriptors of n pictures, (n, dimension) float32."""
        return rows_of(pictures, self.dimension, self._describe)

    def explain(self, picture: Picture) -> list[Layer]:
        """Show the contours, with the edge in every cell that counts."""
        mask = self.on_canvas(picture)
        angles, kept = self._cells(mask.astype(np.float32))
        title = f"edges in cells, {self.cells} x {self.cells}"
        return [Seen(title, mask, angles=angles[..., None], lengths=kept[..., None])]

    def _cells(self, mask: NDArray[np.float32]) -> tuple[Floats, NDArray[np.bool_]]:
        """Angle of the edge in each cell, and which cells count."""
        gx, gy = sobel(mask)
        cells = cell_of(len(mask), self.cells)
        angles = cell_angles(
            cells @ (2 * gx * gy) @ cells.T,
            cells @ (gx * gx - gy * gy) @ cells.T,
            self.smooth_cells,
        )
        return angles, cells @ mask @ cells.T > len(mask) / self.cells / 2

    def _describe(self, picture: Picture) -> Floats:
        angles, kept = self._cells(self.on_canvas(picture).astype(np.float32))
        bins = np.minimum((angles[kept] / np.pi * self.bins).astype(np.int64), self.bins - 1)
        counts = np.bincount(bins, minlength=self.bins)
        histogram: Floats = (np.roll(counts, 1) + 2 * counts + np.roll(counts, -1)) / 4
        return histogram / max(len(bins), 1)


@dataclass(frozen=True, kw_only=True)
class Shelo(ContourOptions, StatelessExtractor):
    r"""Soft histograms of edge local orientations in blocks (SHELO): 1296 values.

    Contours are brought to 200 pixels on a canvas of 256. Every pixel of gradient magnitude m and
    angle a (Sobel, of the contour mask) adds :math:`m \sin 2a` and :math:`m \cos 2a` to the sums s
    and c of its four nearest cells of a W x W grid, and m to their magnitude M, shared by bilinear
    weights. The edge in a cell runs at :math:`\alpha = \tfrac12 \operatorname{atan2}(s, c) +
    \tfrac{\pi}{2} \pmod \pi`. Cells with M of no more than a tenth of the largest one are left
    out; every other votes, by M over the largest M, for its four nearest blocks of a B x B grid
    and its two nearest of K bins of orientation, bilinearly. Dimension :math:`K B^2`, 1296 for
    6 x 6 blocks of 36 bins. A picture without contours gives zeros.

    Saavedra, "Sketch based image retrieval using a soft computation of the histogram of edge local
    orientations (S-HELO)", ICIP 2014, and "RST-SHELO", Multimedia Tools and Applications 2015,
    whose normalisation is the default. Our reconstruction: that M is relative to its largest
    value, and the products of weights in votes.

    Parameters
    ----------
    cells : int
        Cells W along each side.
    bins : int
        Bins K of a histogram over angles from 0 to 180 degrees.
    blocks : int
        Blocks B along each side.
    least_magnitude : float
        Share of the largest magnitude that a cell must exceed.
    vote : {'product', 'sum'}
        A vote is the product of magnitude, block weight and bin weight ('product'), or the
        product of the first two plus the bin weight, as in the authors' software ('sum').
    root : bool
        True if square roots are taken of each block before its normalisation to unit Euclidean
        norm and again after it, or neither.
    smooth_cells : bool
        True if s and c are smoothed over 3 x 3 cells by a Gaussian of sigma 0.5 first.
    """

    name: ClassVar[str] = "shelo"
    version: ClassVar[int] = 1
    device: ClassVar[Literal["cpu", "gpu"]] = "cpu"

    cells: int = 25
    bins: int = 36
    blocks: int = 6
    least_magnitude: float = 0.1
    vote: Literal["product", "sum"] = "product"
    root: bool = True
    smooth_cells: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for option in ("cells", "bins", "blocks"):
            check_number(f"option {option}", getattr(self, option), least=1, whole=True)
        check_number("option least_magnitude", self.least_magnitude, least=0)
        if self.least_magnitude >= 1:
            raise InputError(f"option least_magnitude={self.least_magnitude} must be below 1")
        check_choice("option vote", self.vote, ("product", "sum"))
        check_flag("option root", self.root)
        check_flag("option smooth_cells", self.smooth_cells)

    @property
    def dimension(self) -> int:
        """Bins times blocks: 1296 by default."""
        return self.bins * self.blocks**2

    def transform(self, pictures: Sequence[Picture]) -> NDArray[np.float32]:
        """Descriptors of n pictures, (n, dimension) float32."""
        return rows_of(pictures, self.dimension, self._describe)

    def explain(self, picture: Picture) -> list[Layer]:
        """Show the contours with the edge in every cell that votes, and histograms of blocks."""
        mask = self.on_canvas(picture)
        angles, strength = self._cells(mask.astype(np.float32))
        voting = np.where(strength > self.least_magnitude * strength.max(), strength, 0)
        histograms = self._describe(picture).reshape(self.blocks, self.blocks, self.bins)
        lines = np.pi * (np.arange(self.bins) + 0.5) / self.bins
        return [
            Seen(
                f"edges in cells, {self.cells} x {self.cells}",
                mask,
                angles=angles[..., None],
                lengths=voting[..., None],
            ),
            Seen(
                f"orientations in blocks, {self.blocks} x {self.blocks}",
                mask,
                grid=self.blocks,
                angles=np.broadcast_to(lines, histograms.shape),
                lengths=histograms,
            ),
            Numbers("vector", histograms.reshape(-1, self.bins), "block", "bin of orientation"),
        ]

    def _cells(self, mask: NDArray[np.float32]) -> tuple[Floats, Floats]:
        """Angle of the edge in each cell, and the magnitude of gradients there."""
        gx, gy = sobel(mask)
        magnitude = np.hypot(gx, gy)
        divisor = np.maximum(magnitude, np.float32(1e-6))
        shares, touched = nearest_cells(len(gx), self.cells)
        angles = cell_angles(
            touched @ (2 * gx * gy / divisor) @ touched.T,
            touched @ ((gx * gx - gy * gy) / divisor) @ touched.T,
            self.smooth_cells,
        )
        return angles, shares @ magnitude @ shares.T

    def _describe(self, picture: Picture) -> Floats:
        angles, strength = self._cells(self.on_canvas(picture).astype(np.float32))
        largest = strength.max()
        if largest <= 0:
            return np.zeros(self.dimension, dtype=np.float32)
        histograms = self._votes(angles, strength / largest)
        if self.root:
            histograms = np.sqrt(histograms)
        norms = np.linalg.norm(histograms, axis=2, keepdims=True)
        histograms = histograms / np.where(norms > 0, norms, 1)
        return (np.sqrt(histograms) if self.root else histograms).ravel()

    def _votes(self, angles: Floats, strength: Floats) -> Floats:
        """Histograms of blocks, (blocks, blocks, bins), of cells of angles and strengths."""
        rows, columns = np.nonzero(strength > self.least_magnitude)
        kept = strength[rows, columns]
        first, share = nearest_bins(angles[rows, columns], self.bins)
        shares, touched = nearest_cells(self.cells, self.blocks)
        histograms = np.zeros((self.blocks, self.blocks, self.bins))
        for bins, weight in ((first, 1 - share), ((first + 1) % self.bins, share)):
            if self.vote == "product":
                histograms += _spread(shares, (rows, columns, bins), kept * weight, self.bins)
            else:
                histograms += _spread(shares, (rows, columns, bins), kept, self.bins)
                histograms += _spread(touched, (rows, columns, bins), weight, self.bins)
        return histograms


def _spread(
    weights: Floats, places: tuple[NDArray[np.int64], ...], votes: Floats, n_bins: int
) -> Floats:
    """Sum the votes of cells (row, column, bin) into blocks, by weights (blocks, cells)."""
    n_blocks, n_cells = weights.shape
    of_cells = np.zeros((n_cells, n_cells, n_bins), dtype=np.float32)
    of_cells[places] = votes
    across = (weights @ of_cells.reshape(n_cells, -1)).reshape(n_blocks, n_cells, n_bins)
    return weights @ across


def sobel(gray: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Gradient by Sobel's filters, to the right and downwards; borders are repeated."""
    from scipy import ndimage

    return ndimage.sobel(gray, axis=1, mode="nearest"), ndimage.sobel(gray, axis=0, mode="nearest")


def cell_angles(s: Floats, c: Floats, smooth: bool) -> Floats:
    """Directions of the edges, in [0, pi), from the sums of doubled angles of gradients."""
    if smooth:
        from scipy import ndimage

        s, c = (ndimage.gaussian_filter(grid, 0.5, radius=1, mode="nearest") for grid in (s, c))
    angles: Floats = np.mod((np.arctan2(s, c) + np.pi) / 2, np.pi)
    return angles
