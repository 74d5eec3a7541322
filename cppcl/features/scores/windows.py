"""Windows of a picture: drawn at random, sums inside them, and what they score."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.features.base import Picture
from cppcl.features.layers import Layer, Numbers, Seen

SHRINK = 100 / 117
"""Side of an inner window over that of the outer one."""


@dataclass(frozen=True)
class ScoredWindows:
    """Windows of one picture with what they score, and what the picture scores by them.

    Attributes
    ----------
    windows : (n, 4) float64 array
        Left, top, right and bottom in the unit square.
    scores : (n,) float64 array
        Higher is more like an object, or more detailed.
    best : (k,) int64 array
        Which of them are best, the best one first.
    easiness : float
        Score of the picture.
    cues : dict of str to picture
        What the windows were measured on, by name: colours, marks or grey values, as in
        `cppcl.features.layers.Seen`.
    """

    windows: NDArray[np.float64]
    scores: NDArray[np.float64]
    best: NDArray[np.int64]
    easiness: float
    cues: dict[str, NDArray[Any]] = field(default_factory=dict)

    def layers(self, picture: Picture) -> list[Layer]:
        """Show the best windows over a picture, the cues, and the score of the picture."""
        height, width = picture.shape[:2]
        boxes = self.windows[self.best] * np.array([width, height, width, height])
        highest, lowest = self.scores[self.best[[0, -1]]]
        title = (
            f"{len(self.best)} best of {len(self.windows)} windows, {highest:.3g} to {lowest:.3g}"
        )
        return [
            Seen(title, picture, boxes=boxes),
            *cue_layers(self.cues),
            Numbers("easiness", np.array([self.easiness])),
        ]


def cue_layers(cues: dict[str, NDArray[Any]]) -> list[Layer]:
    """One layer a cue."""
    return [Seen(name, cue) for name, cue in cues.items()]


def random_windows(
    n_windows: int,
    seed: int,
    scale: tuple[float, float] = (0.1, 0.8),
    aspect: tuple[float, float] = (0.5, 2.0),
) -> NDArray[np.float64]:
    """Draw windows in the unit square.

    Parameters
    ----------
    n_windows : int
        How many.
    seed : int
        The same windows come from the same seed.
    scale : (smallest, largest)
        Square root of a window's area, drawn log-uniformly.
    aspect : (smallest, largest)
        Width over height, drawn log-uniformly; sides are clipped to 1.

    Returns
    -------
    (n_windows, 4) float64 array
        Left, top, right and bottom, uniformly placed.
    """
    rng = np.random.default_rng(seed)
    side = _log_uniform(rng, scale, n_windows)
    root_aspect = np.sqrt(_log_uniform(rng, aspect, n_windows))
    sides = np.minimum(np.stack([side * root_aspect, side / root_aspect], axis=1), 1.0)
    corner = rng.random((n_windows, 2)) * (1.0 - sides)
    return np.hstack([corner, corner + sides])


def _log_uniform(
    rng: np.random.Generator, limits: tuple[float, float], n: int
) -> NDArray[np.float64]:
    low, high = np.log(limits)
    return np.exp(rng.uniform(low, high, n))


def to_pixels(windows: NDArray[np.float64], width: int, height: int) -> NDArray[np.int64]:
    """Round windows of the unit square to the pixels of a picture.

    Returns
    -------
    (n_windows, 4) int64 array
        Left, top, right and bottom, right and bottom excluded, at least one pixel each way.
    """
    size = np.array([width, height])
    first = np.minimum(np.rint(windows[:, :2] * size).astype(np.int64), size - 1)
    last = np.clip(np.rint(windows[:, 2:] * size).astype(np.int64), first + 1, size)
    return np.hstack([first, last])


def integral(marked: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Count the marked pixels above and to the left: (H, W) to (H + 1, W + 1)."""
    from cppcl.features.scores.window_kernels import integral_count

    sums: NDArray[np.int32] = integral_count(marked)
    return sums


def window_sums(sums: NDArray[np.int32], windows: NDArray[np.int64]) -> NDArray[np.int32]:
    """Count the marked pixels inside each window.

    Parameters
    ----------
    sums : (H + 1, W + 1) int32 array
        From `integral`.
    windows : (n_windows, 4) int64 array
        As returned by `to_pixels`.

    Returns
    -------
    (n_windows,) int32 array
    """
    left, top, right, bottom = windows.T
    inside: NDArray[np.int32] = (
        sums[bottom, right] - sums[top, right] - sums[bottom, left] + sums[top, left]
    )
    return inside


def areas(windows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Count the pixels of each window."""
    extent: NDArray[np.int64] = windows[:, 2:] - windows[:, :2]
    return extent[:, 0] * extent[:, 1]


def rims(outer: NDArray[np.int64]) -> NDArray[np.int64]:
    """Inner windows whose rims edge density looks at, (n_windows, 4) int64.

    They lie in the middle of the outer ones, with sides in the ratio 100 to 117 and at least a
    pixel narrower on every side: Alexe, Deselaers and Ferrari, "Measuring the Objectness of Image
    Windows", PAMI 2012, with theta_ED = 17.
    """
    extent = outer[:, 2:] - outer[:, :2]
    rim = np.maximum(np.rint(extent * (1 - SHRINK) / 2).astype(np.int64), 1)
    return np.hstack([outer[:, :2] + rim, outer[:, 2:] - rim])


def rim_densities(
    edges: NDArray[np.bool_], outer: NDArray[np.int64], inner: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Edge density of windows: the share of edge pixels in a rim times its thickness in pixels.

    Parameters
    ----------
    edges : (H, W) bool array
        Edge map.
    outer, inner : (n_windows, 4) int64 array
        Windows, and what `rims` gives; inner ones without pixels are taken for empty.
    """
    inner = np.hstack([inner[:, :2], np.maximum(inner[:, 2:], inner[:, :2])])
    sums = integral(edges)
    marked = window_sums(sums, outer) - window_sums(sums, inner)
    thickness = (outer[:, 2:] - inner[:, 2:]).mean(axis=1)
    density: NDArray[np.float64] = thickness * marked / (areas(outer) - areas(inner))
    return density


def highest(
    windows: NDArray[np.int64], scores: NDArray[np.floating], overlap: float, n_kept: int
) -> NDArray[np.int64]:
    """Numbers of the windows of highest score that overlap none of a higher one too much.

    Parameters
    ----------
    windows : (n, 4) int64 array
        In pixels.
    scores : (n,) array
        Of equal ones the first is taken.
    overlap : float
        Largest intersection over union of two kept windows; with 1 all may be kept.
    n_kept : int
        How many are kept at most (non-maximum suppression).

    Returns
    -------
    (k,) int64 array
        Highest score first.
    """
    order = np.argsort(-scores, kind="stable")
    if overlap >= 1:
        return order[:n_kept]
    from cppcl.features.scores.window_kernels import suppress

    kept: NDArray[np.int64] = order[suppress(windows[order], overlap, n_kept)]
    return kept
