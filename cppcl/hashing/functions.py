"""Hash functions: ridge regression of bits on features, or on similarities to anchors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from cppcl.baselines.logistic import joint_rows
from cppcl.errors import InputError
from cppcl.hashing.objective import Array, parts
from cppcl.learning.estimator import Estimator
from cppcl.modality import MODALITIES
from cppcl.validation import Floating, check_choice, check_number

FunctionKind = Literal["linear", "kernel"]
"""Whether bits depend on the features, or on similarities to training samples."""
LEAST_RIDGE = 1e-6
"""Below, sums of products in single precision are not positive definite."""


@dataclass(kw_only=True, repr=False)
class HashFunctions(Estimator):
    """How bits follow from features: a sign of a linear function, by ridge regression.

    Parameters
    ----------
    kind : {'linear', 'kernel'}, default 'linear'
        'kernel' replaces features by similarities ``exp(-|x - a|^2 / width)`` to anchors a, drawn
        from the training samples.
    ridge : float, default 0.001
        Weight of the squared norm of the coefficients, relative to the sum of the squared norms
        of the training rows; at least 1e-6.
    sharing : float, default 0.5
        How much coefficients of the modalities agree, as that of
        `cppcl.baselines.LogisticRegression`.
    n_anchors : int, default 1000
        Anchors of 'kernel', or as many as there are samples.
    width : float, default 1
        Of 'kernel', in units of the mean squared distance of training samples to anchors.

    Raises
    ------
    InputError
        For an option out of range.
    """

    kind: FunctionKind = "linear"
    ridge: float = 1e-3
    sharing: float = 0.5
    n_anchors: int = 1000
    width: float = 1.0

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, FunctionKind)
        check_number("ridge", self.ridge, least=LEAST_RIDGE)
        check_number("sharing", self.sharing, least=0)
        if self.sharing > 1:
            raise InputError(f"sharing={self.sharing!r} must be a number from 0 to 1")
        check_number("n_anchors", self.n_anchors, least=1, whole=True)
        check_number("width", self.width, above=0)

    def anchors(
        self, features: tuple[Floating, Floating], comparable: bool, rng: np.random.Generator
    ) -> tuple[Anchors, Anchors] | None:
        """Anchors of both modalities, the same ones where features are comparable."""
        if self.kind == "linear":
            return None
        pools = [np.concatenate(features)] * 2 if comparable else list(features)
        drawn: list[Floating] = []
        for number, pool in enumerate(pools):
            if number and comparable:
                drawn.append(drawn[0])
                continue
            rows = rng.choice(len(pool), min(self.n_anchors, len(pool)), replace=False)
            drawn.append(pool[np.sort(rows)])
        sketches, images = (
            Anchors.among(F, rows, self.width) for F, rows in zip(features, drawn, strict=True)
        )
        return sketches, images


@dataclass(frozen=True)
class Anchors:
    """Similarities of features to some training samples, less their means in training.

    Parameters
    ----------
    rows : (a, d) array
        These samples.
    width : (1,) array
        Squared distance at which the similarity is 1 / e.
    means : (a,) array
        Mean similarity of the training samples of a modality to each.
    """

    rows: Floating
    width: Floating
    means: Floating

    @classmethod
    def among(cls, features: Floating, rows: Floating, width: float) -> Self:
        """Anchors at `rows`; the width is in units of the mean squared distance to them."""
        spread = float(
            np.mean([_squared_distances(features[p], rows).mean() for p in parts(len(features))])
        )
        scale = np.array([max(width * spread, np.finfo(rows.dtype).tiny)], dtype=rows.dtype)
        plain = cls(rows, scale, np.zeros(len(rows), dtype=rows.dtype))
        total = sum(plain.of(features[part]).sum(axis=0) for part in parts(len(features)))
        return cls(rows, scale, np.asarray(total / len(features), dtype=rows.dtype))

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> Self:
        """Restore what `to_arrays` returned."""
        return cls(**arrays)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Everything, by name."""
        return {"rows": self.rows, "width": self.width, "means": self.means}

    def of(self, features: Floating) -> Floating:
        """Similarities (n, a) of features (n, d), less the means."""
        dtype = features.dtype
        distances = _squared_distances(features, self.rows.astype(dtype, copy=False))
        similarity: Floating = np.exp(-distances / self.width.astype(dtype, copy=False))
        similarity -= self.means.astype(dtype, copy=False)
        return similarity


class BitRegression:
    """Weighted ridge regression of bits on the rows of both modalities.

    Minimises ``sum_r u_r |x_r P + p - b_r|^2 + rho |P|^2``. rho is `ridge` times the weighted sum
    of the squared norms of the rows about their mean, at the weights that come first.

    Parameters
    ----------
    features : pair of (n_k, d_k) arrays
        Sketches first.
    weights : (n,) float64
        Weights u of sketches and images.
    ridge : float
        At least `LEAST_RIDGE`.
    sharing : float
        As that of `HashFunctions`; 0 where features are not comparable.
    """

    def __init__(
        self, features: tuple[Floating, Floating], weights: Array, *, ridge: float, sharing: float
    ) -> None:
        self.rows, self.maps = joint_rows(*features, sharing)
        self.coefficients: Array = np.zeros((0, 0))
        self.intercept: Array = np.zeros(0)
        self.rho = 0.0
        gram = self._moments(weights)
        self.rho = ridge * float(np.trace(gram))
        self._factorise(gram)

    def weigh(self, weights: Array) -> None:
        """Change the weights of the samples; rho stays."""
        self._factorise(self._moments(weights))

    def fit(self, targets: Floating) -> Floating:
        """Fit to targets (n, m) and return the values for them, (n, m)."""
        from scipy.linalg import cho_solve

        moments = np.zeros((self.rows.shape[1], targets.shape[1]))
        mean = self._weights @ targets / self._weights.sum()
        for part in parts(len(self.rows)):
            u = self._weights[part, None]
            moments += self.rows[part].T @ (u * (targets[part] - mean)).astype(self.rows.dtype)
        self.coefficients = cho_solve(self._factor, moments)
        self.intercept = mean - self._mean @ self.coefficients
        dtype = self.rows.dtype
        values: Floating = self.rows @ self.coefficients.astype(dtype)
        values += self.intercept.astype(dtype)
        return values

    @property
    def penalty(self) -> float:
        """The term ``rho |P|^2``."""
        return self.rho * float(np.sum(self.coefficients**2))

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Coefficients of the features of either modality, and the intercept."""
        dtype = self.rows.dtype
        coefficients = self.coefficients.astype(dtype)
        return {
            f"{modality}_coefficients": np.ascontiguousarray(of_modality @ coefficients)
            for modality, of_modality in zip(MODALITIES, self.maps, strict=True)
        } | {"intercept": self.intercept.astype(dtype)}

    def _moments(self, weights: Array) -> Array:
        """Weighted sum of the outer products of the rows about their mean; keeps both."""
        self._weights = weights
        self._mean: Array = weights @ self.rows / weights.sum()
        d = self.rows.shape[1]
        moments = np.zeros((d, d))
        for part in parts(len(self.rows)):
            centred = self.rows[part] - self._mean.astype(self.rows.dtype)
            moments += (weights[part, None].astype(centred.dtype) * centred).T @ centred
        return moments

    def _factorise(self, gram: Array) -> None:
        from scipy.linalg import cho_factor

        gram[np.diag_indices_from(gram)] += self.rho
        self._factor = cho_factor(gram, overwrite_a=True)


def _squared_distances(rows: Floating, others: Floating) -> Floating:
    """Squared distances (n, a) of rows (n, d) from others (a, d)."""
    distances = rows @ others.T
    distances *= -2
    distances += np.einsum("nd,nd->n", rows, rows)[:, None]
    distances += np.einsum("ad,ad->a", others, others)
    squared: Floating = np.maximum(distances, 0, out=distances)
    return squared
