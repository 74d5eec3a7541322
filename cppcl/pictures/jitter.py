"""Line drawings as other hands would draw them: moved, smaller, with other lines, unfinished."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cppcl.pictures.decoding import Picture
from cppcl.pictures.form import Form, in_form
from cppcl.pictures.strokes import stroke_mask

SMALLEST = 0.6
"""Least size, of the form's."""
THINNEST, THICKEST = 0.5, 3.0
"""Widths of lines, of the form's."""
MOST_MISSING = 0.3
"""Largest share of the strokes that is not drawn."""
ERASER = 0.06
"""Radius of what takes strokes away, as a share of the longer side."""


def jittered(picture: Picture, form: Form, rng: np.random.Generator) -> Picture:
    """Draw a line drawing anew, changed at random.

    Its place, size, width of lines and the share of its strokes that are wiped out are uniform
    and independent.

    Parameters
    ----------
    picture : (H, W, 3) uint8
        Dark strokes on a light ground.
    form : Form
        What sizes and widths are shares of; also the size of the result.
    rng : Generator
        What chance goes by.

    Returns
    -------
    (height, width, 3) uint8
        The picture itself where it is no line drawing.
    """
    extent = form.extent * rng.uniform(SMALLEST, 1)
    x, y = (0.5 + (1 - extent) * rng.uniform(-0.5, 0.5, 2)).tolist()
    line = form.line * rng.uniform(THINNEST, THICKEST)
    unfinished = wiped(picture, rng.uniform(0, MOST_MISSING), rng)
    return in_form(unfinished, replace(form, extent=extent, centre=(x, y), line=line))


def wiped(picture: Picture, share: float, rng: np.random.Generator) -> Picture:
    """Make round parts of a drawing white until a share of its strokes is gone, or nearly.

    Parameters
    ----------
    picture : (H, W, 3) uint8
        Dark strokes on a light ground.
    share : float
        Of its dark pixels; never exceeded.
    rng : Generator
        What chance goes by.
    """
    mask = stroke_mask(picture)
    left = mask.copy()
    rows, columns = np.indices(mask.shape)
    while True:
        ink = np.flatnonzero(left)
        if not len(ink):
            break
        y, x = divmod(int(rng.choice(ink)), mask.shape[1])
        radius = ERASER * max(mask.shape)
        near = (rows - y) ** 2 + (columns - x) ** 2 <= radius**2
        if (left & ~near).sum() < (1 - share) * mask.sum():
            break
        left &= ~near
    wiped_out = np.where((mask & ~left)[:, :, None], np.uint8(255), picture)
    return wiped_out
