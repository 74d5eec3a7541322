"""Which sketches are linked with which images, as a product of two thin factors."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import InputError
from cppcl.learning.preparation import Floating
from cppcl.validation import check_links

Labels = Sequence[Hashable] | NDArray[Any]
ClassWeight = Literal["links", "samples", "equal"]


@dataclass(frozen=True)
class Links:
    """Non-negative affinity ``left @ right.T`` (K, L) of sketches and images.

    Class links have rank G in classes, so the factors stay small where the K x L matrix would
    not.

    Parameters
    ----------
    left : sparse matrix, (K, r)
    right : sparse matrix, (L, r)
    """

    left: Any
    right: Any

    def degrees(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Sum of the links of each sketch (K,) and of each image (L,)."""
        sketches = self.left @ np.asarray(self.right.sum(axis=0)).ravel()
        images = self.right @ np.asarray(self.left.sum(axis=0)).ravel()
        return sketches, images

    def weighted(self, sketches: Floating, images: Floating) -> Links:
        """Links times a weight of each sketch (K,) and of each image (L,)."""
        from scipy.sparse import csr_array, diags_array

        left, right = (
            csr_array(diags_array(weights) @ factor)
            for weights, factor in ((sketches, self.left), (images, self.right))
        )
        return Links(left, right)

    def cross_product(self, sketches: Floating, images: Floating) -> NDArray[np.float64]:
        """``sketches.T @ links @ images`` without forming the links, float64."""
        product: NDArray[np.float64] = np.asarray(
            (self.left.T @ sketches).T @ (self.right.T @ images)
        )
        return product

    def content_means(
        self, sketches: Floating, images: Floating
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Mean sketch and mean image of every content, that is of every column of the factors.

        Contents are the classes where labels made the links, and the images where they were
        given.

        Returns
        -------
        weights : (g,) float64
            Sum of the links of each content that has samples in both modalities.
        sketch_means : (g, m_s) float64
        image_means : (g, m_i) float64
        """
        mass = [np.asarray(factor.sum(axis=0)).ravel() for factor in (self.left, self.right)]
        both = np.flatnonzero(mass[0] * mass[1])
        sketch_means, image_means = (
            np.asarray(factor.T @ samples)[both] / of_modality[both, None]
            for factor, samples, of_modality in zip(
                (self.left, self.right), (sketches, images), mass, strict=True
            )
        )
        return (mass[0] * mass[1])[both], sketch_means, image_means

    def draw_pairs(self, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Draw linked pairs: every linked sample of either modality occurs at least once.

        Each linked sample draws one partner, with a probability in proportion to the link; where
        samples have one partner each, the pairs are all that there are.

        Returns
        -------
        sketches, images : (P,) int64
            Row numbers within their modality, sorted, without repetition.
        """
        sketch_rows, images_drawn = _draw_partners(self.left, self.right, rng)
        image_rows, sketches_drawn = _draw_partners(self.right, self.left, rng)
        drawn = np.stack(
            [
                np.concatenate([sketch_rows, sketches_drawn]),
                np.concatenate([images_drawn, image_rows]),
            ]
        )
        sketches, images = np.unique(drawn, axis=1)
        return sketches, images


def _draw_partners(
    own: Any, other: Any, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Linked rows of ``own``, and for each a row of ``other``, drawn by ``own @ other.T``."""
    from scipy.sparse import csr_array, diags_array

    of_column = csr_array(other.T)
    through = csr_array(own @ diags_array(np.asarray(of_column.sum(axis=1)).ravel()))
    rows, columns = _draw_columns(through, np.arange(own.shape[0]), rng)
    return rows, _draw_columns(of_column, columns, rng)[1]


def _draw_columns(
    matrix: Any, rows: NDArray[np.int64], rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows that are not all zero, and for each a column drawn in proportion to its entries."""
    matrix.eliminate_zeros()
    first, last = matrix.indptr[rows], matrix.indptr[rows + 1]
    rows, first, last = (bounds[first < last] for bounds in (rows, first, last))
    below = np.concatenate([[0.0], np.cumsum(matrix.data)])
    target = below[first] + rng.random(len(rows)) * (below[last] - below[first])
    entry = np.searchsorted(below, target, side="right") - 1
    # Rounding may step over the end of a row.
    columns: NDArray[np.int64] = matrix.indices[np.clip(entry, first, last - 1)].astype(np.int64)
    return rows, columns


def class_links(
    sketch_labels: Labels, image_labels: Labels, *, class_weight: ClassWeight = "links"
) -> Links:
    """Link every sketch with every image of the same label.

    Parameters
    ----------
    sketch_labels : array_like, (K,)
    image_labels : array_like, (L,)
    class_weight : {'links', 'samples', 'equal'}
        What the links of a class with k sketches and l images sum to: ``k * l`` (each link
        weighs 1), ``sqrt(k * l)``, or 1.

    Raises
    ------
    InputError
        If no label occurs in both modalities.
    """
    from scipy.sparse import csr_array

    from cppcl.learning.graph import number_labels

    numbers = number_labels(sketch_labels, image_labels)
    n_classes = 1 + max(int(of_modality.max(initial=-1)) for of_modality in numbers)
    sizes = [np.bincount(of_modality, minlength=n_classes) for of_modality in numbers]
    n_links = np.maximum(sizes[0] * sizes[1], 1).astype(np.float64)
    weights = n_links ** {"links": 0.0, "samples": -0.5, "equal": -1.0}[class_weight]
    left, right = (
        csr_array(
            (weight[of_modality], of_modality, np.arange(len(of_modality) + 1)),
            shape=(len(of_modality), n_classes),
        )
        for of_modality, weight in zip(numbers, (weights, np.ones(n_classes)), strict=True)
    )
    links = Links(left, right)
    if not links.degrees()[0].any():
        raise InputError(
            f"sketch_labels (first: {sketch_labels[0]!r}) and image_labels (first: "
            f"{image_labels[0]!r}) share no value, so nothing links the modalities; give labels "
            "that occur in both"
        )
    return links


def given_links(links: Any, n_sketches: int, n_images: int) -> Links:
    """Wrap an affinity matrix (K, L), dense or sparse.

    Raises
    ------
    InputError
        If its shape is another, or it has negative, non-finite or only zero entries.
    """
    from scipy.sparse import eye_array

    matrix = check_links(links, n_sketches, n_images)
    if not matrix.data.any():
        raise InputError("links are all zero; link at least one sketch with an image")
    return Links(matrix, eye_array(n_images, format="csr"))


def numbered_classes(
    sketch_labels: Labels, image_labels: Labels, links: Any
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Numbers of the classes of sketches (K,) and images (L,), from 0.

    Where links (K, L) are given, samples that they connect, directly or through others, are a
    class, and samples without links have the number -1.

    Raises
    ------
    InputError
        If no class has samples of both modalities, or all samples are of one.
    """
    from cppcl.learning.graph import number_labels

    if links is None:
        class_links(sketch_labels, image_labels)
        sketches, images = number_labels(sketch_labels, image_labels)
    else:
        sketches, images = connected(
            given_links(links, len(sketch_labels), len(image_labels)).left
        )
    if max(sketches.max(), images.max()) < 1:
        raise InputError(
            "all samples are of one class, which leaves nothing to tell apart; give samples of "
            "more classes"
            if links is None
            else "links connect all samples, so that they are of one class; give labels instead"
        )
    return sketches, images


def connected(links: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Connected components of links (K, L) as numbers of sketches and images; -1 where alone."""
    from scipy.sparse import block_array
    from scipy.sparse.csgraph import connected_components

    graph = block_array([[None, links], [links.T, None]], format="csr")
    graph.eliminate_zeros()
    component = connected_components(graph, directed=False)[1].astype(np.int64)
    alone = np.bincount(component)[component] == 1
    component[~alone] = np.unique(component[~alone], return_inverse=True)[1]
    component[alone] = -1
    return component[: links.shape[0]], component[links.shape[0] :]
