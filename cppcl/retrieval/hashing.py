"""Binary codes by iterative quantisation (ITQ).

Source: Y. Gong, S. Lazebnik: Iterative Quantization: A Procrustean Approach to Learning Binary
Codes, CVPR 2011.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cppcl.errors import InputError
from cppcl.retrieval.exact import checked_codes
from cppcl.validation import check_number

N_ROUNDS = 50
"""Alternations, as published."""

MOST_ROUNDS = 100_000
"""Alternations at most; errors do not fall any more long before."""


@dataclass(frozen=True)
class IterativeQuantization:
    """Projection and rotation that make binary codes.

    Parameters
    ----------
    mean : ndarray, (N,) float64
        Mean of the training codes.
    projection : ndarray, (N, bits) float64
        First principal directions of the training codes, rotated.
    errors : ndarray, (rounds,) float64
        Squared distance of the training codes from their binary codes after each rotation, which
        never grows.
    """

    mean: NDArray[np.float64]
    projection: NDArray[np.float64]
    errors: NDArray[np.float64]

    @classmethod
    def fit(cls, codes: ArrayLike, bits: int, *, n_rounds: int = N_ROUNDS, seed: int = 0) -> Self:
        """Learn from training codes.

        Codes are projected to their principal directions. Then, in turns, their signs are taken,
        and a rotation brings the codes nearest to these (orthogonal Procrustes).

        Parameters
        ----------
        codes : array_like, (n, N)
            Real codes, a row a sample.
        bits : int
            Length of binary codes, at most N.
        n_rounds : int
            Alternations, at least 1.
        seed : int
            Seed of the first rotation.

        Raises
        ------
        InputError
            If there are no codes, fewer entries than bits, or values that are not finite.
        """
        values = _checked(codes)
        check_number("bits", bits, least=1, whole=True)
        check_number("n_rounds", n_rounds, least=1, most=MOST_ROUNDS, whole=True)
        check_number("seed", seed, least=0, whole=True)
        n, length = values.shape
        if bits > length:
            raise InputError(
                f"bits={bits}, and codes have {length} entries; take from 1 to {length} bits"
            )
        if n < 1:
            raise InputError("codes have no row; give those of at least one training sample")
        mean = values.mean(axis=0)
        centred = values - mean
        _, vectors = np.linalg.eigh(centred.T @ centred)
        directions = vectors[:, ::-1][:, :bits]
        projected = centred @ directions
        draw = np.random.default_rng(seed).standard_normal((bits, bits))
        rotation = np.linalg.qr(draw)[0]
        errors = np.empty(n_rounds)
        for number in range(n_rounds):
            binary = signs(projected @ rotation)
            left, _, right = np.linalg.svd(projected.T @ binary)
            rotation = left @ right
            errors[number] = np.sum((binary - projected @ rotation) ** 2)
        return cls(mean, directions @ rotation, errors)

    def transform(self, codes: ArrayLike) -> NDArray[np.int8]:
        """Binary codes, (n, bits) int8 of -1 and 1.

        Their cosine is 1 - 2 h / bits, h the Hamming distance: both rank alike.
        """
        values = _checked(codes)
        if values.shape[1] != len(self.mean):
            raise InputError(
                f"codes have {values.shape[1]} entries, and those of training {len(self.mean)}"
            )
        return signs((values - self.mean) @ self.projection).astype(np.int8)


def signs(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 where a value is 0 or more, else -1."""
    return np.where(values >= 0, 1.0, -1.0)


def _checked(codes: ArrayLike) -> NDArray[np.float64]:
    return checked_codes("codes", codes).astype(np.float64)
