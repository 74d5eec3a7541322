"""Photographs of drawings on paper: strokes without shadows and ruled lines, or a refusal."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import PictureError
from cppcl.pictures.decoding import Picture, pad_to_square, to_gray
from cppcl.pictures.ruled_lines import without_ruled_lines

WORKING_SIDE = 1024
"""Longest side, in pixels, at which a photograph should be decoded for cleaning."""

PAPER_WINDOW = 1 / 12
"""Side of the window in which some paper is always seen, as a share of the longest side."""

LEAST_LIGHT = 0.15
"""Median brightness below which a photograph is mostly dark, 1 is white."""

LEAST_CONTRAST = 0.12
"""How much darker than the paper around it a stroke must be, as a share of the paper."""

LEAST_COVER, LARGEST_COVER = 0.0005, 0.25
"""Share of the photograph that strokes cover, at least and at most."""

NOISE_FACTOR = 6.0
"""Standard deviations of noise that are no stroke, above the lighter quarter of the paper."""

MARGIN = 0.06
"""White around the strokes, as a share of their longer side."""


def clean_photograph(
    picture: Picture, *, longest_side: int = 256, name: str = "photograph"
) -> Picture:
    """Black strokes on white, from a photograph of a drawing on light paper.

    The light of the paper is estimated by a grey closing, which strokes narrower than its window
    do not survive, and divided out; what stays darker by hysteresis is a stroke. Ruled lines and
    specks are taken away, and the strokes cut out and centred on a square.

    Parameters
    ----------
    picture : (H, W, 3) uint8 array
        The photograph, best decoded at `WORKING_SIDE`.
    longest_side : int
        Side of the result, in pixels.
    name : str
        What error messages call it.

    Returns
    -------
    (longest_side, longest_side, 3) uint8 array

    Raises
    ------
    PictureError
        If it is mostly dark, has no strokes, or nothing but dark areas.

    Notes
    -----
    Areas that are filled over more than a twelfth of the longest side count as shadow. The paper
    should fill the frame: what lies beside it may be taken for strokes.
    """
    darkness = darkness_on_paper(picture, name)
    strokes = _strokes(darkness, name)
    strokes = _without_specks(without_ruled_lines(strokes))
    cover = float(strokes.mean())
    if cover < LEAST_COVER:
        raise PictureError(
            f"{name}: there are no strokes on the paper (they cover {100 * cover:.2f} per cent of "
            "it); draw with a darker pen, or photograph from nearer"
        )
    if cover > LARGEST_COVER:
        raise PictureError(
            f"{name}: {100 * cover:.0f} per cent of it is dark, more than strokes cover; "
            "photograph dark strokes on light paper that fills the frame"
        )
    return _framed(strokes, longest_side)


def darkness_on_paper(picture: Picture, name: str = "photograph") -> NDArray[np.float32]:
    """How much darker each pixel is than the paper around it: 0 paper, 1 black.

    Parameters
    ----------
    picture : (H, W, 3) uint8 array
        The photograph.
    name : str
        What error messages call it.

    Returns
    -------
    (H, W) float32 array in [0, 1]

    Raises
    ------
    PictureError
        If it is mostly dark.
    """
    from scipy.ndimage import gaussian_filter, grey_closing

    gray = gaussian_filter(to_gray(picture), 1.0, mode="nearest")
    light = float(np.median(gray))
    if light < LEAST_LIGHT:
        raise PictureError(
            f"{name}: it is mostly dark (half of it below {100 * light:.0f} per cent of white); "
            "photograph in more light, dark strokes on light paper"
        )
    side = max(3, round(PAPER_WINDOW * max(gray.shape)))
    # The light goes on beyond the border, else a shadow's corner there would be a stroke.
    wide = np.pad(gray, side, mode="edge")
    paper = grey_closing(wide, size=(side, side))[side:-side, side:-side]
    darkness: NDArray[np.float32] = 1 - gray / np.maximum(paper, np.float32(1 / 255))
    return np.clip(darkness, 0, 1)


def _strokes(darkness: NDArray[np.float32], name: str) -> NDArray[np.bool_]:
    """Pixels of strokes: half as dark as the darkest, or a quarter and joined to such ones."""
    from skimage.filters import apply_hysteresis_threshold

    # By its lighter half alone, as strokes may cover much of the other one. Of normal noise the
    # two quantiles are 1.285 standard deviations apart.
    lightest, paper = (float(q) for q in np.quantile(darkness, [0.025, 0.25]))
    noise = (paper - lightest) / 1.285
    # As many pixels as the least of drawings has.
    n_darkest = max(1, round(LEAST_COVER * darkness.size))
    darkest = float(np.partition(darkness, -n_darkest, axis=None)[-n_darkest]) - paper
    if darkest < max(LEAST_CONTRAST, NOISE_FACTOR * noise):
        raise PictureError(
            f"{name}: there are no strokes on the paper (nothing is more than "
            f"{100 * max(darkest, 0):.0f} per cent darker than the paper around it); draw with a "
            "darker pen, or photograph in sharper focus"
        )
    low = paper + max(darkest / 4, NOISE_FACTOR * noise)
    found: NDArray[np.bool_] = apply_hysteresis_threshold(  # type: ignore[no-untyped-call]
        darkness, low, max(low, paper + darkest / 2)
    )
    return found


def _without_specks(strokes: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Remove pieces that are smaller than a hundredth of the longest side."""
    from scipy.ndimage import find_objects, label

    pieces, _ = label(strokes, np.ones((3, 3)))
    least = max(strokes.shape) / 100
    large = [
        max(part.stop - part.start for part in box) >= least for box in find_objects(pieces) if box
    ]
    kept: NDArray[np.bool_] = np.array([False, *large])[pieces]
    return kept


def _framed(strokes: NDArray[np.bool_], side: int) -> Picture:
    """Strokes cut out, with a margin, black on a white square."""
    from PIL import Image

    rows, columns = np.flatnonzero(strokes.any(axis=1)), np.flatnonzero(strokes.any(axis=0))
    box = strokes[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    square = pad_to_square(np.where(box, np.uint8(0), np.uint8(255)))
    square = np.pad(square, round(MARGIN * len(square)) + 1, constant_values=255)
    image = Image.fromarray(square).resize((side, side), Image.Resampling.BOX)
    if len(square) < side:
        image = Image.fromarray(square).resize((side, side), Image.Resampling.BICUBIC)
    return np.repeat(np.asarray(image)[:, :, None], 3, axis=2)
