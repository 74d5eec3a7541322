"""A method on pairs, as scikit-learn's pipelines and searches give samples: one matrix."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from cppcl.errors import InputError, NotFittedError
from cppcl.validation import Floating, Labels, check_labels, check_matrix, check_number


class PairedMethod(BaseEstimator):  # type: ignore[misc]
    """A method whose samples are pairs: each row is a sketch and, beside it, its image.

    scikit-learn's pipelines and searches pass on one matrix and divide its rows, so a sketch and
    its image must be one row of it. ``GridSearchCV(PairedMethod(CPRL()), {"method__alpha": [0.003,
    0.03]})`` searches options of the method; steps before it see both parts side by side. Where
    there are not as many sketches as images, or they are no pairs, call the method itself, and
    `cppcl.selection.grid_search` to search.

    Parameters
    ----------
    method : object
        With the interface of `cppcl.methods.Method`. It is copied and not fitted itself.
    n_sketch_features : int, optional
        Columns of a row that are of the sketch; None for half of them.

    Attributes
    ----------
    method_ : object
        The copy that was fitted.
    n_features_in_ : int
        Columns of both.
    """

    def __init__(self, method: Any, n_sketch_features: int | None = None) -> None:
        self.method = method
        self.n_sketch_features = n_sketch_features

    def fit(self, X: NDArray[Any], y: Labels | None = None) -> Self:
        """Learn from pairs.

        Parameters
        ----------
        X : array_like, (n, m_s + m_i)
            Features of a sketch and of its image, one pair a row.
        y : array_like, (n,), optional
            Label of each pair: those of equal label belong together. None for an instance each.

        Raises
        ------
        InputError
            What the method raises; or for columns that cannot be divided.
        """
        from sklearn.base import clone

        matrix = check_matrix(X, "X")
        sketches, images = self._divided(matrix)
        labels = self._labels(y, len(matrix))
        self.method_ = clone(self.method).fit(sketches, images, labels, labels)
        self.n_features_in_ = matrix.shape[1]
        return self

    def transform(self, X: NDArray[Any]) -> Floating:
        """Codes (n, 2 d) of pairs: that of the sketch, and beside it that of the image."""
        return np.hstack(self._codes(X))

    def fit_transform(self, X: NDArray[Any], y: Labels | None = None) -> Floating:
        """Learn from pairs and return their codes."""
        return self.fit(X, y).transform(X)

    def score(self, X: NDArray[Any], y: Labels | None = None) -> float:
        """Mean average precision, from 0 to 1, of the images of `X` that its sketches find.

        Parameters
        ----------
        X : array_like, (n, m_s + m_i)
            Pairs.
        y : array_like, (n,), optional
            An image is right where its pair has the label of the sketch's; None for its own alone.
        """
        from cppcl.retrieval.metrics import evaluate

        sketches, images = self._codes(X)
        labels = self._labels(y, len(sketches))
        return evaluate(sketches, images, labels, labels).scores["map"]

    def __sklearn_is_fitted__(self) -> bool:
        """Whether `fit` was called."""
        return hasattr(self, "method_")

    def _codes(self, X: NDArray[Any]) -> tuple[Floating, Floating]:
        if not hasattr(self, "method_"):
            raise NotFittedError("this PairedMethod is not fitted yet; call fit")
        matrix = check_matrix(X, "X")
        if matrix.shape[1] != self.n_features_in_:
            raise InputError(
                f"X has {matrix.shape[1]} columns; in training it had {self.n_features_in_}"
            )
        sketches, images = self._divided(matrix)
        return self.method_.encode_sketches(sketches), self.method_.encode_images(images)

    def _divided(self, matrix: Floating) -> tuple[Floating, Floating]:
        n_columns, at = matrix.shape[1], self.n_sketch_features
        if at is None:
            if n_columns % 2:
                raise InputError(
                    f"X has {n_columns} columns, which are not two parts of one length; say by "
                    "n_sketch_features how many are of the sketch"
                )
            at = n_columns // 2
        check_number("n_sketch_features", at, least=1, whole=True)
        if at >= n_columns:
            raise InputError(
                f"n_sketch_features={at} leaves no column of X for the image: it has {n_columns}"
            )
        return matrix[:, :at], matrix[:, at:]

    @staticmethod
    def _labels(y: Labels | None, n: int) -> list[Any]:
        return list(range(n)) if y is None else check_labels(y, n, "y")
