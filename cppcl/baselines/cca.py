"""Closed form of ridge canonical correlation analysis over weighted links."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.baselines.links import Links
from cppcl.baselines.moments import cross_moment, linked_samples, positive_signs
from cppcl.errors import InputError
from cppcl.learning.preparation import Floating


def canonical_correlation(
    sketches: Floating, images: Floating, links: Links, *, n_directions: int, ridge: float
) -> dict[str, NDArray[Any]]:
    """Directions of largest correlation between linked samples.

    It is the analysis of the list of all linked (sketch, image) pairs, each pair weighted by its
    link, without writing that list down: means and covariances within a modality weigh a sample
    by the sum of its links. The ridge ``r`` adds ``r * (largest eigenvalue)`` to each within-
    modality covariance. The singular vectors of the whitened cross-covariance are the
    directions, its singular values the (ridged) correlations.

    Parameters
    ----------
    sketches : ndarray, (K, m_s)
    images : ndarray, (L, m_i)
    links : Links
        Between K sketches and L images.
    n_directions : int
        Most directions to return; those without correlation are left out.
    ridge : float
        Relative to the largest eigenvalue, so that it means the same at any scale.

    Returns
    -------
    dict
        ``sketch_offset`` (m_s,), ``sketch_projection`` (m_s, d), ``image_offset`` (m_i,),
        ``image_projection`` (m_i, d) and ``correlations`` (d,), float64.

    Raises
    ------
    InputError
        If the linked samples of a modality do not vary, or nothing correlates.

    Notes
    -----
    Vinod, "Canonical ridge and econometrics of joint production", J. Econometrics 1976.
    """
    modalities = linked_samples(sketches, images, links)
    whiteners = [m.axes / np.sqrt(m.variances + ridge * m.variances[0]) for m in modalities]
    left, correlations, right = np.linalg.svd(
        cross_moment(
            links, *(m.deviations @ w for m, w in zip(modalities, whiteners, strict=True))
        ),
        full_matrices=False,
    )
    # Singular vectors of zero are arbitrary: G classes give G - 1 directions.
    d = min(n_directions, int((correlations > 1e-9).sum()))
    if d == 0:
        raise InputError("no direction of the linked sketches and images correlates")
    sketch_projection = whiteners[0] @ left[:, :d]
    signs = positive_signs(sketch_projection)
    return {
        "sketch_offset": modalities[0].offset,
        "sketch_projection": sketch_projection * signs,
        "image_offset": modalities[1].offset,
        "image_projection": whiteners[1] @ right[:d].T * signs,
        "correlations": correlations[:d],
    }
