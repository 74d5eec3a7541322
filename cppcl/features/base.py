"""What every feature extractor offers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from cppcl.features.layers import Layer
from cppcl.pictures.decoding import Picture

__all__ = ["Extractor", "Picture"]


class Extractor(Protocol):
    """A function from pictures to rows of numbers.

    The constructor takes keyword arguments only, typed and with defaults: they are the options
    that a user sets, and all of them take part in the key of what is extracted. Constructing is
    cheap and imports nothing heavy: networks are loaded on the first `transform`.

    Attributes
    ----------
    name : str
        Its name in the registry.
    version : int
        Raised whenever the numbers it returns change.
    device : {'cpu', 'gpu'}
        Where it prefers to run; one that prefers a GPU also runs without.
    learns : bool
        Whether `fit` must be called with training pictures before `transform`.
    """

    @property
    def name(self) -> str:
        """See above."""
        ...

    @property
    def version(self) -> int:
        """See above."""
        ...

    @property
    def device(self) -> Literal["cpu", "gpu"]:
        """See above."""
        ...

    @property
    def learns(self) -> bool:
        """See above."""
        ...

    @property
    def dimension(self) -> int:
        """Length m of a feature vector."""
        ...

    def parameters(self) -> dict[str, Any]:
        """Every option with its value, made of JSON types only; files are named by content."""
        ...

    def fit(self, pictures: Iterable[Picture]) -> Self:
        """Learn from training pictures; does nothing where ``learns`` is false."""
        ...

    def transform(self, pictures: Sequence[Picture]) -> NDArray[np.float32]:
        """Features of n pictures, (n, m) float32.

        Each row depends on its own picture alone: how pictures are batched changes no value by
        more than 1e-5.
        """
        ...

    def explain(self, picture: Picture) -> list[Layer]:
        """What it sees of a picture, for a person to look at, beside the vector.

        What needs learning is left out before `fit`.
        """
        ...

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return what `fit` learned; empty where ``learns`` is false."""
        ...

    def from_arrays(self, arrays: dict[str, NDArray[Any]]) -> Self:
        """Restore what `to_arrays` returned."""
        ...
