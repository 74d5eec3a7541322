"""Links of new samples, whose class or partner is not known: what they would pull codes to."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.learning.graph import Laplacian
from cppcl.learning.preparation import unit_rows
from cppcl.validation import Floating

Labels = NDArray[np.int64]

MOST_ENTRIES = 2**24
"""Weights of samples and groups that are held at once."""
PREDICTION_RIDGE = 0.1
"""Ridge of the linear prediction, relative to the mean squared entry of codes."""


def group_codes(
    codes: tuple[Floating, Floating],
    labels: tuple[Labels, Labels],
    weights: tuple[Floating, Floating] | None = None,
) -> tuple[Floating, Floating]:
    """Mean codes of every group that occurs in both modalities, (G, N) for each modality.

    Parameters
    ----------
    codes : pair of ndarray, (n_k, N)
        Codes of the training samples.
    labels : pair of ndarray, (n_k,) int64
        Numbers of their groups, shared by the modalities.
    weights : pair of ndarray, (n_k,), optional
        Weights of the samples in these means, positive.
    """
    shared = np.intersect1d(*labels)
    counts = weights or tuple(np.ones(len(numbers)) for numbers in labels)
    sketches, images = (
        _means(of_side, numbers, shared, of_samples)
        for of_side, numbers, of_samples in zip(codes, labels, counts, strict=True)
    )
    return sketches, images


def _means(codes: Floating, labels: Labels, groups: Labels, weights: Floating) -> Floating:
    from scipy.sparse import csr_array

    taken = np.flatnonzero(np.isin(labels, groups))
    group, weights = np.searchsorted(groups, labels[taken]), weights[taken]
    sums = np.bincount(group, weights, minlength=len(groups))
    shares = csr_array((weights / sums[group], (group, taken)), shape=(len(groups), len(codes)))
    means: Floating = (shares @ codes.astype(np.float64)).astype(codes.dtype)
    return means


def expected_group_codes(
    codes: tuple[Floating, Floating], labels: tuple[Labels, Labels], members: tuple[Any, Any]
) -> tuple[Floating, Floating]:
    """Mean codes of the groups where members are uncertain, (G, N) for each modality.

    Parameters
    ----------
    codes : pair of ndarray, (n_k, N)
        Codes of the training samples.
    labels : pair of ndarray, (n_k,) int64
        Numbers of their groups, as they are given; means are of those in both modalities.
    members : pair of sparse array, (n_k, G)
        Probability that a sample is of each group.
    """
    sums = [of_modality.sum(axis=0) for of_modality in members]
    shared = np.intersect1d(*labels)
    sketches, images = (
        ((of_modality.T @ C.astype(np.float64))[shared] / total[shared, None]).astype(C.dtype)
        for C, of_modality, total in zip(codes, members, sums, strict=True)
    )
    return sketches, images


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


def linear_prediction(codes: Floating, laplacian: Laplacian) -> Floating:
    r"""Map (N, N) from a code to the code that is expected of a linked sample.

    ``R = (C^T D C + r I)^-1 C^T W C``: the regression of the codes of linked samples on a sample's
    own, over all links ``W`` of the graph in both directions, with its row sums ``D`` and a ridge
    r. Directions of codes in which linked samples do not agree are shrunk, as the correlation of
    a canonical direction shrinks it. The expected value of the graph's term ``|c - partner|^2`` is
    ``|c - c0 R|^2`` and a constant, where ``c0`` is the code of the sample alone.

    Parameters
    ----------
    codes : ndarray, (K + L, N)
        Codes of the training samples alone, sketches first.
    laplacian : Laplacian
        The graph of training.

    Returns
    -------
    ndarray, (N, N)
        Applied from the right; zero where all codes are.
    """
    own = codes.astype(np.float64)
    weighted = laplacian.adjacency(np.ones(len(own)))[:, None] * own
    linked = laplacian.adjacency(own)
    second = own.T @ weighted
    ridge = PREDICTION_RIDGE * np.trace(second) / len(second)
    if not ridge:
        return np.zeros(second.shape, dtype=codes.dtype)
    second[np.diag_indices_from(second)] += ridge
    prediction: Floating = np.linalg.solve(second, own.T @ linked).astype(codes.dtype)
    return prediction
