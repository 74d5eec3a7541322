"""Feature vectors computed elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import InputError
from cppcl.features.base import MIB
from cppcl.features.stateless import StatelessExtractor
from cppcl.validation import check_number


@dataclass(frozen=True, kw_only=True)
class Precomputed(StatelessExtractor):
    """Rows that are feature vectors already pass through.

    Parameters
    ----------
    length : int or None
        Length that every row must have; that of the first row if None.
    """

    name: ClassVar[str] = "precomputed"
    version: ClassVar[int] = 1
    device: ClassVar[Literal["cpu", "gpu"]] = "cpu"
    takes_pictures: ClassVar[bool] = False
    libraries: ClassVar[int] = 64 * MIB

    length: int | None = None

    def __post_init__(self) -> None:
        if self.length is not None:
            check_number("option length", self.length, least=1, whole=True)

    @property
    def dimension(self) -> int:
        """Length of a row.

        Raises
        ------
        InputError
            Option `length` was not given.
        """
        if self.length is None:
            raise InputError(
                "option length of the feature extractor 'precomputed' is not set, and without "
                "rows their length is unknown; set it to the length of the feature vectors"
            )
        return self.length

    def options_from_row(self, row: NDArray[Any]) -> dict[str, Any]:
        """`length`, where it was not given."""
        return {"length": len(row)} if self.length is None else {}

    def transform(self, pictures: Sequence[NDArray[Any]]) -> NDArray[np.float32]:
        """Stack n rows, (n, length) float32.

        Raises
        ------
        InputError
            A row is no vector of real numbers, differs in length or holds a value that is not
            finite as float32.
        """
        length = self.dimension if self.length is not None or not len(pictures) else None
        rows = []
        for position, given in enumerate(pictures):
            row = np.asarray(given)
            if row.ndim != 1 or row.dtype.kind not in "fiu" or row.size == 0:
                raise InputError(
                    f"row {position} is {row.dtype} {row.shape}; precomputed features are "
                    "vectors of real numbers"
                )
            length = length or len(row)
            if len(row) != length:
                raise InputError(
                    f"row {position} has {len(row)} values, but {length} were expected"
                )
            with np.errstate(over="ignore"):
                row = row.astype(np.float32)
            if not np.isfinite(row).all():
                bad = int(np.flatnonzero(~np.isfinite(row))[0])
                raise InputError(
                    f"value {bad} of row {position} is not finite as float32: {given[bad]}"
                )
            rows.append(row)
        return np.stack(rows) if rows else np.empty((0, self.dimension), dtype=np.float32)
