"""Strokes of a sketch, normalised in place and size."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cppcl.features.base import Picture
from cppcl.pictures.strokes import stroke_mask

STROKE_LEVEL = 1 - 150 / 255
"""Share of a pixel that a stroke must cover to mark it."""


def normalised_strokes(
    picture: Picture, *, size: int = 200, canvas: int = 256, thin: bool = False
) -> NDArray[np.bool_]:
    """Strokes cropped to their bounding box, resized and centred on a square canvas.

    The normalisation of Saavedra and Barrios, "Sketch based Image Retrieval using Learned
    KeyShapes", BMVC 2015; in addition the level that marks a stroke falls with the scale when
    the sketch shrinks, so that no line is lost.

    Parameters
    ----------
    picture : (H, W, 3) uint8 array
        Dark strokes on a light ground.
    size : int
        Longer side of the bounding box on the canvas, pixels.
    canvas : int
        Side of the canvas, pixels.
    thin : bool
        True if strokes are thinned to lines of one pixel.

    Returns
    -------
    (canvas, canvas) bool array
        Empty where the picture has no strokes.
    """
    placed = np.zeros((canvas, canvas), dtype=np.bool_)
    mask = stroke_mask(picture)
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    if not len(rows):
        return placed
    box = mask[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    scale = size / max(box.shape)
    height, width = (max(1, round(side * scale)) for side in box.shape)

    from PIL import Image

    image = Image.fromarray(box.astype(np.float32))
    cover = np.asarray(image.resize((width, height), Image.Resampling.BILINEAR))
    resized = cover >= STROKE_LEVEL * min(1.0, scale)
    top, left = (canvas - height) // 2, (canvas - width) // 2
    placed[top : top + height, left : left + width] = resized
    if thin:
        from skimage.morphology import skeletonize

        placed = skeletonize(placed)  # type: ignore[no-untyped-call]
    return placed
