"""Multinomial logistic regression of the classes, trained on both modalities at once."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cppcl.baselines.base import Baseline, SampleWeights, linear_codes
from cppcl.baselines.dictionaries import span
from cppcl.baselines.links import Labels, numbered_classes
from cppcl.errors import ConvergenceWarning, InputError
from cppcl.learning.learner import training_memory
from cppcl.learning.preparation import Floating
from cppcl.modality import MODALITIES, Modality
from cppcl.validation import check_choice, check_number

Output = Literal["probabilities", "logits"]
"""Class probabilities, or the logits less their mean over classes."""
Classes = NDArray[np.int64]

MOST_CLASSES = 1000
"""Time and memory grow with samples times classes; so many take minutes."""
MOST_ITERATIONS = 500
TOLERANCE = 0.01
"""Largest entry of the gradient at the end, relative to that at weights of zero."""
BYTES_A_WEIGHT = 416
"""L-BFGS keeps ten pairs of past steps and gradients in double precision, twice at its end."""


@dataclass(kw_only=True, eq=False, repr=False)
class LogisticRegression(Baseline):
    r"""Class probabilities or logits of a multinomial logistic regression.

    Sketches and images are one training set; labels are the classes, also those that occur in
    one modality alone. Weights of a modality are a part that both share and a part of its own,

    ``W_s = a A + b B``, ``W_i = a A - b B``, ``a^2 = (1 + sharing) / 2``,
    ``b^2 = (1 - sharing) / 2``,

    so that the loss is that of one regression on rows ``(a x, b x)`` for sketches and
    ``(a x, -b x)`` for images: a sketch and an image are as similar as their features, times
    `sharing`.

    Parameters
    ----------
    C : float
        Inverse of the strength of regularisation, as scikit-learn has it: the weight of the sum
        of the samples' losses against half the squared norm of the weights.
    sharing : float
        How much weights of the modalities agree, from 0 (each has its own) to 1 (they are the
        same). For features of one kind: where the modalities differ in their number of features,
        or are projected on principal axes of their own, it is 0.
    output : {'probabilities', 'logits'}
        Codes: class probabilities, or the logits less their mean over classes.
    temperature : float
        Logits are divided by it before they become probabilities. Larger values, and a smaller
        C, keep more of the less likely classes, which new classes and instances resemble.
    sample_weights : {'none', 'agreement'}
        What training samples weigh: all the same, or the probability that they are right, as
        `cppcl.learning.agreement` judges their partner or their label.

    Raises
    ------
    InputError
        By `fit`, if there are fewer than 2 classes, or more than 1,000.

    Notes
    -----
    Fitted by `sklearn.linear_model.LogisticRegression`. Shared and own weights are those of Daume,
    "Frustratingly easy domain adaptation", ACL 2007, in as many columns as features have twice.
    Where `links` are given, samples that they connect, directly or through others, are a class.
    """

    C: float = 10.0
    sharing: float = 0.5
    output: Output = "probabilities"
    temperature: float = 1.0
    sample_weights: SampleWeights = "none"

    def __post_init__(self) -> None:
        check_number("C", self.C, above=0)
        check_number("sharing", self.sharing, least=0)
        if self.sharing > 1:
            raise InputError(f"sharing={self.sharing!r} must be a number from 0 to 1")
        check_choice("output", self.output, Output)
        check_number("temperature", self.temperature, above=0)
        check_choice("sample_weights", self.sample_weights, SampleWeights)
        super().__post_init__()

    @property
    def uses_agreement(self) -> bool:
        """True if samples are weighed by agreement."""
        return self.sample_weights == "agreement"

    def memory(self, n_sketches: int, n_images: int, dimensions: tuple[int, int]) -> int:
        """Bytes that `fit` needs, with at most as many classes as the smaller modality samples."""
        n_classes = min(n_sketches, n_images, MOST_CLASSES)
        n_rows, n_columns = n_sketches + n_images, sum(dimensions)
        values = n_rows * (n_columns + 2 * n_classes) + n_columns**2
        rank = n_rows if 2 * n_rows <= n_columns else n_columns
        return training_memory(values) + n_classes * rank * BYTES_A_WEIGHT

    def _learn(
        self,
        sketches: Floating,
        images: Floating,
        sketch_labels: Labels,
        image_labels: Labels,
        links: Any,
    ) -> dict[str, NDArray[Any]]:
        classes = classes_of(sketch_labels, image_labels, links)
        comparable = sketches.shape[1] == images.shape[1] and not self.preparation.projects
        rows, to_weights = joint_rows(
            sketches[classes[0] >= 0],
            images[classes[1] >= 0],
            self.sharing if comparable else 0.0,
        )
        known = np.concatenate(classes)
        coefficients, intercept = fitted_regression(
            rows,
            known[known >= 0],
            C=self.C,
            weights=None if self._weights is None else np.concatenate(self._weights),
        )
        dtype = rows.dtype
        return {
            f"{modality}_weights": np.ascontiguousarray(W @ coefficients, dtype=dtype)
            for modality, W in zip(MODALITIES, to_weights, strict=True)
        } | {"intercept": intercept.astype(dtype)}

    def _code(self, modality: Modality, prepared: Floating) -> Floating:
        W, intercept = self._fitted(f"{modality}_weights"), self._fitted("intercept")
        logits = linear_codes(prepared, np.zeros(len(W)), W)
        logits += intercept.astype(logits.dtype, copy=False)
        if self.output == "logits":
            centred: Floating = logits - logits.mean(axis=1, keepdims=True)
            return centred
        return softmax(logits / self.temperature)


def softmax(logits: Floating) -> Floating:
    """Probabilities (n, G) of logits (n, G), of the same dtype."""
    probabilities: Floating = np.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    return probabilities


def classes_of(sketch_labels: Labels, image_labels: Labels, links: Any) -> tuple[Classes, Classes]:
    """`cppcl.baselines.links.numbered_classes`, of at most `MOST_CLASSES` classes."""
    sketches, images = numbered_classes(sketch_labels, image_labels, links)
    n_classes = 1 + int(max(sketches.max(), images.max()))
    if n_classes > MOST_CLASSES:
        raise InputError(
            f"there are {n_classes:,} classes, and logistic_regression takes at most "
            f"{MOST_CLASSES:,}, for time and memory; use ridge_cca or class_cca"
        )
    return sketches, images


def joint_rows(
    sketches: Floating, images: Floating, sharing: float
) -> tuple[Floating, tuple[Floating, Floating]]:
    """Rows of both modalities, and the maps from their weights to those of either modality.

    Parameters
    ----------
    sketches : ndarray, (K, m_s)
    images : ndarray, (L, m_i)
    sharing : float
        From 0 to 1; above 0 both modalities have as many features.

    Returns
    -------
    rows : ndarray, (K + L, r)
        Their inner products are those of the features, times `sharing` across modalities.
    maps : pair of ndarray, (m_s, r) and (m_i, r)
        ``sketches @ maps[0]`` are the first rows, ``images @ maps[1]`` the others.
    """
    dtype = np.result_type(sketches, images)
    m_s, m_i = sketches.shape[1], images.shape[1]

    def placed(samples: Floating, modality: Modality) -> Floating:
        samples = samples.astype(dtype, copy=False)
        if not sharing:
            other = np.zeros((len(samples), m_i if modality == "sketch" else m_s), dtype=dtype)
            return np.hstack([samples, other] if modality == "sketch" else [other, samples])
        common, own = (np.sqrt((1 + sign * sharing) / 2).astype(dtype) for sign in (1, -1))
        return np.hstack([common * samples, (own if modality == "sketch" else -own) * samples])

    rows = np.vstack([placed(sketches, "sketch"), placed(images, "image")])
    if 2 * len(rows) > rows.shape[1]:
        return rows, (placed(np.eye(m_s), "sketch"), placed(np.eye(m_i), "image"))
    basis = span(rows)
    first, second = basis[:m_s], basis[m_s:]
    if not sharing:
        return rows @ basis, (first, second)
    common, own = (np.sqrt((1 + sign * sharing) / 2).astype(dtype) for sign in (1, -1))
    return rows @ basis, (common * first + own * second, common * first - own * second)


def fitted_regression(
    rows: Floating, classes: Classes, *, C: float, weights: NDArray[Any] | None = None
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Weights (m, G) and intercept (G,) of a multinomial logistic regression.

    Parameters
    ----------
    rows : ndarray, (n, m)
    classes : ndarray, (n,) int64
        Numbers from 0 to G - 1, each at least once.
    C : float
        Inverse of the strength of regularisation.
    weights : ndarray, (n,), optional
        Weight of each sample's loss; all 1 if None.

    Warns
    -----
    ConvergenceWarning
        If it is not reached in 500 iterations.
    """
    from sklearn.exceptions import ConvergenceWarning as NotConverged
    from sklearn.linear_model import LogisticRegression as Solver

    n_classes = int(classes.max()) + 1
    first = first_gradient(rows, classes, n_classes)
    tolerance = TOLERANCE * float(np.abs(first).max(initial=0.0))
    solver = Solver(C=C, tol=max(tolerance, 1e-12), max_iter=MOST_ITERATIONS)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        solver.fit(rows, classes, sample_weight=weights)
    for warning in caught:
        if issubclass(warning.category, NotConverged):
            warnings.warn(
                f"the regression did not converge within {MOST_ITERATIONS} iterations; a C "
                f"smaller than {C} converges sooner",
                ConvergenceWarning,
                stacklevel=2,
            )
        else:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
    W, intercept = solver.coef_.T, solver.intercept_
    if n_classes == 2:  # scikit-learn gives the difference of the two logits
        W, intercept = np.hstack([-W / 2, W / 2]), np.array([-0.5, 0.5]) * intercept
    return W, intercept


def first_gradient(rows: Floating, classes: Classes, n_classes: int) -> Floating:
    """Gradient (m, G) of the mean loss at weights of zero, turned around."""
    from scipy.sparse import csr_array

    n = len(rows)
    members = csr_array((np.ones(n, rows.dtype), classes, np.arange(n + 1)), shape=(n, n_classes))
    gradient: Floating = (members.T @ rows - rows.sum(axis=0) / n_classes).T / n
    return gradient
