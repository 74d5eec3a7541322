"""Several curricula over the same samples as one."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.curriculum.base import Curriculum
from cppcl.curriculum.orders import AllPairs, ChainedPairs
from cppcl.curriculum.pairs import ExplicitPairs
from cppcl.curriculum.semiorder import Semiorder
from cppcl.errors import InputError
from cppcl.validation import Floating

ORDERS = {order.kind: order for order in (AllPairs, ChainedPairs)}


class Union:
    """Sum of curricula over the same n samples; every hinge counts alike.

    Parameters
    ----------
    parts : sequence of Curriculum
        At least one, all over as many samples.
    """

    def __init__(self, parts: Sequence[Curriculum]) -> None:
        listed = isinstance(parts, list | tuple)
        if not listed or not all(hasattr(part, "curvature") for part in parts):
            raise InputError(f"parts={reprlib.repr(parts)} must be a list of curricula")
        sizes = {part.n_samples for part in parts}
        if len(sizes) != 1:
            raise InputError(
                f"parts are curricula over {sorted(sizes)} samples; give at least one, all over "
                "the same"
            )
        self.parts: tuple[Curriculum, ...] = tuple(parts)

    @property
    def n_samples(self) -> int:
        """Number of samples n."""
        return self.parts[0].n_samples

    @property
    def n_pairs(self) -> int:
        """Number of hinges of all parts."""
        return sum(part.n_pairs for part in self.parts)

    def value(self, v: Floating) -> float:
        """Sum over the parts at pacing variables v (n,)."""
        return sum(part.value(v) for part in self.parts)

    def smoothed_gradient(self, v: Floating, eps: float) -> tuple[float, Floating]:
        """Value and gradient of the sum of the smooth forms."""
        found = [part.smoothed_gradient(v, eps) for part in self.parts]
        gradient: Floating = np.sum([gradient for _, gradient in found], axis=0)
        return sum(value for value, _ in found), gradient

    def degree(self) -> Floating:
        """Return the number of pairs that each sample takes part in, (n,)."""
        degree: Floating = np.sum([part.degree() for part in self.parts], axis=0)
        return degree

    def curvature(self, eps: float) -> Floating:
        """Diagonal that bounds the Hessian of the sum, (n,)."""
        curvature: Floating = np.sum([part.curvature(eps) for part in self.parts], axis=0)
        return curvature

    def restrict(self, rows: NDArray[np.int64]) -> Union:
        """Keep what concerns the samples `rows` alone, renumbered in their order."""
        return Union([part.restrict(rows) for part in self.parts])

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of all parts, of different kinds."""
        arrays: dict[str, NDArray[Any]] = {}
        for part in self.parts:
            arrays |= curriculum_arrays(part)
        return arrays


def joined(parts: Sequence[Curriculum]) -> Curriculum:
    """One curriculum of several; lists of pairs become one list, which is solved exactly."""
    listed = [part for part in parts if isinstance(part, ExplicitPairs)]
    rest: list[Curriculum] = [part for part in parts if not isinstance(part, ExplicitPairs)]
    if listed:
        pairs = np.concatenate([part.pairs for part in listed])
        rest.insert(0, ExplicitPairs(pairs, listed[0].n_samples))
    return rest[0] if len(rest) == 1 else Union(rest)


def curriculum_arrays(curriculum: Any) -> dict[str, NDArray[np.int64]]:
    """Arrays from which `curriculum_from_arrays` restores a curriculum.

    ``pairs`` (P, 2) of listed pairs, ``all`` or ``chain`` (m, 3) of a semiorder.
    """
    if isinstance(curriculum, ExplicitPairs):
        return {"pairs": curriculum.pairs}
    arrays: dict[str, NDArray[np.int64]] = curriculum.to_arrays()
    return arrays


def curriculum_from_arrays(arrays: dict[str, NDArray[Any]], n_samples: int) -> Curriculum:
    """Restore what `curriculum_arrays` returned, over n samples.

    Raises
    ------
    InputError
        For an array of another name.
    """
    parts: list[Curriculum] = []
    for name, values in arrays.items():
        if name == "pairs":
            parts.append(ExplicitPairs(values.reshape(-1, 2), n_samples))
        elif name in ORDERS:
            columns = values.reshape(-1, 3).astype(np.int64)
            parts.append(ORDERS[name](Semiorder.from_array(columns, n_samples)))
        else:
            raise InputError(f"array {name!r} is of no curriculum; known are pairs, all, chain")
    return joined(parts)
