"""Contours of a picture: the strokes of a sketch, or the edges of a photograph."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import InputError
from cppcl.features.base import Picture
from cppcl.features.contours.strokes import STROKE_LEVEL, normalised_strokes
from cppcl.pictures.decoding import to_gray
from cppcl.pictures.strokes import stroke_mask
from cppcl.validation import check_number, suggestion

CONTOURS = ("strokes", "canny", "colour_canny")
"""What finds contours without a network."""

LONGEST_SIDE = 200
CANNY_LENGTHS = range(19, 0, -2)
"""Lengths of the Gaussians of `adaptive_canny`, pixels, from coarse to fine."""
CANNY_SHARE = 0.02
"""Share of edge pixels with which `adaptive_canny` stops."""
CANNY_QUANTILES = (0.90, 0.95)
COLOUR_SIGMA = 1 / 180
"""Of the Gaussian of `colour_canny`, as a share of the longer side; at least a pixel."""
MARGIN = 0.03
"""Margin that `colour_canny` puts around a picture, as a share of its longer side."""
PLAIN_BORDER = 0.5
"""Share of a picture's border from which on, where it is of one colour, the margin has it."""
SAME_COLOUR = 8
"""Difference of a channel, of 255, up to which colours count as one."""
SMALLEST_GRADIENT = 1e-3
"""Sobel response below which nothing is an edge: less than a step of one grey level gives."""


def contour_mask(
    picture: Picture,
    *,
    contours: str = "strokes",
    longest_side: int = LONGEST_SIDE,
    threshold: float = 0.5,
    crop: bool = True,
) -> NDArray[np.bool_]:
    """Contours of a picture, resized to a longest side.

    Parameters
    ----------
    picture : (H, W, 3) uint8 array
        A sketch or a photograph.
    contours : str
        'strokes': the dark pixels of a sketch, by Otsu's threshold. 'canny': `adaptive_canny` of
        the whole frame. 'colour_canny': `colour_canny`. Else the path of a network, see
        `cppcl.features.contours.network`.
    longest_side : int
        Longer side of the mask, pixels; smaller pictures are enlarged.
    threshold : float
        Value of the network's map from which on a pixel is a contour; else unused.
    crop : bool
        True if a sketch is cropped to the bounding box of its strokes first; photographs always
        keep their frame.

    Returns
    -------
    (h, w) bool array
        Without any mark where nothing stands out, as in a picture of one grey value.
    """
    if contours == "strokes":
        return _strokes(picture, longest_side, crop)
    resized = resize_longest_side(picture, longest_side)
    if contours == "canny":
        return adaptive_canny(to_gray(resized))
    if contours == "colour_canny":
        return colour_canny(resized)
    from cppcl.features.contours.network import contour_map

    mask: NDArray[np.bool_] = contour_map(resized, Path(contours)) >= threshold
    return mask


def contours_on_canvas(
    picture: Picture,
    *,
    contours: str = "strokes",
    size: int = LONGEST_SIDE,
    canvas: int = 256,
    threshold: float = 0.5,
    thin: bool = False,
) -> NDArray[np.bool_]:
    """Contours of a picture, centred on a square canvas.

    A sketch is cropped to its strokes, so that its place and size do not matter
    (`cppcl.features.contours.strokes.normalised_strokes`); a photograph keeps its frame.

    Parameters
    ----------
    picture : (H, W, 3) uint8 array
        A sketch or a photograph.
    contours, threshold
        As in `contour_mask`.
    size : int
        Longer side of the strokes' bounding box, or of the photograph, on the canvas, pixels.
    canvas : int
        Side of the canvas, pixels.
    thin : bool
        True if contours are thinned to lines of one pixel.

    Returns
    -------
    (canvas, canvas) bool array
    """
    if contours == "strokes":
        return normalised_strokes(picture, size=size, canvas=canvas, thin=thin)
    mask = contour_mask(picture, contours=contours, longest_side=size, threshold=threshold)
    placed = centred(mask, canvas)
    if thin:
        from skimage.morphology import skeletonize

        placed = skeletonize(placed)  # type: ignore[no-untyped-call]
    return placed


def centred(mask: NDArray[np.bool_], canvas: int) -> NDArray[np.bool_]:
    """Place a mask in the middle of an empty square canvas that holds it."""
    placed = np.zeros((canvas, canvas), dtype=np.bool_)
    height, width = mask.shape
    top, left = (canvas - height) // 2, (canvas - width) // 2
    placed[top : top + height, left : left + width] = mask
    return placed


def adaptive_canny(gray: NDArray[np.floating]) -> NDArray[np.bool_]:
    """Edges by Canny's detector at the coarsest scale that leaves enough of them.

    Gaussians of lengths 19, 17, ..., 1 pixels (sigma = 0.3 (length / 2 - 1) + 0.8) are tried
    until more than 2 % of the pixels are edges, after Hu and Collomosse, "A performance
    evaluation of gradient field HOG descriptor for sketch based image retrieval", CVIU 2013. Our
    reconstruction: the thresholds of Canny's hysteresis are the 90 % and 95 % quantiles of the
    gradient's magnitude, and a gradient weaker than a step of one grey level is none.

    Parameters
    ----------
    gray : (h, w) array
        Grey values in [0, 1].

    Returns
    -------
    (h, w) bool array
        Edges at the finest scale where no scale leaves enough.
    """
    values = gray.astype(np.float64)
    edges = np.zeros(gray.shape, dtype=np.bool_)
    for length in CANNY_LENGTHS:
        edges, _ = canny_edges(values, 0.3 * (length / 2 - 1) + 0.8)
        if edges.mean() > CANNY_SHARE:
            break
    return edges


def colour_canny(picture: Picture) -> NDArray[np.bool_]:
    """Edges of each colour channel by Canny's detector at one scale, together.

    Flat colours of the same lightness have no edge in grey values. The picture is reduced by a
    margin first, so that what reaches its border has an edge there: the margin has the colour of
    the border where most of it is of one colour, and else repeats it, which leaves no edge.

    Parameters
    ----------
    picture : (h, w, 3) uint8 array
        Any picture.

    Returns
    -------
    (h, w) bool array
    """
    from PIL import Image

    longest = max(picture.shape[:2])
    margin = max(1, round(MARGIN * longest))
    height, width = (max(1, length - 2 * margin) for length in picture.shape[:2])
    image = Image.fromarray(np.ascontiguousarray(picture))
    inner = np.asarray(image.resize((width, height), Image.Resampling.BILINEAR))
    border = np.concatenate([inner[0], inner[-1], inner[:, 0], inner[:, -1]]).astype(np.int64)
    colour = np.median(border, axis=0)
    is_plain = (np.abs(border - colour) <= SAME_COLOUR).all(axis=1).mean() >= PLAIN_BORDER
    around = [
        (margin, total - margin - length)
        for total, length in zip(picture.shape[:2], (height, width), strict=True)
    ]
    edges = np.zeros(picture.shape[:2], dtype=np.bool_)
    if any(after < 0 for _, after in around):  # a line, in which nothing can be seen
        return edges
    sigma = max(1.0, COLOUR_SIGMA * longest)
    for channel in range(3):
        values = inner[..., channel] / 255
        framed = (
            np.pad(values, around, constant_values=colour[channel] / 255)
            if is_plain
            else np.pad(values, around, mode="edge")
        )
        edges |= canny_edges(framed, sigma)[0]
    return edges


def canny_edges(
    gray: NDArray[np.float64], sigma: float
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Edges by Canny's detector at one scale, and the gradient's magnitude, both (h, w).

    Parameters
    ----------
    gray : (h, w) float64 array
        Grey values in [0, 1].
    sigma : float
        Of the Gaussian, pixels.
    """
    from scipy import ndimage
    from skimage.feature import canny

    smooth = ndimage.gaussian_filter(gray, sigma, mode="nearest")
    gradient = np.hypot(ndimage.sobel(smooth, axis=0), ndimage.sobel(smooth, axis=1))
    low, high = np.maximum(np.quantile(gradient, CANNY_QUANTILES), SMALLEST_GRADIENT)
    edges: NDArray[np.bool_] = canny(  # type: ignore[no-untyped-call]
        smooth, sigma=0, low_threshold=low, high_threshold=high
    )
    return edges, gradient


def resize_longest_side(picture: Picture, longest_side: int) -> Picture:
    """Resize a picture to a longest side in pixels, with antialiasing."""
    from PIL import Image

    size = _size(picture.shape, longest_side / max(picture.shape[:2]))
    image = Image.fromarray(np.ascontiguousarray(picture))
    return np.asarray(image.resize(size, Image.Resampling.BILINEAR))


def _strokes(picture: Picture, longest_side: int, crop: bool) -> NDArray[np.bool_]:
    if crop:
        placed = normalised_strokes(picture, size=longest_side, canvas=longest_side)
        rows, columns = np.flatnonzero(placed.any(axis=1)), np.flatnonzero(placed.any(axis=0))
        if len(rows):
            return placed[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    from PIL import Image

    mask = stroke_mask(picture)
    scale = longest_side / max(mask.shape)
    image = Image.fromarray(mask.astype(np.float32))
    cover = np.asarray(image.resize(_size(mask.shape, scale), Image.Resampling.BILINEAR))
    strokes: NDArray[np.bool_] = cover >= STROKE_LEVEL * min(1.0, scale)
    return strokes


def _size(shape: tuple[int, ...], scale: float) -> tuple[int, int]:
    """Width and height of what is scaled, each at least a pixel."""
    return max(1, round(shape[1] * scale)), max(1, round(shape[0] * scale))


@dataclass(frozen=True, kw_only=True)
class ContourOptions:
    """Options of the extractors that describe contours.

    Parameters
    ----------
    contours : str
        What is described: 'strokes', the dark pixels of a sketch, cropped to their bounding box;
        'canny', the edges of a photograph at the coarsest scale that leaves more than 2 % of its
        pixels; 'colour_canny', the edges of its colours; or the path of a network that maps a
        picture to contours, a TorchScript file (.pt) or an ONNX file (.onnx). What takes part in
        `parameters` is the content of the file, not where it lies.
    threshold : float
        Value of the network's map, in (0, 1], from which on a pixel is a contour.
    """

    sources: ClassVar[tuple[str, ...]] = CONTOURS
    """Values of `contours` that name no file."""

    contours: str = "strokes"
    threshold: float = 0.5

    def __post_init__(self) -> None:
        check_contours(self.contours, self.sources)
        check_number("option threshold", self.threshold, above=0)
        if self.threshold > 1:
            raise InputError(f"option threshold={self.threshold} must be at most 1")

    def parameters(self) -> dict[str, Any]:
        """Every option with its value; a network is named by its content."""
        options: dict[str, Any] = super().parameters()  # type: ignore[misc]
        if self.contours not in self.sources:
            from cppcl.features.contours.network import network_identity

            options["contours"] = network_identity(Path(self.contours))
        return options

    def on_canvas(self, picture: Picture, *, thin: bool = False) -> NDArray[np.bool_]:
        """Contours of a picture on a canvas, (256, 256) bool; see `contours_on_canvas`."""
        return contours_on_canvas(
            picture, contours=self.contours, threshold=self.threshold, thin=thin
        )


def check_contours(value: Any, choices: tuple[str, ...]) -> None:
    """Raise `InputError` unless `value` is one of `choices` or names a network's file."""
    if isinstance(value, str) and (value in choices or value.endswith((".pt", ".onnx"))):
        return
    raise InputError(
        f"option contours={value!r}{suggestion(str(value), choices)}; a network is the path of a "
        "TorchScript file that ends in .pt, or of an ONNX file that ends in .onnx"
    )
