"""Gradient field HOG (GF-HOG): orientations of contours, spread over the picture, as words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from cppcl.features.base import Picture
from cppcl.features.descriptors.bag_of_words.laplace import harmonic
from cppcl.features.descriptors.bag_of_words.visual_words import Local, VisualWords
from cppcl.features.layers import Layer, Seen
from cppcl.validation import check_choice

MARGIN = 0.05
"""Blank margin on each side, as a share of the height and of the width."""
N_BINS = 9
N_CELLS = 3
"""Cells along each side of a window."""
CELL_SIDES = (5, 10, 15)
"""Sides of a cell, pixels: windows of 15, 30 and 45."""
FIELDS = ("laplace", "nearest")


@dataclass(frozen=True, kw_only=True)
class GfHog(VisualWords):
    r"""Words of GF-HOG: HOG, around contour pixels, of the field that contours set up.

    Contours, brought to a longest side of 200 pixels, get a blank margin of 5 % on each side.
    They are dilated by 3 x 3 pixels, and Sobel gives the gradient (dx, dy) of the dilated mask,
    which is kept inside it; elsewhere both of its parts solve the Laplace equation

    .. math:: \nabla^2 dx = \nabla^2 dy = 0

    with natural borders (`cppcl.features.descriptors.bag_of_words.laplace`). The field is
    :math:`g = (\cos\operatorname{atan2}(dy, dx) + 1) / 2`. At every contour pixel, windows of
    3 x 3 cells of 5, 10 and 15 pixels have a histogram of the gradient of g in each cell, in the
    bin :math:`\operatorname{round}(8 (\phi + \pi) / 2\pi)` of its direction :math:`\phi`, by
    magnitude: 81 values, divided by their Euclidean norm. Windows that cross the border count for
    nothing. Dimension: `n_words`, times 21 with the pyramid.

    Hu and Collomosse, "A performance evaluation of gradient field HOG descriptor for sketch based
    image retrieval", CVIU 2013. Ours are that sketches are cropped to their strokes first, that
    the dilated mask keeps its gradient, since that of a line is zero along its middle, where g is
    1, and central differences for the gradient of g.

    Parameters
    ----------
    field : {'laplace', 'nearest'}
        How orientations spread: by the Laplace equation, or, an approximation in less time, each
        pixel takes the gradient of the nearest one in the dilated mask.
    """

    name: ClassVar[str] = "gf_hog"
    version: ClassVar[int] = 1
    device: ClassVar[Literal["cpu", "gpu"]] = "cpu"
    length: ClassVar[int] = N_CELLS * N_CELLS * N_BINS

    n_words: int = 3500
    field: Literal["laplace", "nearest"] = "laplace"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("option field", self.field, FIELDS)

    def local_descriptors(self, picture: Picture) -> Local:
        """Descriptors of all windows, (n, 81) float32, and their contour pixels."""
        mask = self.contours_of(picture)
        padded, margins = with_margins(mask)
        descriptors, pixels = describe_pixels(gradient_field(padded, self.field), padded)
        return descriptors, (pixels - margins + 0.5) / mask.shape

    def explain_local(self, mask: NDArray[np.bool_]) -> list[Layer]:
        """Show the field that contours set up."""
        return [Seen(f"field ({self.field})", gradient_field(with_margins(mask)[0], self.field))]


def with_margins(mask: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Mask with a blank margin, and the margin above and left, pixels."""
    margins = np.rint(MARGIN * np.array(mask.shape)).astype(np.int64)
    return np.pad(mask, [(margin, margin) for margin in margins]), margins


def gradient_field(mask: NDArray[np.bool_], spread: str) -> NDArray[np.float64]:
    """Scalar field g of a contour mask, (h, w) float64 in [0, 1].

    Parameters
    ----------
    mask : (h, w) bool array
        Contours.
    spread : {'laplace', 'nearest'}
        How orientations spread from contours.

    Returns
    -------
    (h, w) float64 array
        1 everywhere where nothing is marked.
    """
    from scipy import ndimage

    dilated = ndimage.binary_dilation(mask, np.ones((3, 3)))
    # Edges replicated: a contour that touches the border does not end there.
    image = dilated.astype(np.float64)
    gradient = np.stack([ndimage.sobel(image, axis=axis, mode="nearest") for axis in (0, 1)])
    if not mask.any():
        return np.ones(mask.shape)
    if spread == "laplace":
        gradient = harmonic(dilated, gradient)
    else:
        _, nearest = ndimage.distance_transform_edt(~dilated, return_indices=True)
        gradient = gradient[:, *nearest]
    dy, dx = gradient
    field: NDArray[np.float64] = (np.cos(np.arctan2(dy, dx)) + 1) / 2
    return field


def describe_pixels(
    field: NDArray[np.float64], mask: NDArray[np.bool_]
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """HOG of a field in windows around the marked pixels.

    Parameters
    ----------
    field : (h, w) float64 array
        What is described.
    mask : (h, w) bool array
        Pixels on which windows are centred; at a size of 2 k cells, or pixels, on their last one
        before the middle.

    Returns
    -------
    descriptors : (n, 81) float32 array
        Cells row by row, the bins of a cell together; of unit norm. Windows outside the picture,
        or in which the field is constant (to a norm of 1e-3), are left out.
    pixels : (n, 2) int64 array
        Row and column of each, those of the smallest windows first.
    """
    from cppcl.features.descriptors.bag_of_words.local_kernels import (
        cell_histograms,
        oriented_sums,
    )

    padded = np.pad(field, 1, mode="edge")
    dy = (padded[2:, 1:-1] - padded[:-2, 1:-1]) / 2
    dx = (padded[1:-1, 2:] - padded[1:-1, :-2]) / 2
    turns = (np.arctan2(dy, dx) + np.pi) / (2 * np.pi)
    bins = np.rint((N_BINS - 1) * turns).astype(np.int64)
    sums = np.zeros((mask.shape[0] + 1, mask.shape[1] + 1, N_BINS))
    oriented_sums(np.hypot(dx, dy), bins, sums)
    marked = np.argwhere(mask)
    found, pixels = [], []
    for side in CELL_SIDES:
        first = marked - N_CELLS * side // 2
        inside = ((first >= 0) & (first + N_CELLS * side <= mask.shape)).all(axis=1)
        descriptors = np.empty((np.count_nonzero(inside), N_CELLS**2 * N_BINS))
        cell_histograms(sums, first[inside, 0], first[inside, 1], side, N_CELLS, descriptors)
        seen = descriptors.any(axis=1)
        found.append(descriptors[seen].astype(np.float32))
        pixels.append(marked[inside][seen])
    return np.concatenate(found), np.concatenate(pixels)
