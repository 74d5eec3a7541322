"""The objective of supervised hashing, and exact steps over codes and class map.

Source: L. Liu, F. Shen, Y. Shen, X. Liu, L. Shao: Deep Sketch Hashing: Fast Free-Hand
Sketch-Based Image Retrieval, CVPR 2017. Weights of samples and the target of different classes are
ours; see docs/equations.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cppcl.validation import Floating

CHUNK = 4096
"""Samples that are held in double precision at once."""
Array = NDArray[np.float64]


@dataclass
class HashedSamples:
    """Samples of one modality, and what is sought for them.

    Parameters
    ----------
    classes : (n,) int64
        Number of each sample's class.
    codes : (n, m) array
        Binary codes, -1 and 1.
    values : (n, m) array
        What the hash functions give for them, before signs are taken.
    weights : (n,) float64
        How much each sample counts.
    """

    classes: NDArray[np.int64]
    codes: Floating
    values: Floating
    weights: Array

    def class_sums(self, n_classes: int, *, weighted: bool) -> Array:
        """Sum of the codes of every class, (G, m)."""
        weights = self.weights if weighted else np.ones(len(self.codes))
        return sums_by_class(self.codes, self.classes, weights, n_classes)

    def second_moments(self, *, weighted: bool) -> Array:
        """Sum of the outer products of the codes, (m, m)."""
        m = self.codes.shape[1]
        moments = np.zeros((m, m))
        for part in parts(len(self.codes)):
            B = self.codes[part].astype(np.float64)
            moments += (B * self.weights[part, None] if weighted else B).T @ B
        return moments

    def class_sizes(self, n_classes: int) -> Array:
        """Number of samples of every class, (G,)."""
        return np.bincount(self.classes, minlength=n_classes).astype(np.float64)


@dataclass
class HashObjective:
    r"""Binary codes of sketches and images whose products tell classes apart.

    With codes b of m bits, ``W_pq`` 1 where samples p and q are of one class and ``-unlike``
    elsewhere, ``e_y`` the indicator of class y, f the values of the hash functions, and weights
    u, the objective is

    ``sum_r u_r l_r + gamma rho |P|^2 / m``,
    ``l_r = mean_q (W_rq - b_r . b_q / m)^2 + lambda |e_r - D b_r|^2 + gamma |f_r - b_r|^2 / m``,

    the sum over samples of both modalities, the mean over the other modality than that of r. W is
    never formed: its products with codes are sums over classes, so that a step takes time and
    memory in proportion to the number of samples.

    Parameters
    ----------
    sketches, images : HashedSamples
        Samples of either modality.
    n_classes : int
        Number G of classes.
    unlike : float
        What products of codes of different classes should be, turned around.
    label_weight, function_weight : float
        Lambda and gamma.

    Attributes
    ----------
    class_map : (G, m) float64
        D, by which codes tell their class; zeros before the first step.
    penalty : float
        ``rho |P|^2`` of the hash functions.
    """

    sketches: HashedSamples
    images: HashedSamples
    n_classes: int
    unlike: float
    label_weight: float
    function_weight: float
    class_map: Array = field(init=False)
    penalty: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        self.class_map = np.zeros((self.n_classes, self.n_bits))

    @property
    def n_bits(self) -> int:
        """Bits m of a code."""
        return int(self.sketches.codes.shape[1])

    def value(self) -> float:
        """Objective at the current state."""
        sides = self.sketches, self.images
        total = sum(float(samples.weights @ self.losses(samples)) for samples in sides)
        return total + self.function_weight / self.n_bits * self.penalty

    def losses(self, samples: HashedSamples) -> Array:
        """Loss of each sample of a modality, (n,)."""
        other, m = self._other(samples), self.n_bits
        moments = other.second_moments(weighted=False) / (m**2 * len(other.codes))
        products = self._products(other, weighted=False) / len(other.codes)
        same = other.class_sizes(self.n_classes) / len(other.codes)
        constant = same + self.unlike**2 * (1 - same)
        losses = np.empty(len(samples.codes))
        for part in parts(len(losses)):
            B, of = samples.codes[part].astype(np.float64), samples.classes[part]
            told = B @ self.class_map.T
            told[np.arange(len(told)), of] -= 1
            missed = samples.values[part] - B
            pairs = constant[of] + _dots(B, B @ moments - 2 * products[of])
            losses[part] = np.maximum(pairs, 0) + self.label_weight * _dots(told, told)
            losses[part] += self.function_weight / m * _dots(missed, missed)
        return losses

    def step_class_map(self) -> None:
        """Set D to its minimiser, that of least norm where there are several."""
        sides = self.sketches, self.images
        sums = sum(samples.class_sums(self.n_classes, weighted=True) for samples in sides)
        moments = sum(samples.second_moments(weighted=True) for samples in sides)
        self.class_map = sums @ np.linalg.pinv(moments, hermitian=True)

    def step_codes(self, samples: HashedSamples) -> int:
        """Set the bits of a modality one after another, each to its minimiser given the others.

        Bits on which nothing depends stay. Returns the number of bits that changed.
        """
        other, m, D = self._other(samples), self.n_bits, self.class_map
        # What counts by the weight of a sample itself, and what by those of the other modality.
        n, n_other = len(samples.codes), len(other.codes)
        own = other.second_moments(weighted=False) / (m**2 * n_other) + self.label_weight * D.T @ D
        pull = self._products(other, weighted=False) / n_other + self.label_weight * D
        common = other.second_moments(weighted=True) / (m**2 * n)
        common_pull = self._products(other, weighted=True) / n
        n_changed = 0
        for part in parts(len(samples.codes)):
            B, of = samples.codes[part].astype(np.float64), samples.classes[part]
            u = samples.weights[part]
            linear = u[:, None] * (pull[of] + self.function_weight / m * samples.values[part])
            linear += common_pull[of]
            n_changed += set_bits(B, own, common, u, linear)
            samples.codes[part] = B
        return n_changed

    def _other(self, samples: HashedSamples) -> HashedSamples:
        """Samples of the other modality."""
        return self.images if samples is self.sketches else self.sketches

    def _products(self, other: HashedSamples, *, weighted: bool) -> Array:
        """Row of ``W B / m`` of a sample of each class, with the codes B of `other`; (G, m)."""
        sums = other.class_sums(self.n_classes, weighted=weighted)
        products: Array = (1 + self.unlike) * sums - self.unlike * sums.sum(axis=0)
        products /= self.n_bits
        return products


def set_bits(codes: Array, own: Array, common: Array, weights: Array, linear: Array) -> int:
    """Minimise ``b (u own + common) b' - 2 r . b`` over every bit of each code in turn, in place.

    Parameters
    ----------
    codes : (n, m) float64
        Codes b, -1 and 1.
    own, common : (m, m) float64
        Symmetric.
    weights : (n,) float64
        A weight u for each code.
    linear : (n, m) float64
        A row r for each code; overwritten.

    Returns
    -------
    int
        Number of bits that changed.
    """
    linear -= weights[:, None] * (codes @ own) + codes @ common
    n_changed = 0
    for k in range(codes.shape[1]):
        pull = linear[:, k] + (weights * own[k, k] + common[k, k]) * codes[:, k]
        changed = np.flatnonzero(pull * codes[:, k] < 0)
        codes[changed, k] *= -1
        step = np.outer(weights[changed], own[k]) + common[k]
        linear[changed] -= 2 * codes[changed, k, None] * step
        n_changed += len(changed)
    return n_changed


def sums_by_class(
    rows: Floating, classes: NDArray[np.int64], weights: Array, n_classes: int
) -> Array:
    """Weighted sum of the rows (n, m) of every class, (G, m)."""
    from scipy.sparse import csr_array

    members = csr_array(
        (weights, classes, np.arange(len(classes) + 1)), shape=(len(classes), n_classes)
    )
    sums: Array = np.asarray(members.T @ rows, dtype=np.float64)
    return sums


def parts(n: int) -> Iterator[slice]:
    """Slices of at most `CHUNK` rows that make up n."""
    return (slice(first, min(first + CHUNK, n)) for first in range(0, n, CHUNK))


def _dots(rows: Array, others: Array) -> Array:
    """Inner product of every row with the same row of the others, (n,)."""
    dots: Array = np.einsum("nm,nm->n", rows, others)
    return dots
