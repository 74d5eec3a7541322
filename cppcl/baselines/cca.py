"""Closed form of ridge canonical correlation analysis over weighted links."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.baselines.links import Links
from cppcl.errors import InputError
from cppcl.preparation import Floating, principal_axes


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
        ``image_projection`` (m_i, d), each of its features' dtype, and ``correlations`` (d,).

    Raises
    ------
    InputError
        If the linked samples of a modality do not vary, or nothing correlates.

    Notes
    -----
    Vinod, "Canonical ridge and econometrics of joint production", J. Econometrics 1976.
    """
    degrees = links.degrees()
    total = float(degrees[0].sum())
    centred, offsets, whiteners = [], [], []
    for name, samples, degree in zip(
        ("sketches", "images"), (sketches, images), degrees, strict=True
    ):
        weights = degree / total
        offset = weights @ samples.astype(np.float64, copy=False)
        deviation = samples - offset
        weighted = np.sqrt(weights * len(samples))[:, None] * deviation
        axes, eigenvalues = principal_axes(weighted.astype(samples.dtype, copy=False))
        if eigenvalues.size == 0:
            raise InputError(
                f"the linked {name} are all alike, so nothing can correlate; "
                "give more linked samples"
            )
        centred.append(deviation)
        offsets.append(offset)
        whiteners.append(axes / np.sqrt(eigenvalues + ridge * eigenvalues[0]))
    reduced = [c @ w for c, w in zip(centred, whiteners, strict=True)]
    left, correlations, right = np.linalg.svd(
        links.cross_product(*reduced) / total, full_matrices=False
    )
    # Singular vectors of zero are arbitrary: G classes give G - 1 directions.
    d = min(n_directions, int((correlations > 1e-9).sum()))
    if d == 0:
        raise InputError("no direction of the linked sketches and images correlates")
    sketch_projection = whiteners[0] @ left[:, :d]
    image_projection = whiteners[1] @ right[:d].T
    strongest = np.abs(sketch_projection).argmax(axis=0)
    signs = np.where(sketch_projection[strongest, np.arange(d)] < 0, -1.0, 1.0)
    return {
        "sketch_offset": offsets[0].astype(sketches.dtype),
        "sketch_projection": (sketch_projection * signs).astype(sketches.dtype),
        "image_offset": offsets[1].astype(images.dtype),
        "image_projection": (image_projection * signs).astype(images.dtype),
        "correlations": correlations[:d],
    }
