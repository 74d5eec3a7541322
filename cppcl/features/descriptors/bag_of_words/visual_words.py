"""What the extractors that count visual words have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import InputError
from cppcl.features.base import Picture
from cppcl.features.contours.detection import LONGEST_SIDE, ContourOptions, contour_mask
from cppcl.features.layers import Layer, Seen, most_frequent
from cppcl.features.learning import LearningExtractor, UniformSample
from cppcl.features.stateless import check_picture, rows_of
from cppcl.validation import check_choice, check_flag, check_number

PYRAMID = ((1, 0.25), (2, 0.25), (4, 0.5))
"""Cells along each side, and weight, of every level of the spatial pyramid."""
N_CELLS = sum(side * side for side, _ in PYRAMID)
"""Cells of all levels: 21."""

_BATCH = 8192
_BLOCK = 256

Local = tuple[NDArray[np.float32], NDArray[np.float64]]
"""Local descriptors of a picture, (n, d), and their positions, (n, 2), rows and columns as shares
of its height and width."""


@dataclass(frozen=True, kw_only=True)
class VisualWords(ContourOptions, LearningExtractor):
    """Base of the extractors that describe a picture by how often words occur in it.

    `fit` draws local descriptors of the training pictures and finds words, the centres of their
    clusters by mini-batch k-means; `transform` counts the nearest word of each local descriptor
    of a picture. What is not drawn is never held, so memory does not grow with the number of
    pictures.

    Describing photographs by words of sketches takes two extractors: the one fitted on sketches,
    and one with contours='canny' that is given its arrays by `from_arrays`.

    Parameters
    ----------
    n_words : int
        Number of words.
    weighting : {'l1', 'tf_idf'}
        'l1': the share f of each word among the local descriptors, for the metric 'intersection'.
        'tf_idf': f log(n / F) for a word that F of the n training pictures have, for the metric
        'cosine'; `fit` then reads the training pictures twice.
    pyramid : bool
        True if words are also counted in the cells of 2 x 2 and 4 x 4 grids: 21 histograms,
        weighted by 1/4, 1/4 and 1/2 for the 1, 4 and 16 cells of a level.
    samples_per_picture : int
        Local descriptors that `fit` draws of a picture.
    max_samples : int
        Local descriptors that `fit` learns words from.
    seed : int
        Of the draws and of k-means.
    """

    length: ClassVar[int]
    """Length d of a local descriptor."""
    longest_side: ClassVar[int] = LONGEST_SIDE
    """Longer side of the contours that are described, pixels."""

    n_words: int = 1000
    weighting: Literal["l1", "tf_idf"] = "l1"
    pyramid: bool = False
    samples_per_picture: int = 500
    max_samples: int = 300_000
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("option n_words", self.n_words, least=1, whole=True)
        check_choice("option weighting", self.weighting, ("l1", "tf_idf"))
        check_flag("option pyramid", self.pyramid)
        check_number("option samples_per_picture", self.samples_per_picture, least=1, whole=True)
        why = ", as many as n_words"
        check_number(
            "option max_samples", self.max_samples, least=self.n_words, whole=True, why=why
        )
        check_number("option seed", self.seed, least=0, whole=True)

    @property
    def dimension(self) -> int:
        """Number of words, times 21 with the pyramid."""
        return self.n_words * (N_CELLS if self.pyramid else 1)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Words, and their weights for 'tf_idf'."""
        words = {"words": (self.n_words, self.length)}
        return words | ({"idf": (self.n_words,)} if self.weighting == "tf_idf" else {})

    @property
    def zero_rows_hint(self) -> str:
        """What to change where 'tf_idf' leaves nothing."""
        if self.weighting != "tf_idf":
            return ""
        return (
            "with weighting tf_idf a word that every training picture has counts for nothing: "
            "raise n_words, or use weighting l1"
        )

    @abstractmethod
    def local_descriptors(self, picture: Picture) -> Local:
        """Local descriptors of a picture, (n, d) float32, and where they are, (n, 2) float64.

        Positions are rows and columns as shares of the height and the width, in [0, 1].
        """

    def contours_of(self, picture: Picture) -> NDArray[np.bool_]:
        """Contours that are described, (h, w) bool."""
        return contour_mask(
            picture,
            contours=self.contours,
            threshold=self.threshold,
            longest_side=self.longest_side,
        )

    def explain(self, picture: Picture) -> list[Layer]:
        """Show the contours, and where local descriptors are: each by its word, once learned."""
        mask = self.contours_of(picture)
        descriptors, positions = self.local_descriptors(picture)
        points = positions * mask.shape - 0.5
        layers: list[Layer] = [
            Seen(f"contours ({self.contours})", mask),
            *self.explain_local(mask),
        ]
        if not self.has_learned:
            return [*layers, Seen(f"{len(points)} descriptors", mask, points=points)]
        words = nearest_words(descriptors, self.learned("words"))
        frequent, groups = most_frequent(words)
        title = f"{len(points)} descriptors, {len(frequent)} most frequent words"
        return [*layers, Seen(title, mask, points=points, groups=groups)]

    def explain_local(self, mask: NDArray[np.bool_]) -> list[Layer]:
        """Show what local descriptors read of the contours."""
        return []

    def fit(self, pictures: Iterable[Picture]) -> Self:
        """Learn words from training pictures.

        Raises
        ------
        InputError
            The pictures have fewer different local descriptors than words; or 'tf_idf' is given
            pictures that can be read only once.
        """
        if self.weighting == "tf_idf" and isinstance(pictures, Iterator):
            raise InputError(
                "option weighting='tf_idf' reads the training pictures twice, but they are an "
                "iterator, which can be read once; give a list, or use weighting='l1'"
            )
        rng = np.random.default_rng(self.seed)
        sample = UniformSample(self.max_samples, rng)
        sample.add(np.empty((0, self.length), dtype=np.float32))
        n_pictures = 0
        for position, picture in enumerate(pictures):
            descriptors, _ = self.local_descriptors(check_picture(picture, position))
            chosen = np.sort(rng.permutation(len(descriptors))[: self.samples_per_picture])
            sample.add(descriptors[chosen])
            n_pictures += 1
        arrays = {"words": learn_words(sample.rows()[0], self.n_words, self.seed, n_pictures)}
        if self.weighting == "tf_idf":
            n_with = np.zeros(self.n_words, dtype=np.int64)
            for picture in pictures:
                found = nearest_words(self.local_descriptors(picture)[0], arrays["words"])
                n_with[np.unique(found)] += 1
            arrays["idf"] = inverse_document_frequency(n_with, n_pictures)
        return self.from_arrays(arrays)

    def remarks(self) -> list[str]:
        """How many words weigh nothing, since every training picture has them."""
        if self.weighting != "tf_idf":
            return []
        n = int(np.count_nonzero(self.learned("idf") == 0))
        if not n:
            return []
        rest = ", so all features are zero" if n == self.n_words else ""
        return [
            f"{n} of {self.n_words} words occur in every training picture, and tf_idf weighs them "
            f"0{rest}; raise n_words, or use weighting l1"
        ]

    def transform(self, pictures: Sequence[Picture]) -> NDArray[np.float32]:
        """Histograms of n pictures, (n, dimension) float32; zeros where there is no contour.

        Raises
        ------
        NotFittedError
            No words were learned yet.
        """
        words = self.learned("words")
        weights = (
            np.tile(self.learned("idf"), N_CELLS if self.pyramid else 1)
            if self.weighting == "tf_idf"
            else np.float32(1)
        )

        def describe(picture: Picture) -> NDArray[np.float64]:
            descriptors, positions = self.local_descriptors(picture)
            found = nearest_words(descriptors, words)
            return weights * word_histogram(found, positions, self.n_words, self.pyramid)

        return rows_of(pictures, self.dimension, describe)


def learn_words(
    descriptors: NDArray[np.float32], n_words: int, seed: int, n_pictures: int
) -> NDArray[np.float32]:
    """Centres of clusters of local descriptors, by mini-batch k-means.

    Parameters
    ----------
    descriptors : (n, d) float32 array
        A sample of the training pictures' descriptors.
    n_words : int
        Number of words.
    seed : int
        Of the starts and of the batches.
    n_pictures : int
        Pictures that the descriptors are of, for the message of the error.

    Returns
    -------
    (n_words, d) float32 array

    Raises
    ------
    InputError
        There are fewer different descriptors than words.
    """
    rows = np.ascontiguousarray(descriptors)
    n_different = len(np.unique(rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1])))))
    if n_different < n_words:
        raise InputError(
            f"{n_different} different local descriptors of {n_pictures} training pictures cannot "
            f"make n_words={n_words} words: give more training pictures, raise "
            "samples_per_picture and max_samples, or lower n_words"
        )
    from sklearn.cluster import MiniBatchKMeans
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    means = MiniBatchKMeans(
        n_words, batch_size=_BATCH, n_init=1, random_state=seed, compute_labels=False
    )
    # The order in which threads add up inertia would decide when it stops.
    with threadpool_limits(limits=1):
        means.fit(rows)
    centres: NDArray[np.float32] = means.cluster_centers_.astype(np.float32)
    return centres


def nearest_words(
    descriptors: NDArray[np.float32], words: NDArray[np.float32]
) -> NDArray[np.int64]:
    """Word of each descriptor, the nearest by Euclidean distance, (n,) int64.

    The nearest of the words w to x has the largest ``x w - |w|^2 / 2``: a matrix product, taken
    in blocks of descriptors that stay in the cache.
    """
    nearest = np.empty(len(descriptors), dtype=np.int64)
    columns = np.ascontiguousarray(words.T)
    half_norms = np.einsum("ij,ij->i", words, words) / 2
    scores = np.empty((min(_BLOCK, len(descriptors)), len(words)), dtype=words.dtype)
    for first in range(0, len(descriptors), _BLOCK):
        block = descriptors[first : first + _BLOCK]
        similarity = np.matmul(block, columns, out=scores[: len(block)])
        similarity -= half_norms
        similarity.argmax(axis=1, out=nearest[first : first + _BLOCK])
    return nearest


def word_histogram(
    words: NDArray[np.integer],
    positions: NDArray[np.floating],
    n_words: int,
    pyramid: bool = False,
) -> NDArray[np.float64]:
    """Share of each word among a picture's local descriptors.

    Parameters
    ----------
    words : (n,) integer array
        Words of the descriptors.
    positions : (n, 2) array
        Their rows and columns as shares of the picture's height and width, in [0, 1].
    n_words : int
        Number of words.
    pyramid : bool
        True if the cells of 1 x 1, 2 x 2 and 4 x 4 grids have histograms of their own, row by
        row, weighted by 1/4, 1/4 and 1/2, so that the intersection of two pyramids is the match
        of Lazebnik, Schmid and Ponce, "Beyond bags of features: spatial pyramid matching for
        recognizing natural scene categories", CVPR 2006.

    Returns
    -------
    (n_words,) or (21 * n_words,) float64 array
        Sums to 1; zeros for a picture without any descriptor.
    """
    levels = PYRAMID if pyramid else ((1, 1.0),)
    histograms = []
    for side, weight in levels:
        cells = np.minimum((positions * side).astype(np.int64), side - 1)
        places = (cells[:, 0] * side + cells[:, 1]) * n_words + words
        counts = np.bincount(places, minlength=side * side * n_words)
        histograms.append(weight * counts / max(len(words), 1))
    return np.concatenate(histograms)


def inverse_document_frequency(
    n_pictures_with: NDArray[np.integer], n_pictures: int
) -> NDArray[np.float32]:
    """Weight of each word, log(n / F) for a word that F of n training pictures have, float32.

    A word that none of them has counts as if one had.
    """
    weights: NDArray[np.float32] = np.log(n_pictures / np.maximum(n_pictures_with, 1)).astype(
        np.float32
    )
    return weights
