"""Learned keyshapes: a sketch by the shapes of which its strokes are made, and where."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import InputError
from cppcl.features.base import Drawing, Picture
from cppcl.features.contours.detection import ContourOptions
from cppcl.features.descriptors.daisy import DIMENSION, PATCH, daisy
from cppcl.features.descriptors.keyshapes import (
    STATISTICS,
    describe_members,
    learn_keyshapes,
    sample_strokes,
    squared_distances,
    vote_scales,
)
from cppcl.features.layers import Layer, Numbers, Seen, Tiles, most_frequent
from cppcl.features.learning import LearningExtractor
from cppcl.features.stateless import check_picture, rows_of
from cppcl.validation import check_flag, check_number

EPS = 1e-5


@dataclass(frozen=True, kw_only=True)
class Lks(ContourOptions, LearningExtractor):
    r"""Learned keyshapes (LKS): soft histograms of stroke shapes in a grid of blocks.

    Contours are brought to 200 pixels on a canvas of 256. Every contour pixel p has a DAISY
    descriptor (136 values, `cppcl.features.descriptors.daisy`) and votes for its P nearest
    keyshapes j, at distances :math:`\delta_j`, by

    .. math:: g_j = \exp(-\tfrac12 (\delta_j / \sigma_j)^2) / \sigma_j, \qquad
              v_j = g_j / \sum_k g_k

    with :math:`\sigma_j` the largest distance of a member of keyshape j. A vote is shared by the
    four nearest blocks of a B x B grid by bilinear weights; what falls outside the grid is lost.
    Each block's histogram is divided by its Euclidean norm plus 1e-5, then the square root of
    every value is taken, so the norm of a descriptor is not 1. Dimension :math:`K B^2`: 2400 for
    4 x 4 blocks, 1350 for 3 x 3. A picture without contours gives zeros.

    Saavedra and Barrios, "Sketch based Image Retrieval using Learned KeyShapes (LKS)", BMVC 2015.
    `fit` learns the keyshapes by mini-batch k-means from stroke pixels of the training pictures.
    Ours are how many pixels it draws, that descriptors of whole pictures are clustered, not of
    cut patches, and that distances are squared by default, which the publication leaves open.

    Describing photographs by keyshapes of sketches takes two extractors: the one fitted on
    sketches, and one with contours='canny' that is given its arrays by `from_arrays`.

    Parameters
    ----------
    blocks : int
        Blocks along each side of the canvas.
    n_keyshapes : int
        Number K of keyshapes.
    n_nearest : int
        Number P of keyshapes that a pixel votes for; 1 makes hard votes.
    squared_distance : bool
        True if the distances in votes, and the largest ones of members, are squared.
    thin : bool
        True if contours are thinned to lines of one pixel first.
    samples_per_picture : int
        Contour pixels that `fit` draws of a picture.
    max_samples : int
        Contour pixels that `fit` learns from.
    seed : int
        Of the draws and of k-means.
    """

    name: ClassVar[str] = "lks"
    version: ClassVar[int] = 1
    device: ClassVar[Literal["cpu", "gpu"]] = "cpu"

    blocks: int = 4
    n_keyshapes: int = 150
    n_nearest: int = 10
    squared_distance: bool = True
    thin: bool = False
    samples_per_picture: int = 100
    max_samples: int = 200_000
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        for option in ("blocks", "n_keyshapes", "n_nearest", "samples_per_picture"):
            check_number(f"option {option}", getattr(self, option), least=1, whole=True)
        why = ", as many as n_keyshapes"
        check_number(
            "option max_samples", self.max_samples, least=self.n_keyshapes, whole=True, why=why
        )
        check_number("option seed", self.seed, least=0, whole=True)
        check_flag("option squared_distance", self.squared_distance)
        check_flag("option thin", self.thin)
        if self.n_nearest > self.n_keyshapes:
            raise InputError(
                f"option n_nearest={self.n_nearest} must be at most n_keyshapes={self.n_keyshapes}"
            )

    @property
    def dimension(self) -> int:
        """Keyshapes times blocks: 2400 by default."""
        return self.n_keyshapes * self.blocks**2

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Keyshapes, statistics of their members, and how these look."""
        return {
            "keyshapes": (self.n_keyshapes, DIMENSION),
            "statistics": (self.n_keyshapes, len(STATISTICS)),
            "patches": (self.n_keyshapes, PATCH, PATCH),
        }

    def fit(self, pictures: Iterable[Picture]) -> Self:
        """Learn keyshapes from the contours of training pictures.

        Raises
        ------
        InputError
            No picture has contours, or they have fewer different descriptors than keyshapes.
        """
        masks = (
            self.on_canvas(check_picture(picture, position), thin=self.thin)
            for position, picture in enumerate(pictures)
        )
        descriptors, patches = sample_strokes(
            masks, self.samples_per_picture, self.max_samples, self.seed
        )
        keyshapes = learn_keyshapes(descriptors, self.n_keyshapes, self.seed)
        statistics, looks = describe_members(descriptors, patches, keyshapes)
        return self.from_arrays(
            {"keyshapes": keyshapes, "statistics": statistics, "patches": looks}
        )

    def transform(self, pictures: Sequence[Picture]) -> NDArray[np.float32]:
        """Descriptors of n pictures, (n, dimension) float32.

        Raises
        ------
        NotFittedError
            No keyshapes were learned yet.
        """
        keyshapes = self.learned("keyshapes")
        scales = vote_scales(self.learned("statistics"), self.squared_distance)
        return rows_of(pictures, self.dimension, lambda p: self._describe(p, keyshapes, scales))

    def drawing(self, columns: int = 15, gap: int = 4) -> Drawing:
        """All keyshapes in one picture, those with most members first.

        Parameters
        ----------
        columns : int
            Keyshapes in a row.
        gap : int
            Pixels between them.

        Returns
        -------
        Drawing
            The darker, the larger the share of a keyshape's members that are marked there.
        """
        counts = self.learned("statistics")[:, STATISTICS.index("count")]
        looks = self._looks()[np.argsort(-counts, kind="stable")]
        n_rows, step = -(-len(looks) // columns), PATCH + gap
        sheet = np.full((n_rows * step + gap, columns * step + gap), 235, dtype=np.uint8)
        for place, look in enumerate(looks):
            top, left = (gap + step * k for k in divmod(place, columns))
            sheet[top : top + PATCH, left : left + PATCH] = np.rint(255 * (1 - look))
        caption = (
            "Keyshapes, those of most stroke pixels first; the darker, the more of its members "
            "are marked there"
        )
        return Drawing(np.repeat(sheet[..., None], 3, axis=2), caption)

    def explain(self, picture: Picture) -> list[Layer]:
        """Show the contours, each pixel by the keyshape that it votes for most, and the blocks."""
        mask = self.on_canvas(picture, thin=self.thin)
        if not self.has_learned:
            return [Seen(f"contours ({self.contours})", mask)]
        scales = vote_scales(self.learned("statistics"), self.squared_distance)
        nearest, _ = self._votes(mask, self.learned("keyshapes"), scales)
        frequent, groups = most_frequent(nearest[:, 0])
        shares = [float(np.mean(nearest[:, 0] == keyshape)) for keyshape in frequent]
        captions = tuple(f"{100 * share:.0f} %" for share in shares)
        (vector,) = self.transform([picture])
        return [
            Seen(f"contours ({self.contours})", mask),
            Seen(
                f"nearest keyshapes, {self.blocks} x {self.blocks} blocks",
                mask,
                points=np.argwhere(mask),
                groups=groups,
                grid=self.blocks,
            ),
            Tiles("keyshapes of most pixels", 1 - self._looks()[frequent], captions),
            Numbers("vector", vector.reshape(-1, self.n_keyshapes), "block", "keyshape"),
        ]

    def _looks(self) -> NDArray[np.float32]:
        """How members of each keyshape look, the largest share of each being 1."""
        looks = self.learned("patches")
        shares: NDArray[np.float32] = looks / np.maximum(
            looks.max(axis=(1, 2), keepdims=True), 1e-6
        )
        return shares

    def _votes(
        self, mask: NDArray[np.bool_], keyshapes: NDArray[np.float32], scales: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Keyshapes that each contour pixel votes for, nearest first, and by how much."""
        from cppcl.features.descriptors.daisy_kernels import soft_votes

        rows, columns = np.nonzero(mask)
        distances = squared_distances(daisy(mask, rows, columns), keyshapes)
        if not self.squared_distance:
            np.sqrt(distances, out=distances)
        nearest = np.empty((len(rows), self.n_nearest), dtype=np.int64)
        votes = np.empty(nearest.shape)
        soft_votes(distances, scales, self.n_nearest, nearest, votes)
        return nearest, votes

    def _describe(
        self, picture: Picture, keyshapes: NDArray[np.float32], scales: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        from cppcl.features.descriptors.daisy_kernels import block_votes

        mask = self.on_canvas(picture, thin=self.thin)
        nearest, votes = self._votes(mask, keyshapes, scales)
        rows, columns = np.nonzero(mask)
        histograms = np.zeros((self.blocks, self.blocks, self.n_keyshapes))
        block_votes(rows, columns, mask.shape, nearest, votes, histograms)
        histograms /= np.linalg.norm(histograms, axis=2, keepdims=True) + EPS
        return np.sqrt(histograms).ravel()
