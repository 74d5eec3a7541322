"""First and second moments of linked samples, every sample weighing as much as its links."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cppcl.baselines.links import Links
from cppcl.errors import InputError
from cppcl.learning.preparation import Floating, principal_axes
from cppcl.modality import MODALITIES


class LinkedSamples(NamedTuple):
    """The samples of one modality about the mean of those that are linked.

    Parameters
    ----------
    offset : ndarray, (m,) float64
        Weighted mean.
    deviations : ndarray, (n, m) float64
        Samples less the mean.
    axes : ndarray, (m, r) float64
        Principal axes of the weighted covariance, orthonormal columns.
    variances : ndarray, (r,) float64
        Variances along them, largest first.
    """

    offset: NDArray[np.float64]
    deviations: NDArray[np.float64]
    axes: Floating
    variances: Floating


def linked_samples(
    sketches: Floating, images: Floating, links: Links
) -> tuple[LinkedSamples, LinkedSamples]:
    """Centre linked sketches (K, m_s) and images (L, m_i), and find their principal axes.

    They are the moments of the list of all linked (sketch, image) pairs, each pair weighted by
    its link, without writing that list down.

    Raises
    ------
    InputError
        If the linked samples of a modality do not vary.
    """
    described = []
    for modality, name, samples, degree in zip(
        MODALITIES, ("sketches", "images"), (sketches, images), links.degrees(), strict=True
    ):
        weights = degree / degree.sum()
        offset = weights @ samples.astype(np.float64, copy=False)
        deviations = samples - offset
        weighted = np.sqrt(weights * len(samples))[:, None] * deviations
        axes, variances = principal_axes(weighted.astype(samples.dtype, copy=False))
        if variances.size == 0:
            raise InputError(
                f"{modality}_features: the linked {name} are all alike, so nothing can be learned "
                "from them; give more linked samples"
            )
        described.append(LinkedSamples(offset, deviations, axes, variances))
    return described[0], described[1]


def cross_moment(links: Links, sketches: Floating, images: Floating) -> NDArray[np.float64]:
    """Mean over links of the outer product of sketch (K, a) and image (L, b), (a, b)."""
    moment: NDArray[np.float64] = links.cross_product(sketches, images) / links.degrees()[0].sum()
    return moment


def positive_signs(directions: Floating) -> Floating:
    """Signs (d,) that make the entry of largest magnitude of each column (m, d) positive."""
    strongest = np.abs(directions).argmax(axis=0)
    signs: Floating = np.where(
        directions[strongest, np.arange(directions.shape[1])] < 0, -1.0, 1.0
    )
    return signs
