"""How the sketches look that a model learned from: what a drawing is to be rendered like."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from cppcl.features.contours.strokes import stroke_mask
from cppcl.pictures.decoding import Picture


@dataclass(frozen=True)
class Look:
    """Medians over sketches.

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


def look_of(sketches: Iterable[Picture]) -> Look:
    """Measure sketches, but for those of one colour; with no others the defaults of `Look`.

    Parameters
    ----------
    sketches : iterable of (H, W, 3) uint8
        Dark strokes on a light ground.
    """
    from scipy.ndimage import distance_transform_edt
    from skimage.morphology import skeletonize

    measured = []
    for sketch in sketches:
        mask = stroke_mask(sketch)
        rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
        if not len(rows):
            continue
        height, width = mask.shape
        # Beyond the edge there is no stroke either.
        padded = np.pad(mask, 1)
        middle = skeletonize(padded)  # type: ignore[no-untyped-call]
        depth = distance_transform_edt(padded)[middle]
        top, bottom = rows[0] / height, (rows[-1] + 1) / height
        left, right = columns[0] / width, (columns[-1] + 1) / width
        measured.append(
            (
                width,
                height,
                # The middle pixel of a stroke of w pixels lies w / 2 from the ground where w is
                # even and (w + 1) / 2 where it is odd: this is off by half a pixel.
                (2 * np.median(depth) - 0.5) / max(width, height),
                max(bottom - top, right - left),
                (left + right) / 2,
                (top + bottom) / 2,
            )
        )
    if not measured:
        return Look()
    width, height, line, extent, x, y = np.median(measured, axis=0).tolist()
    return Look(round(width), round(height), line, extent, (x, y))
