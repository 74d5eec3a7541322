"""Whether a number decides a statement: it must do so for other queries and for other splits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cppcl.retrieval.comparison import Interval, interval_over_splits

LEAST_SPLITS = 3
"""Splits without which nothing is decided."""


@dataclass(frozen=True)
class Finding:
    """A number as it was found in each split.

    Parameters
    ----------
    splits : sequence of float
        The number in each split.
    over_queries : Interval, optional
        Its mean with the interval over queries; None for what no query has a part in.
    """

    splits: Sequence[float]
    over_queries: Interval | None = None

    @property
    def mean(self) -> float:
        """Mean over splits."""
        return sum(self.splits) / len(self.splits)

    @property
    def missing_splits(self) -> int:
        """How many splits are missing for a verdict."""
        return max(0, LEAST_SPLITS - len(self.splits))

    @property
    def over_splits(self) -> Interval | None:
        """Its mean with the interval over splits; None for one split."""
        return interval_over_splits(self.splits) if len(self.splits) > 1 else None

    def above(self, limit: float = 0.0) -> bool | None:
        """Tell if it lies above a limit by more than chance.

        Returns
        -------
        bool or None
            True or False where all intervals lie above the limit, or all below; None where one
            holds it, or where splits are missing.
        """
        intervals = [found for found in (self.over_queries, self.over_splits) if found]
        if self.missing_splits:
            return None
        if all(found.low > limit for found in intervals):
            return True
        return False if all(found.high < limit for found in intervals) else None


def missing_text(number: int) -> str:
    """So many splits are missing."""
    return f"{number} split{'s' if number != 1 else ''} missing"
