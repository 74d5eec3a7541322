"""SVG drawings made poorer: strokes left out at random, or drawn beside their place."""

from __future__ import annotations

import numpy as np

from cppcl.errors import InputError
from cppcl.pictures.unfinished import drawing_of, outline_length, svg_text

DISPLACEMENT = 0.15
"""Standard deviation of a stroke's displacement at share 0, in sides of the view box."""


def thinned(svg: str, share: float, *, seed: int = 0) -> str:
    """Leave out strokes at random until a share of their length is left.

    What is left at a share is left at every larger one.

    Parameters
    ----------
    svg : str
        A drawing; lengths are taken before transforms.
    share : float
        In (0, 1]. The last stroke that is left may exceed it.
    seed : int
        Of the order.

    Returns
    -------
    str
        The drawing itself for a share of 1.

    Raises
    ------
    InputError
        For a share out of range, what is no SVG, or one without shapes.
    """
    root, shapes = drawing_of(svg, share)
    if share == 1:
        return svg
    lengths = [outline_length(shape) for _, shape, _ in shapes]
    left = share * sum(lengths)
    for number, k in enumerate(np.random.default_rng(seed).permutation(len(shapes)).tolist()):
        parent, shape, _ = shapes[k]
        if left <= 0 and number:  # one is left in any case
            parent.remove(shape)
        left -= lengths[k]
    return svg_text(root)


def jittered(svg: str, share: float, *, seed: int = 0) -> str:
    """Move every stroke at random, the further the smaller the share.

    Parameters
    ----------
    svg : str
        A drawing with a view box.
    share : float
        In (0, 1]. Strokes move by (1 - share) times fixed normal draws of standard deviation
        `DISPLACEMENT`.
    seed : int
        Of the draws.

    Returns
    -------
    str
        The drawing itself for a share of 1.

    Raises
    ------
    InputError
        For a share out of range, what is no SVG, or one without shapes or view box.
    """
    root, shapes = drawing_of(svg, share)
    if share == 1:
        return svg
    box = (root.get("viewBox") or "").replace(",", " ").split()
    if len(box) != 4:
        raise InputError(f"viewBox={root.get('viewBox')!r} of a drawing must have four numbers")
    sides = [float(value) for value in box[2:]]
    draws = np.random.default_rng(seed).normal(size=(len(shapes), 2))
    moves = (1 - share) * DISPLACEMENT * draws * sides
    for (_, shape, _), (x, y) in zip(shapes, moves.tolist(), strict=True):
        shape.set("transform", f"translate({x:.4g} {y:.4g}) {shape.get('transform', '')}".strip())
    return svg_text(root)
