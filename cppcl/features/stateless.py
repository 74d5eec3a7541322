"""What the extractors that learn nothing have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import InputError
from cppcl.features.base import BaseExtractor, Picture


@dataclass(frozen=True, kw_only=True)
class StatelessExtractor(BaseExtractor):
    """Base of the extractors whose options say everything about them.

    The fields of a subclass are its options: `parameters` returns them.
    """

    learns: ClassVar[bool] = False

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Names and shapes of what `fit` learns: none."""
        return {}

    def fit(self, pictures: Iterable[Picture]) -> Self:
        """Return the extractor itself: there is nothing to learn."""
        return self

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return an empty dict: nothing was learned."""
        return {}

    def from_arrays(self, arrays: dict[str, NDArray[Any]]) -> Self:
        """Return the extractor itself.

        Raises
        ------
        InputError
            There are arrays, so they belong to another extractor.
        """
        if arrays:
            raise InputError(
                f"{type(self).__name__} learns nothing, but was given the arrays "
                f"{sorted(arrays)}; they belong to another extractor"
            )
        return self

    def parameters(self) -> dict[str, Any]:
        """Every option with its value, made of JSON types only."""
        return {name: _json_value(value) for name, value in asdict(self).items()}


def _json_value(value: Any) -> Any:
    return [_json_value(item) for item in value] if isinstance(value, tuple) else value


def check_picture(picture: Picture, position: int) -> Picture:
    """Return a picture unchanged after checking its shape and type.

    Raises
    ------
    InputError
        It is not an (H, W, 3) uint8 array with at least one pixel; `position` is named.
    """
    if (
        getattr(picture, "dtype", None) != np.uint8
        or picture.ndim != 3
        or picture.shape[2] != 3
        or picture.size == 0
    ):
        given = (
            f"{picture.dtype} {picture.shape}"
            if isinstance(picture, np.ndarray)
            else type(picture).__name__
        )
        raise InputError(
            f"picture {position} is {given}; pictures are (height, width, 3) uint8 RGB arrays, "
            "as cppcl.pictures.decoding.decode_picture returns them"
        )
    return picture


def rows_of(
    pictures: Sequence[Picture],
    dimension: int,
    describe: Callable[[Picture], NDArray[np.floating] | float],
) -> NDArray[np.float32]:
    """Apply a function to every picture and stack what it returns.

    Parameters
    ----------
    pictures : sequence of (H, W, 3) uint8 arrays
        Checked one by one.
    dimension : int
        Length of each row.
    describe : callable
        From a picture to `dimension` numbers.

    Returns
    -------
    (n, dimension) float32 array
    """
    rows = np.empty((len(pictures), dimension), dtype=np.float32)
    for position, picture in enumerate(pictures):
        rows[position] = describe(check_picture(picture, position))
    return rows
