"""What networks see of a picture: its lines on a square, or its colours."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cppcl.features.base import Picture
from cppcl.features.contours.detection import contour_mask
from cppcl.pictures.decoding import pad_to_square, to_gray

SeenAs = Literal["strokes", "edges", "colours"]
"""Lines of a sketch, lines of a photograph, or the photograph itself."""
EXTENT = 0.9
"""Share of the square that the longer side of the lines' bounding box takes."""
LEAST_INK = 0.3
"""Darkness from which on a pixel counts as a line where the box is found."""
LINE = 3
"""Width of the lines of an edge map, pixels of the map before it is reduced."""


def seen_by_network(
    picture: Picture, kind: SeenAs, side: int, *, contours: str, threshold: float
) -> NDArray[np.uint8]:
    """Bring a picture to a network's input.

    Lines are cropped to their bounding box and centred, so that a drawing and the edges of a
    picture are as large and in the same place.

    Parameters
    ----------
    picture : (H, W, 3) uint8 array
        A sketch or a photograph.
    kind : {'strokes', 'edges', 'colours'}
        'strokes' is the darkness of a sketch, 'edges' the contours of a photograph, 'colours' the
        photograph on white.
    side : int
        Of the square, pixels.
    contours, threshold
        What finds the contours of a photograph; see `contour_mask`.

    Returns
    -------
    (c, side, side) uint8 array
        One channel of lines, 255 on a line and 0 on the ground; or three of colours, turned over,
        so that white is 0.
    """
    if kind == "colours":
        return 255 - _resized(pad_to_square(picture), side).transpose(2, 0, 1)
    if kind == "strokes":
        lines = 1 - to_gray(picture)
    else:
        mask = contour_mask(
            picture, contours=contours, longest_side=4 * side // 3, threshold=threshold
        )
        lines = _wider(mask)
    return _fitted(lines.astype(np.float32), side)[None]


def _wider(mask: NDArray[np.bool_]) -> NDArray[np.float32]:
    from scipy.ndimage import maximum_filter

    wider: NDArray[np.float32] = maximum_filter(mask.astype(np.float32), size=LINE)
    return wider


def _fitted(lines: NDArray[np.float32], side: int) -> NDArray[np.uint8]:
    """Lines cropped to their box, resized and centred, (side, side) uint8."""
    from PIL import Image

    placed = np.zeros((side, side), dtype=np.uint8)
    mask = lines >= LEAST_INK
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    if not len(rows):
        return placed
    box = lines[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    scale = EXTENT * side / max(box.shape)
    height, width = (max(1, round(length * scale)) for length in box.shape)
    resized = Image.fromarray(box).resize((width, height), Image.Resampling.BILINEAR)
    top, left = (side - height) // 2, (side - width) // 2
    placed[top : top + height, left : left + width] = np.rint(
        255 * np.clip(np.asarray(resized), 0, 1)
    )
    return placed


def _resized(picture: Picture, side: int) -> Picture:
    from PIL import Image

    image = Image.fromarray(np.ascontiguousarray(picture))
    return np.asarray(image.resize((side, side), Image.Resampling.BILINEAR))
