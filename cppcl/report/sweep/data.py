"""Scores of every method over the values of one or two options: plain data."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cppcl.errors import InputError
from cppcl.retrieval.metrics import summarise


def value_text(value: Any) -> str:
    """Value of an option as YAML takes it; a text as it is."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True)
class Axis:
    """An option and the values that it takes.

    Parameters
    ----------
    option : str
        A name or a dotted path.
    values : tuple
        Plain data (what YAML can hold), each once.
    """

    option: str
    values: tuple[Any, ...]

    def __post_init__(self) -> None:
        texts = [value_text(value) for value in self.values]
        if not texts or len(set(texts)) < len(texts):
            raise InputError(
                f"{self.option} takes the values {texts}; give at least one, each once"
            )

    @property
    def numeric(self) -> bool:
        """Whether every value is a number."""
        return all(isinstance(v, int | float) and not isinstance(v, bool) for v in self.values)

    @property
    def logarithmic(self) -> bool:
        """Whether the values are positive numbers that span a decade or more."""
        if not self.numeric or min(self.values) <= 0:
            return False
        return math.log10(max(self.values)) - math.log10(min(self.values)) > 1 - 1e-9


@dataclass(frozen=True)
class SweepScores:
    """What one method reached under one protocol with one combination of values.

    Parameters
    ----------
    values : tuple
        A value of each axis.
    protocol, method : str
        Their names.
    scores : sequence of float
        Of each split.
    chance : float
        Expected score of a random ranking, averaged over splits.
    """

    values: tuple[Any, ...]
    protocol: str
    method: str
    scores: Sequence[float]
    chance: float

    @property
    def mean(self) -> float:
        """Mean over splits."""
        return summarise([{"score": score} for score in self.scores])["score"]

    @property
    def std(self) -> float | None:
        """Standard deviation over splits (divisor splits - 1); None for a single split."""
        return summarise([{"score": score} for score in self.scores]).get("score_std")


@dataclass(frozen=True)
class SweepData:
    """All that the report of a sweep shows.

    Parameters
    ----------
    experiment : str
        Its name.
    score : str
        Key of the score, such as ``rank_1``.
    axes : sequence of Axis
        One, or two: the first tells panels apart, the last is drawn along x.
    rows : sequence of SweepScores
        Combinations without any row are shown as missing.
    """

    experiment: str
    score: str
    axes: Sequence[Axis]
    rows: Sequence[SweepScores]

    def __post_init__(self) -> None:
        if not 1 <= len(self.axes) <= 2:
            raise InputError(f"a sweep shows one or two options, not {len(self.axes)}")
        if not self.rows:
            raise InputError(f"sweep of {self.experiment!r} has no scores; give at least one row")

    @property
    def protocols(self) -> list[str]:
        """Names of the protocols, in order of appearance."""
        return list(dict.fromkeys(row.protocol for row in self.rows))

    @property
    def methods(self) -> list[str]:
        """Names of the methods of all protocols, in order of appearance."""
        return list(dict.fromkeys(row.method for row in self.rows))

    @property
    def combinations(self) -> list[tuple[Any, ...]]:
        """Every combination of values, the last option fastest."""
        return list(itertools.product(*(axis.values for axis in self.axes)))

    def find(self, protocol: str, method: str, values: tuple[Any, ...]) -> SweepScores | None:
        """What a method reached with a combination; None where it is missing."""
        wanted = (protocol, method, value_text(values))
        for row in self.rows:
            if (row.protocol, row.method, value_text(row.values)) == wanted:
                return row
        return None

    @property
    def missing(self) -> list[tuple[Any, ...]]:
        """Combinations of which nothing is known."""
        known = {value_text(row.values) for row in self.rows}
        return [values for values in self.combinations if value_text(values) not in known]
