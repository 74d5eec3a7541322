"""A method by someone else: the mean of pairs, which counts what curricula it was given."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cppcl.features.base import MIB
from cppcl.learning.learner import BaseMethod


class Ordered(BaseMethod):
    """Features less the mean of the training samples, easier samples weighing more.

    Parameters
    ----------
    order_weight : float
        Weight of the curricula; 0 leaves them out.
    """

    version: ClassVar[int] = 1

    def __init__(self, *, order_weight: float = 1.0) -> None:
        self.order_weight = order_weight
        self.history_: dict[str, NDArray[Any]] = {}
        self._arrays: dict[str, NDArray[Any]] = {}

    @property
    def uses_curricula(self) -> bool:
        """True if they weigh anything."""
        return self.order_weight > 0

    def memory(self, n_sketches: int, n_images: int, dimensions: tuple[int, int]) -> int:
        """Far more than it takes, so that a test sees whose word counts."""
        return 1111 * MIB

    def fit(
        self,
        sketch_features: NDArray[Any],
        image_features: NDArray[Any],
        sketch_labels: Any,
        image_labels: Any,
        sketch_curriculum: Any = None,
        image_curriculum: Any = None,
        links: Any = None,
    ) -> Self:
        """Learn the means, and note how many pairs there were."""
        given = {"sketch": sketch_curriculum, "image": image_curriculum}
        pairs = [0 if curriculum is None else curriculum.n_pairs for curriculum in given.values()]
        self._arrays = {
            "sketch_mean": sketch_features.mean(axis=0),
            "image_mean": image_features.mean(axis=0),
            "n_pairs": np.array(pairs),
        }
        return self

    def encode_sketches(self, features: NDArray[Any]) -> NDArray[Any]:
        """Sketches less their mean."""
        return features - self._arrays["sketch_mean"]

    def encode_images(self, features: NDArray[Any]) -> NDArray[Any]:
        """Images less their mean."""
        return features - self._arrays["image_mean"]

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """What was learned."""
        return dict(self._arrays)

    def from_arrays(self, arrays: dict[str, NDArray[Any]]) -> Self:
        """Restore what was learned."""
        self._arrays = dict(arrays)
        return self
