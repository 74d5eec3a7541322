"""An extractor by someone else: darkness of vertical strips, beside that of training pictures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from cppcl.features.base import MIB, Memory, Picture
from cppcl.features.learning import LearningExtractor
from cppcl.features.stateless import rows_of


@dataclass(frozen=True, kw_only=True)
class Strips(LearningExtractor):
    """Darkness of vertical strips, less the mean of the training pictures.

    Parameters
    ----------
    count : int
        Strips of a picture.
    """

    name: ClassVar[str] = "strips"
    version: ClassVar[int] = 1
    device: ClassVar[Literal["cpu", "gpu"]] = "cpu"

    count: int = 4

    @property
    def dimension(self) -> int:
        """One value a strip."""
        return self.count

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The mean darkness of each strip."""
        return {"darkness": (self.count,)}

    def memory(self, longest_side: int) -> Memory:
        """Far more than it takes, so that a test sees whose word counts."""
        return Memory(model=777 * MIB, working=0)

    def fit(self, pictures: Iterable[Picture]) -> Self:
        """Learn the mean darkness of each strip."""
        return self.from_arrays({"darkness": np.mean([self._of(p) for p in pictures], axis=0)})

    def transform(self, pictures: Sequence[Picture]) -> NDArray[np.float32]:
        """Darkness of each strip less the mean, (n, count)."""
        mean = self.learned("darkness")
        return rows_of(pictures, self.count, lambda picture: self._of(picture) - mean)

    def remarks(self) -> list[str]:
        """How dark training pictures are."""
        return [f"training pictures are {self.learned('darkness').mean():.0%} dark"]

    def _of(self, picture: Any) -> NDArray[np.floating]:
        strips = np.array_split(1 - picture.mean(axis=(0, 2)) / 255, self.count)
        return np.array([strip.mean() for strip in strips])
