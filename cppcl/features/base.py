"""What every feature extractor offers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, Self, cast

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import InputError
from cppcl.features.layers import Layer
from cppcl.modality import Modality
from cppcl.pictures.decoding import Picture

__all__ = ["Extractor", "Picture"]


MIB = 2**20
WORKING_ARRAYS = 32
"""Arrays of doubles, of a picture's pixels, that an extractor may hold at once."""


@dataclass(frozen=True)
class Memory:
    """What an extractor needs of a process beside pictures, rows and what it learned, in bytes.

    Attributes
    ----------
    model : int
        Libraries, compiled kernels and weights.
    working : int
        What it holds while it describes a picture.
    """

    model: int
    working: int


@dataclass(frozen=True)
class Drawing:
    """A picture of what was learned, and a caption that says how to read it."""

    picture: Picture
    caption: str


class SilentClass(int):
    """Class of a sketch that trains, but is no query in validation: a pseudo-sketch.

    A number as any other to an extractor that holds nothing out.
    """


Labelled = tuple[Picture, int]
"""A training picture, and the number of its class; perhaps a `SilentClass`."""


class Extractor(Protocol):
    """A function from pictures to rows of numbers.

    The constructor takes keyword arguments only, typed and with defaults: they are the options
    that a user sets, and all of them take part in the key of what is extracted. Constructing is
    cheap and imports nothing heavy: networks are loaded on the first `transform`. A class that
    derives from `StatelessExtractor` or `LearningExtractor` has usual values of what an
    extractor declares about itself.

    Attributes
    ----------
    name : str
        Its name in the registry.
    version : int
        Raised whenever the numbers it returns change.
    device : {'cpu', 'gpu'}
        Where it prefers to run; one that prefers a GPU also runs without.
    learns : bool
        True if `fit` must be called with training pictures before `transform`.
    cross_modal : bool
        True if it learns from labelled pictures of both modalities at once, by `fit_both` in
        place of `fit`, and describes each modality by a `branch` of its own.
    takes_pictures : bool
        False for one that takes rows of numbers, as a data set without pictures has them.
    takes_words : bool
        True if `describe_words` gives rows that can be compared with those of pictures.
    zero_rows_hint : str
        What a user may change where many rows are all zero; empty where nothing is known.
    """

    takes_pictures: ClassVar[bool]

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
    def cross_modal(self) -> bool:
        """See above."""
        ...

    @property
    def takes_words(self) -> bool:
        """See above."""
        ...

    @property
    def zero_rows_hint(self) -> str:
        """See above."""
        ...

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Names and shapes of what `fit` learns; empty where ``learns`` is false."""
        ...

    @property
    def dimension(self) -> int:
        """Length m of a feature vector."""
        ...

    @property
    def spaces(self) -> dict[str, int]:
        """Name and width of each space of a vector, in order; a method may learn on each alone."""
        ...

    def parameters(self) -> dict[str, Any]:
        """Every option with its value, made of JSON types only; files are named by content."""
        ...

    def memory(self, longest_side: int) -> Memory:
        """What it needs at most, with pictures of this longest side in pixels."""
        ...

    def options_from_row(self, row: NDArray[Any]) -> dict[str, Any]:
        """Options that are left open and that a row of the data set settles.

        Asked of one that takes no pictures.
        """
        ...

    def fit(self, pictures: Iterable[Picture]) -> Self:
        """Learn from training pictures; does nothing where ``learns`` is false."""
        ...

    def fit_both(
        self,
        sketches: Iterable[Labelled],
        images: Iterable[Labelled],
        *,
        callback: Callable[[Any], object] | None = None,
        resume_from: Mapping[str, Any] | None = None,
    ) -> Self:
        """Learn from labelled sketches and images, where ``cross_modal`` is true.

        Parameters
        ----------
        sketches, images : iterable of (picture, int)
            Training pictures, each with the number of its class; pictures of one number belong
            together. Each is read once.
        callback : callable, optional
            Told of each round, an object with ``number``, ``n_rounds`` and ``to_arrays``, as
            `cppcl.learning.resuming.Round` has them.
        resume_from : dict, optional
            What ``to_arrays`` of a round returned, to go on from there.
        """
        ...

    def branch(self, modality: Modality) -> Self:
        """Extractor of one modality; it shares what was learned, and may be the extractor itself.

        One with ``cross_modal`` describes sketches where nothing was said.
        """
        ...

    def memory_of_learning(self, n_pictures: int) -> int:
        """Bytes that `fit_both` needs at most for so many pictures."""
        ...

    def transform(self, pictures: Sequence[Picture]) -> NDArray[np.float32]:
        """Features of n pictures, (n, m) float32.

        Each row depends on its own picture alone: how pictures are batched changes no value by
        more than 1e-5.
        """
        ...

    def describe_words(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Features of n texts, (n, m) float32, where ``takes_words`` is true."""
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

    def remarks(self) -> list[str]:
        """What a person should know about what was learned, one sentence each."""
        ...

    def drawing(self) -> Drawing | None:
        """How what was learned looks, for a person; None where it cannot be drawn."""
        ...


class BaseExtractor:
    """Usual values of what an extractor declares about itself.

    A subclass to which one does not apply says otherwise.

    Attributes
    ----------
    libraries : int
        Bytes of libraries and compiled kernels: scikit-image, SciPy, Numba and scikit-learn.
    """

    takes_pictures: ClassVar[bool] = True
    cross_modal: ClassVar[bool] = False
    libraries: ClassVar[int] = 320 * MIB

    @property
    def takes_words(self) -> bool:
        """True if words can be compared with pictures; here not."""
        return False

    def describe_words(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Refuse: it describes pictures alone.

        Raises
        ------
        InputError
            Always.
        """
        raise InputError(
            f"{type(self).__name__} knows no words; use features of 'open_clip', whose encoders do"
        )

    @property
    def zero_rows_hint(self) -> str:
        """What a user may change where many rows are all zero; here nothing is known."""
        return ""

    @property
    def spaces(self) -> dict[str, int]:
        """Name and width of each space of a vector; here a single one."""
        extractor = cast("Extractor", self)
        return {extractor.name: extractor.dimension}

    def memory(self, longest_side: int) -> Memory:
        """What it needs at most: its libraries, and some arrays of a picture's pixels."""
        return Memory(self.libraries, WORKING_ARRAYS * 8 * longest_side**2)

    def fit_both(
        self,
        sketches: Iterable[Labelled],
        images: Iterable[Labelled],
        *,
        callback: Callable[[Any], object] | None = None,
        resume_from: Mapping[str, Any] | None = None,
    ) -> Self:
        """Refuse: it learns from pictures of one modality, or not at all.

        Raises
        ------
        InputError
            Always.
        """
        raise InputError(
            f"{type(self).__name__} does not learn from both modalities at once; call fit"
        )

    def branch(self, modality: Modality) -> Self:
        """Return the extractor itself: it describes both modalities alike."""
        return self

    def memory_of_learning(self, n_pictures: int) -> int:
        """Bytes of `fit_both`; here 0, as there is none."""
        return 0

    def options_from_row(self, row: NDArray[Any]) -> dict[str, Any]:
        """Options that a row of the data set settles; here none."""
        return {}

    def explain(self, picture: Picture) -> list[Layer]:
        """What it sees of a picture, for a person to look at; here nothing beside the vector."""
        return []

    def remarks(self) -> list[str]:
        """What a person should know about what was learned; here nothing."""
        return []

    def drawing(self) -> Drawing | None:
        """How what was learned looks; here it cannot be drawn."""
        return None
