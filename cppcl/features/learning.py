"""What the extractors that learn from training pictures have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import InputError, NotFittedError
from cppcl.features.base import BaseExtractor, Labelled, Picture
from cppcl.modality import Modality


@dataclass(frozen=True, kw_only=True)
class LearningExtractor(BaseExtractor, ABC):
    """Base of the extractors whose `fit` learns named arrays.

    The fields of a subclass are its options. `fit` of a subclass hands what it learned to
    `from_arrays`.
    """

    learns: ClassVar[bool] = True

    _learned: dict[str, NDArray[Any]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    @abstractmethod
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Names and shapes of what `fit` learns."""

    @abstractmethod
    def fit(self, pictures: Iterable[Picture]) -> Self:
        """Learn from training pictures."""

    def parameters(self) -> dict[str, Any]:
        """Every option with its value, made of JSON types only."""
        return {option.name: getattr(self, option.name) for option in fields(self) if option.init}

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return what `fit` learned, by name.

        Raises
        ------
        NotFittedError
            Nothing was learned yet.
        """
        return {name: self.learned(name) for name in self.shapes}

    def from_arrays(self, arrays: dict[str, NDArray[Any]]) -> Self:
        """Restore what `to_arrays` returned, also that of an extractor with other options.

        Raises
        ------
        InputError
            Names or shapes are not those of `shapes`.
        """
        given = {name: np.shape(array) for name, array in arrays.items()}
        if given != self.shapes:
            raise InputError(
                f"{type(self).__name__} with these options learns {self.shapes}, but was given "
                f"{given}; they belong to another extractor or to other options"
            )
        learned = {name: np.array(array, dtype=np.float32) for name, array in arrays.items()}
        object.__setattr__(self, "_learned", learned)
        return self

    @property
    def has_learned(self) -> bool:
        """True if `fit` has learned something."""
        return bool(self._learned)

    def learned(self, name: str) -> NDArray[Any]:
        """Array that `fit` learned.

        Raises
        ------
        NotFittedError
            Nothing was learned yet.
        """
        if name not in self._learned:
            raise NotFittedError(
                f"{type(self).__name__} has learned nothing yet; call fit with training pictures, "
                "or from_arrays with what another one learned"
            )
        return self._learned[name]


@dataclass(frozen=True, kw_only=True)
class CrossModalExtractor(LearningExtractor, ABC):
    """Base of the extractors that learn from labelled sketches and images at once.

    What they learn serves both modalities; `branch` says which one is described.
    """

    cross_modal: ClassVar[bool] = True

    _modality: Modality = field(default="sketch", init=False, repr=False, compare=False)

    def fit(self, pictures: Iterable[Picture]) -> Self:
        """Refuse: pictures of one modality are not enough.

        Raises
        ------
        InputError
            Always.
        """
        raise InputError(
            f"{type(self).__name__} learns from labelled sketches and images at once; call "
            "fit_both"
        )

    @abstractmethod
    def fit_both(
        self,
        sketches: Iterable[Labelled],
        images: Iterable[Labelled],
        *,
        callback: Callable[[Any], object] | None = None,
        resume_from: Mapping[str, Any] | None = None,
    ) -> Self:
        """Learn from labelled sketches and images."""

    @abstractmethod
    def memory_of_learning(self, n_pictures: int) -> int:
        """Bytes that `fit_both` needs at most for so many pictures."""

    def branch(self, modality: Modality) -> Self:
        """Extractor of one modality, with what this one learned."""
        other = copy(self)
        object.__setattr__(other, "_modality", modality)
        return other


class UniformSample:
    """Uniform random sample of a stream of rows (reservoir sampling).

    Parameters
    ----------
    size : int
        Largest number of rows kept.
    rng : numpy.random.Generator
        Decides which.
    """

    def __init__(self, size: int, rng: np.random.Generator) -> None:
        self.size = size
        self._rng = rng
        self._keys: list[NDArray[np.float64]] = []
        self._blocks: list[tuple[NDArray[Any], ...]] = []
        self._n = 0

    def add(self, *arrays: NDArray[Any]) -> None:
        """Offer rows: arrays of the same length, which stay together."""
        self._keys.append(self._rng.random(len(arrays[0])))
        self._blocks.append(arrays)
        self._n += len(arrays[0])
        if self._n > 2 * self.size:
            self._shrink()

    def rows(self) -> tuple[NDArray[Any], ...]:
        """Return the arrays of the rows that were kept, in the order in which they came.

        Empty where nothing was offered.
        """
        if self._n > self.size or len(self._blocks) > 1:
            self._shrink()
        return self._blocks[0] if self._blocks else ()

    def _shrink(self) -> None:
        keys = np.concatenate(self._keys)
        kept = np.sort(np.argsort(keys, kind="stable")[: self.size])
        columns = [np.concatenate(column)[kept] for column in zip(*self._blocks, strict=True)]
        self._keys, self._blocks, self._n = [keys[kept]], [tuple(columns)], len(kept)
