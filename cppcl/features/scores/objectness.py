"""How easily an object is found in an image: objectness of windows, and easiness by it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import InputError
from cppcl.features.base import Picture
from cppcl.features.layers import Layer
from cppcl.features.learning import LearningExtractor
from cppcl.features.scores.colour_contrast import colour_bins, colour_contrasts, shrink
from cppcl.features.scores.saliency import saliency_maps, window_saliencies
from cppcl.features.scores.windows import (
    ScoredWindows,
    cue_layers,
    highest,
    random_windows,
    rim_densities,
    rims,
    to_pixels,
)
from cppcl.features.stateless import check_picture, rows_of
from cppcl.validation import check_choice, check_flag, check_number

LONGEST_SIDE = 160
N_BEST = 30
N_LEVELS = 1000
"""Quantiles of a cue that are learned."""
CANDIDATE_SCALE = (0.1, 1.0)
"""Square root of the share of the picture that candidates cover."""
ANYWHERE = 10
"""One in so many candidates is measured without being drawn."""
EDGE_SIGMA = 1.0
FELZENSZWALB = {"scale": 450.0, "sigma": 0.5, "min_size": 200.0}
"""Of a picture of 60,000 pixels; the latter two shrink with the side of smaller ones."""


class MeasuredWindows(NamedTuple):
    """Windows of a picture and their cues: n drawn by saliency, then r from anywhere."""

    windows: NDArray[np.float64]
    """(n + r, 4) in the unit square."""
    pixels: NDArray[np.int64]
    """(n + r, 4) in pixels of the shrunk picture."""
    cues: NDArray[np.float64]
    """(n_cues, n + r), higher is more like an object."""
    maps: dict[str, NDArray[Any]]
    """What the cues were measured on."""


@dataclass(frozen=True, kw_only=True)
class Objectness(LearningExtractor):
    r"""Easiness of an image: how far its 30 most object-like windows stand out.

    Windows are drawn at random in proportion to their multi-scale saliency and measured by three
    cues, or four: that saliency, the contrast of their colours to what surrounds them, how little
    superpixels straddle their border, and the density of edges in their rims. Alexe, Deselaers
    and Ferrari, "Measuring the Objectness of Image Windows", PAMI 2012. Each cue is replaced by
    its empirical distribution function F over windows of training images, which `fit` learns; a
    window scores by their geometric mean (Bayes' rule would need boxes of objects). Windows that
    overlap a better one are skipped.

    The paper has the median of the 30 highest scores, ``easiness='printed'``. But in an image
    full of clutter every window contrasts with its surround and has superpixels that fit, so
    that clutter passes for easy. Therefore, by default,

    .. math:: \mathrm{median}_{30\ best}\;
              \frac1k \Big(\log a_w + \sum_c \log F_c(w)\Big)
              - \mathrm{mean}_{anywhere}\; \frac1k \sum_c \log F_c(w)

    of k cues, with :math:`a_w` the share of the image that a window covers and the mean over
    windows that are not drawn by saliency: easy are large objects that stand out from the rest
    of their image.

    Parameters
    ----------
    n_windows : int
        Windows that are drawn and measured; the median is over all where there are fewer than 30.
    n_candidates : int
        Windows from which they are drawn, the same for all pictures relative to their sides; a
        tenth of them stand for anywhere in the image.
    overlap : float
        Largest intersection over union of two of the 30, above 0 and at most 1.
    edge_density : bool
        True if edge density is the fourth cue.
    easiness : str
        'relative' or 'printed'.
    max_pictures : int
        Training images, drawn at random, of which distribution functions are learned.
    seed : int
        Of the draws.
    """

    name: ClassVar[str] = "objectness"
    version: ClassVar[int] = 3
    device: ClassVar[Literal["cpu", "gpu"]] = "cpu"

    n_windows: int = 1000
    n_candidates: int = 5000
    overlap: float = 0.7
    edge_density: bool = False
    easiness: Literal["relative", "printed"] = "relative"
    max_pictures: int = 500
    seed: int = 0

    def __post_init__(self) -> None:
        for option in ("n_windows", "max_pictures"):
            check_number(f"option {option}", getattr(self, option), least=1, whole=True)
        why = ", as many as n_windows"
        check_number(
            "option n_candidates", self.n_candidates, least=self.n_windows, whole=True, why=why
        )
        check_number("option seed", self.seed, least=0, whole=True)
        check_flag("option edge_density", self.edge_density)
        check_choice("option easiness", self.easiness, ("relative", "printed"))
        check_number("option overlap", self.overlap, above=0)
        if self.overlap > 1:
            raise InputError(f"option overlap={self.overlap} must be at most 1")

    @property
    def dimension(self) -> int:
        """One."""
        return 1

    @property
    def cue_names(self) -> tuple[str, ...]:
        """Cues in the order in which they are learned."""
        names = ("saliency", "colour contrast", "superpixel straddling")
        return (*names, "edge density") if self.edge_density else names

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Quantiles of every cue."""
        return {"quantiles": (len(self.cue_names), N_LEVELS)}

    def fit(self, pictures: Iterable[Picture]) -> Self:
        """Learn the distribution of every cue over windows of training images.

        Raises
        ------
        InputError
            There is no picture, or none in which any window stands out.
        """
        rng = np.random.default_rng(self.seed)
        small = (
            shrink(check_picture(picture, position), LONGEST_SIDE)
            for position, picture in enumerate(pictures)
        )
        kept, n = reservoir(small, self.max_pictures, rng)
        measured = [self.measure(picture).cues for picture in kept]
        # A picture of one colour has superpixels, but neither saliency nor contrast.
        cues = [values for values in measured if values[:2].any()]
        if not cues:
            raise InputError(
                f"{n} training pictures have no window that stands out, so objectness cannot be "
                "learned; give pictures that are not of one colour"
            )
        levels = (np.arange(N_LEVELS) + 0.5) / N_LEVELS
        return self.from_arrays({"quantiles": np.quantile(np.hstack(cues), levels, axis=1).T})

    def transform(self, pictures: Sequence[Picture]) -> NDArray[np.float32]:
        """Easiness of n images, (n, 1) float32.

        Raises
        ------
        NotFittedError
            No distributions were learned yet.
        """
        self.learned("quantiles")
        return rows_of(pictures, 1, lambda picture: self.scored_windows(picture).easiness)

    def explain(self, picture: Picture) -> list[Layer]:
        """Show the cues, and once learned the best windows and the scores."""
        small = shrink(picture, LONGEST_SIDE)
        if not self.has_learned:
            return cue_layers(self.measure(small).maps)
        return self.scored_windows(small).layers(small)

    def scored_windows(self, picture: Picture) -> ScoredWindows:
        """Measure and score the windows of a picture, by logarithms where relative."""
        measured, n = self.measure(picture), self.n_windows
        places = distribution_values(measured.cues, self.learned("quantiles"))
        scores, anywhere = np.split(np.log(places).mean(axis=0), [n])
        best = highest(measured.pixels[:n], scores, self.overlap, N_BEST)
        if self.easiness == "printed":
            scores = np.exp(scores)
            easiness = float(np.median(scores[best]))
        else:
            scores = scores - anywhere.mean()
            sides = measured.windows[best, 2:] - measured.windows[best, :2]
            size = np.log(sides.prod(axis=1)) / len(measured.cues)
            easiness = float(np.median(scores[best] + size))
        return ScoredWindows(measured.windows[:n], scores, best, easiness, measured.maps)

    def measure(self, picture: Picture) -> MeasuredWindows:
        """Draw windows of a picture, add some from anywhere, and measure their cues."""
        small = shrink(picture, LONGEST_SIDE)
        height, width = small.shape[:2]
        candidates, chances = draws(self.n_candidates, self.seed)
        maps = saliency_maps(small)
        saliency = window_saliencies(maps, candidates)
        # The largest of independent Gumbel variables around the logarithms of weights is a
        # sample without replacement in proportion to these.
        keys = np.log(saliency.mean(axis=0) + 1e-12) + chances
        drawn = np.sort(np.argpartition(-keys, self.n_windows - 1)[: self.n_windows])
        chosen = np.concatenate([drawn, np.arange(-(-self.n_candidates // ANYWHERE))])
        windows = candidates[chosen]
        pixels = to_pixels(windows, width, height)
        regions = superpixels(small)
        cues = [
            saliency[:, chosen].max(axis=0),
            colour_contrasts(colour_bins(small), pixels),
            1 - straddling(regions, pixels),
        ]
        shown = {"saliency": maps[-1].max(axis=0), "superpixels": mean_colours(small, regions)}
        if self.edge_density:
            edges = _edges(small)
            cues.append(rim_densities(edges, pixels, rims(pixels)))
            shown["edges"] = edges
        return MeasuredWindows(windows, pixels, np.stack(cues), shown)


def reservoir(
    items: Iterable[Picture], size: int, rng: np.random.Generator
) -> tuple[list[Picture], int]:
    """Uniform sample of at most `size` items of an iterable, and the number of all items."""
    kept: list[Picture] = []
    n = 0
    for n, item in enumerate(items, start=1):
        if len(kept) < size:
            kept.append(item)
        elif (place := int(rng.integers(n))) < size:
            kept[place] = item
    return kept, n


@lru_cache(maxsize=4)
def draws(n_candidates: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Candidates in the unit square, (n, 4), and a Gumbel variable for each, (n,)."""
    candidates = random_windows(n_candidates, seed, scale=CANDIDATE_SCALE)
    chances = np.random.default_rng([seed, 1]).gumbel(size=n_candidates)
    for values in (candidates, chances):
        values.flags.writeable = False
    return candidates, chances


def superpixels(picture: Picture) -> NDArray[np.int64]:
    """Number of the superpixel of every pixel, (H, W) int64 from 0 on.

    Felzenszwalb and Huttenlocher, "Efficient Graph-Based Image Segmentation", IJCV 2004.
    """
    height, width = picture.shape[:2]
    if min(height, width) < 2:
        return np.zeros((height, width), dtype=np.int64)
    from skimage.segmentation import felzenszwalb

    shrunk = (height * width / 60000) ** 0.5
    regions: NDArray[np.int64] = felzenszwalb(
        picture,
        scale=FELZENSZWALB["scale"],
        sigma=FELZENSZWALB["sigma"] * shrunk,
        min_size=round(FELZENSZWALB["min_size"] * shrunk),
    )
    return regions.astype(np.int64, copy=False)


def mean_colours(picture: Picture, regions: NDArray[np.int64]) -> Picture:
    """Colour every region of a picture by its mean."""
    labels = regions.ravel()
    sums = [np.bincount(labels, channel) for channel in picture.reshape(-1, 3).T]
    means = np.stack(sums, axis=1) / np.bincount(labels)[:, None]
    return np.rint(means).astype(np.uint8)[regions]


def straddling(regions: NDArray[np.int64], windows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Pixels of the smaller part of every superpixel that a window cuts, over the window's area.

    Parameters
    ----------
    regions : (H, W) int64 array
        Number of each pixel's superpixel, from 0 on.
    windows : (n, 4) int64 array
        In pixels.

    Returns
    -------
    (n,) float64 array
        Between 0, where every superpixel lies inside or outside, and 1.
    """
    from cppcl.features.scores.window_kernels import integral_histogram, straddling_shares

    sums = integral_histogram(regions, int(regions.max()) + 1)
    shares: NDArray[np.float64] = straddling_shares(sums, windows)
    return shares


def distribution_values(
    cues: NDArray[np.float64], quantiles: NDArray[np.floating]
) -> NDArray[np.float64]:
    """Share of the learned windows whose cue is smaller, those of equal ones counted half.

    Parameters
    ----------
    cues : (n_cues, n) array
        Cues of windows.
    quantiles : (n_cues, L) array
        Of each cue over the learned windows, at (k + 1/2) / L.

    Returns
    -------
    (n_cues, n) float64 array
        Between 1 / 2L and 1 - 1 / 2L, so that logarithms are finite.
    """
    n_levels = quantiles.shape[1]
    values = np.empty(cues.shape)
    for value, cue, levels in zip(values, cues.astype(np.float32), quantiles, strict=True):
        ranks = (np.searchsorted(levels, cue, side) for side in ("left", "right"))
        value[:] = sum(ranks) / (2 * n_levels)
    return np.clip(values, 0.5 / n_levels, 1 - 0.5 / n_levels)


def _edges(picture: Picture) -> NDArray[np.bool_]:
    from cppcl.features.contours.detection import canny_edges
    from cppcl.pictures.decoding import to_gray

    return canny_edges(to_gray(picture).astype(np.float64), EDGE_SIGMA)[0]
