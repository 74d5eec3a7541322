"""Several extractors as one: the blocks of their vectors, side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import InputError
from cppcl.features.base import (
    BaseExtractor,
    Drawing,
    Extractor,
    Labelled,
    Memory,
    Picture,
)
from cppcl.features.explanation import extracted_layers
from cppcl.features.layers import Layer, titled
from cppcl.modality import Modality
from cppcl.validation import check_number, suggestion

SEPARATOR = "+"
"""Stands between the names of parts."""
WEIGHTS = "weights"
"""Option of a combination beside those of its parts."""


@dataclass(frozen=True, kw_only=True)
class CombinedExtractor(BaseExtractor):
    r"""Vectors of several extractors side by side, each of unit length and weighted.

    With :math:`x_i` the vector of part i and :math:`w_i` its weight, a picture has the blocks
    :math:`w_i x_i / \lVert x_i \rVert_2`, in the order of the parts; a part that gives zeros keeps
    them. The cosine of two vectors without such a block is therefore the mean of the cosines of
    the parts, weighted by :math:`w_i^2`.

    Parameters
    ----------
    parts : sequence of Extractor
        At least two, of different names.
    weights : sequence of float, optional
        One for each part, not negative, and not all 0. All are 1 if None.
    """

    parts: tuple[Extractor, ...]
    weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))
        check_parts([part.name for part in self.parts])
        if self.cross_modal and len(self.learning) > 1:
            raise InputError(
                f"{self.name!r}: {' and '.join(part.name for part in self.learning)} all learn, "
                "and one of them from both modalities at once; combine one such extractor with "
                "those that learn nothing"
            )
        if self.weights is not None:
            object.__setattr__(self, WEIGHTS, self._checked_weights())

    def _checked_weights(self) -> tuple[float, ...]:
        given, n = self.weights, len(self.parts)
        if not isinstance(given, list | tuple) or len(given) != n:
            raise InputError(
                f"option weights={given!r} of {self.name!r} must be {n} numbers, one for each of "
                f"{', '.join(part.name for part in self.parts)}"
            )
        for part, weight in zip(self.parts, given, strict=True):
            check_number(
                f"option weights of {self.name!r}: weight of {part.name}", weight, least=0
            )
        if not any(given):
            raise InputError(
                f"option weights={list(given)} of {self.name!r}: all are 0, which leaves nothing; "
                "make one positive"
            )
        return tuple(map(float, given))

    @property
    def name(self) -> str:
        """Names of the parts, joined by '+'."""
        return SEPARATOR.join(part.name for part in self.parts)

    @property
    def version(self) -> int:
        """Sum of the versions of the parts: it rises whenever one of them does."""
        return sum(part.version for part in self.parts)

    @property
    def device(self) -> Literal["cpu", "gpu"]:
        """'gpu' if a part prefers one."""
        return "gpu" if any(part.device == "gpu" for part in self.parts) else "cpu"

    @property
    def learning(self) -> tuple[Extractor, ...]:
        """Parts that learn."""
        return tuple(part for part in self.parts if part.learns)

    @property
    def learns(self) -> bool:
        """True if a part learns."""
        return bool(self.learning)

    @property
    def cross_modal(self) -> bool:  # type: ignore[override]
        """True if the part that learns does so from both modalities at once."""
        return any(part.cross_modal for part in self.learning)

    @property
    def dimension(self) -> int:
        """Sum of the dimensions of the parts.

        Raises
        ------
        InputError
            A part is a score: its one number would be 1, or -1, in every picture.
        """
        lengths = [part.dimension for part in self.parts]
        for part, length in zip(self.parts, lengths, strict=True):
            if length == 1:
                raise InputError(
                    f"{self.name!r}: {part.name!r} gives a single number, and at unit length only "
                    "its sign would remain; combine extractors of longer vectors"
                )
        return sum(lengths)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Names and shapes of what `fit` learns; see `to_arrays`."""
        return {
            f"{prefix}{name}": shape
            for part, prefix in self._prefixes()
            for name, shape in part.shapes.items()
        }

    def parameters(self) -> dict[str, Any]:
        """Options of each part under its name, and the weights."""
        weights = self.weights or (1.0,) * len(self.parts)
        return {part.name: part.parameters() for part in self.parts} | {WEIGHTS: list(weights)}

    def fit(self, pictures: Iterable[Picture]) -> Self:
        """Let the parts that learn do so, each from all pictures.

        Raises
        ------
        InputError
            Several parts learn, and the pictures can be read only once.
        """
        if len(self.learning) > 1 and isinstance(pictures, Iterator):
            raise InputError(
                f"{self.name!r}: {' and '.join(part.name for part in self.learning)} both read "
                "the training pictures, but these are an iterator, which can be read once; give a "
                "list"
            )
        for part in self.learning:
            part.fit(pictures)
        return self

    def fit_both(
        self,
        sketches: Iterable[Labelled],
        images: Iterable[Labelled],
        *,
        callback: Callable[[Any], object] | None = None,
        resume_from: Mapping[str, Any] | None = None,
    ) -> Self:
        """Let the part that learns from both modalities do so."""
        for part in self.learning:
            part.fit_both(sketches, images, callback=callback, resume_from=resume_from)
        return self

    @property
    def spaces(self) -> dict[str, int]:
        """Name and width of each space of the parts, in their order."""
        return {name: width for part in self.parts for name, width in part.spaces.items()}

    def branch(self, modality: Modality) -> Self:
        """Combination of the parts' branches."""
        if not self.cross_modal:
            return self
        return replace(self, parts=tuple(part.branch(modality) for part in self.parts))

    def memory_of_learning(self, n_pictures: int) -> int:
        """Bytes that the part that learns needs."""
        return sum(part.memory_of_learning(n_pictures) for part in self.learning)

    def transform(self, pictures: Sequence[Picture]) -> NDArray[np.float32]:
        """Vectors of n pictures, (n, dimension) float32.

        Raises
        ------
        NotFittedError
            A part has learned nothing yet.
        """
        return self.join([part.transform(pictures) for part in self.parts])

    def join(self, blocks: Sequence[NDArray[np.floating]]) -> NDArray[np.float32]:
        """Vectors of n pictures, (n, dimension) float32, from those of each part, in its order."""
        rows = np.empty((len(blocks[0]), self.dimension), dtype=np.float32)
        first = 0
        for given, weight in zip(blocks, self.parameters()[WEIGHTS], strict=True):
            # In double precision squares of float32 values neither overflow nor vanish.
            block = given.astype(np.float64)
            norms = np.linalg.norm(block, axis=1, keepdims=True)
            rows[:, first : first + block.shape[1]] = weight * block / np.where(norms, norms, 1)
            first += block.shape[1]
        return rows

    def explain(self, picture: Picture) -> list[Layer]:
        """What each part sees of a picture, and its vector."""
        weights = self.parameters()[WEIGHTS]
        return [
            layer
            for part, weight in zip(self.parts, weights, strict=True)
            for layer in titled(extracted_layers(part, picture), f"{part.name} (x {weight:g}): ")
        ]

    def remarks(self) -> list[str]:
        """What a person should know about what parts learned."""
        return [f"{part.name}: {remark}" for part in self.learning for remark in part.remarks()]

    def memory(self, longest_side: int) -> Memory:
        """What all parts load, and what one of them holds while it describes a picture."""
        needs = [part.memory(longest_side) for part in self.parts]
        return Memory(sum(need.model for need in needs), max(need.working for need in needs))

    @property
    def zero_rows_hint(self) -> str:
        """Hints of the parts."""
        return "; ".join(part.zero_rows_hint for part in self.parts if part.zero_rows_hint)

    def drawing(self) -> Drawing | None:
        """How what the first part learned looks, of those that can be drawn."""
        drawings = (part.drawing() for part in self.learning)
        return next(filter(None, drawings), None)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return what was learned, by name.

        Where one part learns, they are the arrays of that part, so that it and any combination
        with it can use the same; where several do, names begin with that of the part and a dot.
        """
        return {
            f"{prefix}{name}": array
            for part, prefix in self._prefixes()
            for name, array in part.to_arrays().items()
        }

    def from_arrays(self, arrays: dict[str, NDArray[Any]]) -> Self:
        """Restore what `to_arrays` returned.

        Raises
        ------
        InputError
            Names or shapes are not those of `shapes`.
        """
        shapes = self.shapes
        if unknown := set(arrays) - set(shapes):
            raise InputError(
                f"{self.name!r} with these options learns {shapes}, but was given "
                f"{sorted(unknown)}; they belong to another extractor or to other options"
            )
        for part, prefix in self._prefixes():
            part.from_arrays(
                {
                    name.removeprefix(prefix): array
                    for name, array in arrays.items()
                    if name.startswith(prefix)
                }
            )
        return self

    def _prefixes(self) -> Iterator[tuple[Extractor, str]]:
        """Parts that learn, with what their arrays' names begin with."""
        for part in self.learning:
            yield part, f"{part.name}." if len(self.learning) > 1 else ""


def part_names(name: str, known: Mapping[str, type[Extractor]]) -> list[str]:
    """Names of the parts of a combination.

    Parameters
    ----------
    name : str
        Such as 'lks+cnn'.
    known : dict of type
        Extractors that there are, by name.

    Raises
    ------
    InputError
        One of them is unknown, occurs twice or describes no pictures.
    """
    possible = [part for part, extractor in known.items() if extractor.takes_pictures]
    names = name.split(SEPARATOR)
    for part in names:
        if part in known and part not in possible:
            raise InputError(
                f"{name!r} cannot hold {part!r}, which describes no pictures; put matrices side "
                "by side before they are read"
            )
        if part not in possible:
            raise InputError(
                f"no feature extractor {part!r} in {name!r}{suggestion(part, possible)}"
            )
    check_parts(names)
    return names


def check_parts(names: Sequence[str]) -> None:
    """Raise `InputError` unless there are at least two names, none twice."""
    whole = SEPARATOR.join(names)
    if len(names) < 2:
        raise InputError(f"{whole!r} has {len(names)} parts, but a combination needs two or more")
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{whole!r} names {name!r} twice; leave one of them out")


def check_part_options(name: str, names: Sequence[str], options: Mapping[str, Any]) -> None:
    """Raise `InputError` unless each option is `weights` or the options of a part."""
    for option, value in options.items():
        if option not in (*names, WEIGHTS):
            raise InputError(
                f"feature extractor {name!r} has no option {option!r}"
                f"{suggestion(option, (*names, WEIGHTS))}; options of a part stand under its "
                f"name, as in {names[0]}: {{...}}"
            )
        if option != WEIGHTS and value is not None and not isinstance(value, Mapping):
            raise InputError(
                f"option {option}={value!r} of {name!r} must be a mapping of the options of "
                f"{option!r}"
            )
