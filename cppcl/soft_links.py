"""Links of new samples, whose class is not known, to the classes of training."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.preparation import unit_rows
from cppcl.validation import Floating

Labels = NDArray[np.int64]
MOST_ENTRIES = 2**24
"""Weights of samples and groups that are held at once."""


def group_codes(
    codes: tuple[Floating, Floating], labels: tuple[Labels, Labels]
) -> tuple[Floating, Floating]:
    """Mean codes of every group that occurs in both modalities, (G, N) for each modality.

    Parameters
    ----------
    codes : pair of ndarray, (n_k, N)
        Codes of the training samples.
    labels : pair of ndarray, (n_k,) int64
        Numbers of their groups, shared by the modalities.
    """
    shared = np.intersect1d(*labels)
    sketches, images = (
        _means(of_side, numbers, shared) for of_side, numbers in zip(codes, labels, strict=True)
    )
    return sketches, images


def _means(codes: Floating, labels: Labels, groups: Labels) -> Floating:
    from scipy.sparse import csr_array

    taken = np.flatnonzero(np.isin(labels, groups))
    group = np.searchsorted(groups, labels[taken])
    counts = np.bincount(group, minlength=len(groups))
    shares = csr_array((1 / counts[group], (group, taken)), shape=(len(groups), len(codes)))
    means: Floating = (shares @ codes.astype(np.float64)).astype(codes.dtype)
    return means


def soft_targets(
    codes: Floating, own: NDArray[Any], partner: NDArray[Any], temperature: float
) -> Floating:
    r"""Code that the links of a new sample pull it to, if it belongs to each group by chance.

    ``t = sum_g p_g m_g`` with ``p_g`` proportional to ``exp(cos(c, o_g) / temperature)``, where
    ``o_g`` is the mean code of group g in the sample's own modality and ``m_g`` the mean of its
    means in both. The expected value of the graph's term ``|c - m_g|^2`` is ``|c - t|^2`` and a
    constant.

    Parameters
    ----------
    codes : ndarray, (n, N)
        Codes without links; one that is zero belongs to every group alike.
    own, partner : ndarray, (G, N)
        Mean codes of the groups in the modality of the samples, and in the other.
    temperature : float
        Above 0; the smaller, the more the nearest group counts.

    Returns
    -------
    ndarray, (n, N)
    """
    directions = unit_rows(own.astype(codes.dtype, copy=False)).T
    means = ((own + partner) / 2).astype(codes.dtype, copy=False)
    targets = np.empty_like(codes)
    step = max(1, MOST_ENTRIES // len(own))
    for first in range(0, len(codes), step):
        rows = slice(first, first + step)
        weights = unit_rows(codes[rows]) @ directions / temperature
        weights -= weights.max(axis=1, keepdims=True)
        np.exp(weights, out=weights)
        targets[rows] = weights @ means / weights.sum(axis=1, keepdims=True)
    return targets
