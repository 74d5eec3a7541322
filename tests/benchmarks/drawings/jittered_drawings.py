"""Drawings as other hands would make them: SVG moved, reduced, with other lines, unfinished."""

from __future__ import annotations

from dataclasses import dataclass, replace
from xml.etree import ElementTree

import numpy as np

from cppcl.pictures.decoding import Picture, decode_picture
from cppcl.pictures.strokes import stroke_mask

SHAPES = {"path", "line", "polyline", "polygon", "circle", "ellipse", "rect"}
SMALLEST, LARGEST = 0.6, 1.0
THINNEST, THICKEST = 0.5, 3.0
MOST_MISSING = 0.3
_NAMESPACE = "http://www.w3.org/2000/svg"


@dataclass(frozen=True)
class Jitter:
    """How one drawing differs from the one that was published.

    Attributes
    ----------
    shift : (float, float)
        Where the drawing lies in the room that it leaves, 0 left or top and 1 right or bottom;
        None leaves its middle where it is.
    scale : float
        Its size, of the published one; lines are reduced with it.
    width : float
        Width of its strokes beside that.
    missing : float
        Share of its strokes that are not drawn, rounded down; the last stroke always is.
    seed : int
        Which those are.
    """

    shift: tuple[float, float] | None = None
    scale: float = 1.0
    width: float = 1.0
    missing: float = 0.0
    seed: int = 0

    def alone(self, name: str) -> Jitter:
        """Nothing of it but one change."""
        return replace(Jitter(seed=self.seed), **{name: getattr(self, name)})


def random_jitter(rng: np.random.Generator) -> Jitter:
    """Draw every change uniformly, one independent of the other."""
    x, y = rng.random(2).tolist()
    return Jitter(
        shift=(x, y),
        scale=float(rng.uniform(SMALLEST, LARGEST)),
        width=float(rng.uniform(THINNEST, THICKEST)),
        missing=float(rng.uniform(0, MOST_MISSING)),
        seed=int(rng.integers(2**31)),
    )


def jittered(svg: bytes, jitter: Jitter, *, side: int = 256) -> Picture:
    """Render a drawing with a square view box, changed, so that all of it stays inside.

    Parameters
    ----------
    svg : bytes
        Strokes that have the attribute ``stroke-width``.
    jitter : Jitter
        What is changed.
    side : int
        Pixels of the picture.
    """
    root = ElementTree.fromstring(svg)
    for parent, child in _missing(root, jitter):
        parent.remove(child)
    for element in root.iter():
        if width := element.get("stroke-width"):
            element.set("stroke-width", str(float(width) * jitter.width))
    left, top, length, _ = (float(v) for v in root.get("viewBox", "").split())
    mask = stroke_mask(decode_picture(_text(root), longest_side=side))
    box = [_ends(mask.any(axis=axis), origin, length) for axis, origin in ((0, left), (1, top))]
    moves = []
    for (first, last), origin, share in zip(
        box, (left, top), jitter.shift or (None, None), strict=True
    ):
        middle, half = (first + last) / 2, jitter.scale * (last - first) / 2
        target = middle
        if share is not None:
            target = origin + half + share * max(0.0, length - 2 * half)
        moves.append(target - jitter.scale * middle)
    x, y = moves
    group = ElementTree.Element(
        f"{{{_NAMESPACE}}}g", transform=f"matrix({jitter.scale} 0 0 {jitter.scale} {x} {y})"
    )
    for child in list(root):
        root.remove(child)
        group.append(child)
    root.append(group)
    return decode_picture(_text(root), longest_side=side)


def _missing(
    root: ElementTree.Element, jitter: Jitter
) -> list[tuple[ElementTree.Element, ElementTree.Element]]:
    """Strokes that are left out, each behind its parent."""
    strokes = [
        (parent, child)
        for parent in root.iter()
        for child in parent
        if child.tag.rpartition("}")[2] in SHAPES
    ]
    n = min(int(jitter.missing * len(strokes)), len(strokes) - 1)
    chosen = np.random.default_rng(jitter.seed).permutation(len(strokes))[: max(0, n)]
    return [strokes[k] for k in chosen]


def _ends(drawn: np.ndarray, origin: float, length: float) -> tuple[float, float]:
    """First and last place of ink along an axis, in units of the view box."""
    found = np.flatnonzero(drawn)
    scale = length / len(drawn)
    return origin + scale * found[0], origin + scale * (found[-1] + 1)


def _text(root: ElementTree.Element) -> bytes:
    return ElementTree.tostring(root)
