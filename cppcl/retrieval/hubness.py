"""Correction of cosines for hubs: images that are near to every sketch.

Both corrections subtract one number from each image's cosine, which a bank of sketches tells:
with ``s`` the cosine, ``CSLS = 2 s(q, g) - r(g)`` with ``r(g)`` the mean of the k largest
``s(b, g)``; the inverted softmax ranks as ``s(q, g) - T log(mean_b exp(s(b, g) / T))``. What a
sketch itself would subtract changes no ranking.

Either is the cosine of longer codes. With unit codes q and g, ``(a q, 1, 0)`` and
``(g, -r, sqrt(1 - r^2))`` have norms that depend on neither, and the inner product
``a s(q, g) - r(g)``. All that ranks by the cosine then ranks exactly by the corrected one.

Conneau, Lample, Ranzato, Denoyer, Jegou, "Word translation without parallel data", ICLR 2018
(CSLS); Smith, Turban, Hamblin, Hammerla, "Offline bilingual word vectors, orthogonal
transformations and the inverted softmax", ICLR 2017.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cppcl.validation import Floating

Hubness = Literal["none", "csls", "inverted_softmax"]
"""No correction, or one of the two."""

COSINE_WEIGHT = {"csls": 2.0, "inverted_softmax": 1.0}
"""Weight of the cosine, against what is subtracted."""
_ENTRIES = 2**24


def hub_offsets(
    bank: Floating,
    gallery: Floating,
    correction: Hubness,
    *,
    n_neighbors: int = 10,
    temperature: float = 0.1,
) -> NDArray[np.float64]:
    """Number that is subtracted for every image, (g,) float64 in [-1, 1].

    Parameters
    ----------
    bank : ndarray, (b, d)
        Codes of sketches, of unit norm; at least one.
    gallery : ndarray, (g, d)
        Codes of images, of unit norm.
    correction : {'csls', 'inverted_softmax'}
        Which.
    n_neighbors : int
        Sketches that are nearest to an image; at most b.
    temperature : float
        Above 0.
    """
    offsets = np.empty(len(gallery))
    step = max(1, _ENTRIES // len(bank))
    for first in range(0, len(gallery), step):
        part = slice(first, first + step)
        cosines = (gallery[part] @ bank.T).astype(np.float64)
        if correction == "csls":
            k = min(n_neighbors, len(bank))
            offsets[part] = np.partition(cosines, -k, axis=1)[:, -k:].mean(axis=1)
        else:
            largest = cosines.max(axis=1)
            weights = np.exp((cosines - largest[:, None]) / temperature)
            offsets[part] = largest + temperature * np.log(weights.mean(axis=1))
    return np.clip(offsets, -1, 1)


def sketches_with_hubness(codes: Floating, correction: Hubness) -> Floating:
    """Codes (n, d + 2) of sketches whose cosine with those of images is the corrected one.

    ``codes`` (n, d) are of unit norm; zero ones stay zero.
    """
    longer = np.zeros((len(codes), codes.shape[1] + 2), dtype=codes.dtype)
    longer[:, :-2] = COSINE_WEIGHT[correction] * codes
    longer[:, -2] = codes.any(axis=1)
    return longer


def images_with_hubness(codes: Floating, offsets: NDArray[np.float64]) -> Floating:
    """Codes (n, d + 2) of images, of unit norm, with what is subtracted for each; as above."""
    longer = np.zeros((len(codes), codes.shape[1] + 2), dtype=codes.dtype)
    longer[:, :-2] = codes
    held = codes.any(axis=1)
    longer[:, -2] = np.where(held, -offsets, 0)
    longer[:, -1] = np.where(held, np.sqrt(1 - offsets**2), 0)
    return longer
