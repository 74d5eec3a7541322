"""What the items of a reproduction are made of: evaluations, with the options behind them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.report import QueryScores
from cppcl.report.reproduction.verdicts import Finding
from cppcl.retrieval.comparison import Difference, Interval, mean_interval, paired_difference
from cppcl.retrieval.metrics import RankingScores, summarise
from storage import Reference, Store
from tasks.stages.evaluate import open_evaluation


@dataclass(frozen=True)
class Series:
    """One method with one set of options.

    Parameters
    ----------
    title : str
        For people.
    evaluations : sequence of Reference
        Of each split; none where something is missing.
    about : dict
        Plain data: the printed score, notes, the value of an option.
    extra : sequence of Reference
        Other artifacts that are shown with it.
    missing : str
        Why there are no evaluations.
    """

    title: str
    evaluations: Sequence[Reference] = ()
    about: dict[str, Any] = field(default_factory=dict)
    extra: Sequence[Reference] = ()
    missing: str = ""

    @property
    def references(self) -> list[Reference]:
        """Everything it is made from."""
        return [*self.evaluations, *self.extra]

    @property
    def artifacts(self) -> list[str]:
        """The same as text."""
        return list(map(str, self.references))

    def document(self) -> dict[str, Any]:
        """Plain data that, with the references, decides what is shown."""
        return {
            "title": self.title,
            "about": self.about,
            "missing": self.missing,
            "evaluations": len(self.evaluations),
        }


@dataclass(frozen=True)
class MeasuredItem:
    """An item before it is drawn.

    Parameters
    ----------
    name, kind, title, source : str
        Of the item.
    options : dict
        Plain data of its kind.
    series : sequence of Series
        What it is made of.
    notes : sequence of str
        For people.
    message : str
        Why something is missing.
    failed : bool
        True if that was an error, False if the data are not here.
    """

    name: str
    kind: str
    title: str
    source: str
    options: dict[str, Any]
    series: Sequence[Series]
    notes: Sequence[str] = ()
    message: str = ""
    failed: bool = False

    def document(self) -> dict[str, Any]:
        """Plain data that, with the references, decides what is shown."""
        return {
            "name": self.name,
            "kind": self.kind,
            "title": self.title,
            "source": self.source,
            "options": self.options,
            "series": [series.document() for series in self.series],
            "notes": list(self.notes),
            "message": self.message,
            "failed": self.failed,
        }

    def inputs(self) -> Iterator[tuple[str, Reference]]:
        """Names and references of all that it is made from."""
        for number, series in enumerate(self.series):
            for part, reference in enumerate(series.references):
                yield f"{self.name}.{number}.{part}", reference


@dataclass(frozen=True)
class Scores:
    """Scores of one method over splits and queries."""

    evaluations: Sequence[RankingScores]
    queries: Sequence[NDArray[np.int64]]

    @classmethod
    def of(cls, store: Store, series: Series) -> Scores:
        """Read them."""
        return cls(
            [open_evaluation(store, reference) for reference in series.evaluations],
            [store.open(r).array("query_rows") for r in series.evaluations],
        )

    def values(self, score: str) -> list[NDArray[np.float64]]:
        """Score of every query, an array a split."""
        return [
            e.of_queries[score]
            if score in e.of_queries
            else QueryScores(rows, e.first_relevant_rank, e.average_precision).values(score)
            for rows, e in zip(self.queries, self.evaluations, strict=True)
        ]

    def interval(self, score: str) -> Interval:
        """Mean with its interval over queries."""
        return mean_interval(self.values(score), self.queries)

    def deviation(self, score: str) -> float | None:
        """Standard deviation over splits; None for one."""
        named = [{"score": evaluation.scores[score]} for evaluation in self.evaluations]
        return summarise(named).get("score_std")

    def chance(self, score: str) -> float:
        """Expected score of a random ranking."""
        return float(np.mean([evaluation.chance[score] for evaluation in self.evaluations]))

    def minus(self, other: Scores, score: str) -> Difference:
        """Paired difference on the same queries."""
        return paired_difference(self.values(score), other.values(score), self.queries)

    def ahead_of(self, other: Scores, score: str) -> Finding:
        """The same, with the difference in each split."""
        pairs = zip(self.values(score), other.values(score), strict=True)
        return Finding([float(np.nanmean(a - b)) for a, b in pairs], self.minus(other, score))

    def means(self, score: str) -> list[float]:
        """Mean over the queries of each split."""
        return [float(np.nanmean(values)) for values in self.values(score)]

    def empty_codes(self) -> str:
        """How many codes of queries and gallery are all zero, in all splits; '' if none is."""
        zero = sum(e.n_zero_queries + e.n_zero_gallery for e in self.evaluations)
        n = sum(e.n_queries + e.n_gallery for e in self.evaluations)
        return f"{zero} of {n} codes are empty." if zero else ""


def known_scores(store: Store, item: MeasuredItem) -> dict[int, Scores]:
    """Scores of the series that have any, by their number."""
    return {
        place: Scores.of(store, series)
        for place, series in enumerate(item.series)
        if series.evaluations
    }
