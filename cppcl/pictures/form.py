"""Drawings brought to one form: as large, in the same place, and with lines as wide."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cppcl.pictures.decoding import Picture
from cppcl.pictures.strokes import ink_box, line_width, luma, stroke_mask, width_of

FLAT_SHARE = 0.9
"""Share of the ground of a line drawing that is even, at least."""
EVEN = 0.15
"""Difference from the median of the ground up to which it is even, of that between it and ink."""
LARGEST_COVER = 0.5
"""Share of a picture that the strokes of a line drawing cover, at most."""
LARGEST_THINNING = 8.0
"""Times by which lines of a drawing that is enlarged are made narrower, at most."""
FINENESS = 2
"""Rows of pixels in which one of the result is drawn."""


@dataclass(frozen=True)
class Form:
    """How sketches look: medians over them.

    Attributes
    ----------
    width, height : int
        Of the pictures as features are computed from, pixels.
    line : float
        Width of strokes, as a share of the longer side of a picture.
    extent : float
        How much of the picture the box around the strokes takes: the larger of its share of the
        width and of the height.
    centre : (float, float)
        Of that box, as shares of width and height.
    """

    width: int = 256
    height: int = 256
    line: float = 0.02
    extent: float = 0.8
    centre: tuple[float, float] = (0.5, 0.5)


def form_of(sketches: Iterable[Picture]) -> Form:
    """Measure sketches, but for those of one colour; with no others the defaults of `Form`.

    Parameters
    ----------
    sketches : iterable of (H, W, 3) uint8
        Dark strokes on a light ground.
    """
    measured = []
    for sketch in sketches:
        mask = stroke_mask(sketch)
        if not mask.any():
            continue
        height, width = mask.shape
        left, top, right, bottom = ink_box(mask)
        measured.append(
            (
                width,
                height,
                line_width(_enlarged(luma(sketch))) / (FINENESS * max(width, height)),
                max((right - left) / width, (bottom - top) / height),
                (left + right) / (2 * width),
                (top + bottom) / (2 * height),
            )
        )
    if not measured:
        return Form()
    width, height, line, extent, x, y = np.median(measured, axis=0).tolist()
    return Form(round(width), round(height), line, extent, (x, y))


def in_form(picture: Picture, form: Form) -> Picture:
    """Bring a line drawing to a form, black on white.

    Its strokes are cut out, enlarged or reduced, and moved; then their outlines are shifted until
    half of the strokes are as wide as the form says or wider. Where that makes lines narrower,
    their middle lines stay, and areas that are filled remain filled.

    Parameters
    ----------
    picture : (H, W, 3) uint8
        Light strokes on a dark ground are turned over.
    form : Form
        Of other drawings.

    Returns
    -------
    (height, width, 3) uint8
        The picture itself where it has no strokes, is no line drawing (`is_line_drawing`), or has
        that form to a pixel.
    """
    gray = luma(picture)
    if _ground(gray) < 128:
        gray = 255 - gray
    if not is_line_drawing(gray):
        return picture
    left, top, right, bottom = ink_box(stroke_mask(gray))
    # With a little of the ground on every side.
    cut = np.pad(gray, 1, constant_values=gray.max())[top : bottom + 2, left : right + 2]
    width = line_width(_enlarged(cut)) / FINENESS
    line = form.line * max(form.width, form.height)
    sides = np.array([right - left, bottom - top])
    size = np.array([form.width, form.height])
    middle_lines = np.maximum(sides - width, 1e-9)
    scale = min(
        float(np.min((form.extent * size - line) / middle_lines)),
        LARGEST_THINNING * line / width,
    )
    centre = np.array(form.centre) * size
    if gray.shape == (form.height, form.width):
        moved = np.abs(np.array([left + right, top + bottom]) / 2 - centre).max()
        grown = np.abs(scale - 1) * sides.max()
        if max(moved, grown, abs(width - line)) <= 1:
            return picture
    return _drawn(cut, scale, centre, line, size)


def is_line_drawing(gray: NDArray[np.uint8]) -> bool:
    """True for dark strokes on an even ground that is lighter, as photographs seldom are.

    Parameters
    ----------
    gray : (H, W) uint8
        Luma.
    """
    if gray.min() == gray.max():
        return False
    mask = stroke_mask(gray)
    ground = gray[~mask].astype(np.float64)
    if mask.mean() > LARGEST_COVER or not len(ground):
        return False
    level = float(np.median(ground))
    contrast = level - float(np.median(gray[mask]))
    return bool((np.abs(ground - level) <= EVEN * contrast).mean() >= FLAT_SHARE)


def _ground(gray: NDArray[np.uint8]) -> float:
    """Median of the pixels at the border."""
    border = np.concatenate([gray[0], gray[-1], gray[:, 0], gray[:, -1]])
    return float(np.median(border))


def _enlarged(gray: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Strokes of a picture with finer pixels, by which lines are measured more exactly."""
    from PIL import Image

    sides = (FINENESS * gray.shape[1], FINENESS * gray.shape[0])
    fine = Image.fromarray(gray).resize(sides, Image.Resampling.BICUBIC)
    return stroke_mask(np.asarray(fine))


def _drawn(
    cut: NDArray[np.uint8],
    scale: float,
    centre: NDArray[np.float64],
    line: float,
    size: NDArray[np.int64],
) -> Picture:
    """Draw strokes anew, black on white.

    Parameters
    ----------
    cut : (H, W) uint8
        Dark strokes on a light ground, of which a pixel is seen on every side.
    scale : float
        How much larger they are drawn.
    centre : (2,) float64
        Where the middle of it comes, pixels of the result.
    line : float
        Width of lines, pixels of the result.
    size : (2,) int
        Width and height of the result.
    """
    from PIL import Image
    from scipy.ndimage import distance_transform_edt
    from skimage.morphology import skeletonize

    sides = (round(FINENESS * scale * cut.shape[1]), round(FINENESS * scale * cut.shape[0]))
    fine = Image.fromarray(cut).resize(
        (max(3, sides[0]), max(3, sides[1])), Image.Resampling.BICUBIC
    )
    # Around it so much white that lines can grow.
    ink = np.pad(stroke_mask(np.asarray(fine)), 2 + int(np.ceil(FINENESS * line / 2)))
    depth = distance_transform_edt(ink)
    middle = skeletonize(ink)  # type: ignore[no-untyped-call]
    wider = FINENESS * line - width_of(depth[middle])
    # From the outline, which is half a pixel from the middle of the pixels beside it.
    beyond = np.where(ink, 0.5 - depth, distance_transform_edt(~ink) - 0.5) - wider / 2
    if wider < 0:
        beyond = np.minimum(beyond, distance_transform_edt(~middle) - FINENESS * line / 2)
    canvas = np.zeros(FINENESS * size[::-1])
    _put(canvas, np.clip(0.5 - beyond, 0, 1), FINENESS * centre[::-1])
    cover = np.zeros(size[::-1])
    for row, column in np.ndindex(FINENESS, FINENESS):
        cover += canvas[row::FINENESS, column::FINENESS] / FINENESS**2
    return np.repeat(np.rint(255 * (1 - cover)).astype(np.uint8)[:, :, None], 3, axis=2)


def _put(
    canvas: NDArray[np.float64], part: NDArray[np.float64], centre: NDArray[np.float64]
) -> None:
    """Lay a part on a canvas, with its middle where it is told; what reaches beyond is lost."""
    there, here = [], []
    for middle, n, whole in zip(centre, part.shape, canvas.shape, strict=True):
        first = round(middle - n / 2)
        there.append(slice(max(0, first), max(0, min(whole, first + n))))
        here.append(slice(there[-1].start - first, there[-1].stop - first))
    canvas[tuple(there)] = part[tuple(here)]
