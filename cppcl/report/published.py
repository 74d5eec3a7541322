"""Scores of a publication, and ours beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from cppcl.retrieval.comparison import Interval
from cppcl.retrieval.metrics import summarise

_ROUNDING = 1e-9


def as_printed(value: float, decimals: int) -> str:
    """A number with as many decimals as it was given with, and at least so many."""
    return np.format_float_positional(round(value, 9), min_digits=decimals)


@dataclass(frozen=True)
class BesidePublished:
    """What one method reached, beside what a publication reports of it.

    Parameters
    ----------
    title : str
        Name for people.
    published : float or None
        Reported score in [0, 1]; None where there is none.
    interval : Interval
        Our mean over all splits, and its interval over queries.
    std : float or None
        Deviation over splits (divisor splits - 1); None for a single one.
    first_mean, first_std : float, optional
        Ours over as many splits as the publication has, where there are more.
    """

    title: str
    published: float | None
    interval: Interval
    std: float | None
    first_mean: float | None = None
    first_std: float | None = None

    @property
    def mean(self) -> float:
        """Ours, over all splits."""
        return self.interval.mean

    @property
    def verdict(self) -> Literal["reached", "level", "below"] | None:
        """'reached', 'level' if the interval holds the published score, or 'below'."""
        if self.published is None:
            return None
        if self.mean >= self.published - _ROUNDING:
            return "reached"
        return "level" if self.interval.holds(self.published) else "below"


@dataclass(frozen=True)
class PublishedScores:
    """Scores that a publication reports under one protocol.

    Parameters
    ----------
    source : str
        Where they stand, for people.
    score : str
        ``map`` or ``rank_<k>``.
    values : dict of str to float
        Scores in [0, 1] by the name of our method.
    trials : int, optional
        Number of splits that the publication averages.
    titles : dict of str to str
        Names of methods for people, where they differ.
    """

    source: str
    score: str
    values: Mapping[str, float]
    trials: int | None = None
    titles: Mapping[str, str] = field(default_factory=dict)

    def beside(self, method: str, scores: Sequence[float], interval: Interval) -> BesidePublished:
        """Put scores of a method on each split, and the interval of their mean, beside its own."""
        named = [{"score": score} for score in scores]
        fewer = self.trials is not None and self.trials < len(scores)
        first = summarise(named[: self.trials]) if fewer else {}
        return BesidePublished(
            title=self.titles.get(method, method),
            published=self.values.get(method),
            interval=interval,
            std=summarise(named).get("score_std"),
            first_mean=first.get("score"),
            first_std=first.get("score_std"),
        )
