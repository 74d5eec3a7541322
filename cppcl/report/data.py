"""What a report shows: plain data, gathered before anything is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cppcl.errors import InputError
from cppcl.features.base import Picture
from cppcl.metrics import CONVENTION, RECALL_LEVELS, Evaluation

_LONGEST_MATCH = 50


@dataclass(frozen=True)
class MethodResult:
    """Scores of one method under one protocol.

    Parameters
    ----------
    scores : sequence of dict
        `Evaluation.scores` of each split.
    precision_recall : array_like, (101,)
        Mean precision at recall 0, 0.01, ..., 1, averaged over splits.
    cumulative_match : array_like, (K,), optional
        Share of queries with a relevant item among the first 1, ..., K, averaged over splits.
    counts : dict of str to int
        What was counted beside the scores, such as all-zero codes; totals over splits.
    history : dict of str to array_like, (iterations,)
        Curves of one training run. A key is ``panel`` or ``panel/curve``: ``objective``,
        ``gamma``, ``mean v/sketch``, ``mean v/image``.
    """

    scores: Sequence[Mapping[str, float]]
    precision_recall: ArrayLike
    cumulative_match: ArrayLike | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    history: Mapping[str, ArrayLike] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.scores:
            raise InputError("scores hold no split; give the scores of at least one")
        curve = np.shape(self.precision_recall)
        if curve != RECALL_LEVELS.shape:
            raise InputError(f"precision_recall has shape {curve}; give (101,) precisions")

    @classmethod
    def from_evaluations(
        cls,
        evaluations: Sequence[Evaluation],
        history: Mapping[str, ArrayLike] | None = None,
    ) -> Self:
        """Gather the evaluations of one method, one a split."""
        if not evaluations:
            raise InputError("evaluations are empty; give at least one split")
        return cls(
            scores=[evaluation.scores for evaluation in evaluations],
            precision_recall=np.mean([e.precision_recall for e in evaluations], axis=0),
            cumulative_match=_cumulative_match(evaluations),
            counts={
                "queries": sum(e.n_queries for e in evaluations),
                "without a relevant picture": sum(e.n_without_relevant for e in evaluations),
                "zero query codes": sum(e.n_zero_queries for e in evaluations),
                "gallery": sum(e.n_gallery for e in evaluations),
                "zero gallery codes": sum(e.n_zero_gallery for e in evaluations),
            },
            history=history or {},
        )


@dataclass(frozen=True)
class RetrievedPicture:
    """One of the nearest pictures: (h, w, 3) uint8, its label, and how it was ranked."""

    picture: Picture
    label: str
    correct: bool
    similarity: float


@dataclass(frozen=True)
class QueryResult:
    """A query picture, (h, w, 3) uint8, and its nearest pictures, nearest first."""

    picture: Picture
    label: str
    nearest: Sequence[RetrievedPicture]

    def __post_init__(self) -> None:
        pictures: list[QueryResult | RetrievedPicture] = [self, *self.nearest]
        for shown in pictures:
            if shown.picture.dtype != np.uint8 or shown.picture.shape[2:] != (3,):
                raise InputError(
                    f"picture of {shown.label!r} has type {shown.picture.dtype} and shape "
                    f"{shown.picture.shape}; give (height, width, 3) uint8"
                )


@dataclass(frozen=True)
class ResultGrid:
    """Queries with their nearest pictures, for one method on one split (counted from 0)."""

    method: str
    split: int
    queries: Sequence[QueryResult]


@dataclass(frozen=True)
class ProtocolResult:
    """Everything measured under one protocol.

    Parameters
    ----------
    name, description : str
        What is retrieved from where, in a sentence.
    chance : dict of str to float
        Expected scores of a random ranking.
    methods : dict of str to MethodResult
        In the order in which they are shown.
    main_score : str
        Key of the score that the protocol is about.
    grid : ResultGrid, optional
        Pictures to look at.
    """

    name: str
    description: str
    chance: Mapping[str, float]
    methods: Mapping[str, MethodResult]
    main_score: str = "map"
    grid: ResultGrid | None = None

    def __post_init__(self) -> None:
        if not self.methods:
            raise InputError(f"protocol {self.name!r} has no methods; give at least one")


@dataclass(frozen=True)
class StageTime:
    """Wall-clock seconds of one stage, and whether its result was there already."""

    stage: str
    seconds: float
    cached: bool


@dataclass(frozen=True)
class ReportData:
    """All that a report shows.

    Parameters
    ----------
    experiment : str
        Its name.
    configuration : dict
        Plain data (what YAML can hold); shown as YAML.
    protocols : sequence of ProtocolResult
        At least one, of different names.
    stages : sequence of StageTime
        In the order in which they ran.
    licences : sequence of str
        Attribution of everything shown or used.
    findings : sequence of str
        Remarks on the data set.
    skipped : sequence of (str, str)
        Path and reason of each picture that could not be used.
    versions : dict of str to str
        Of the software.
    created : str
        When; the only thing that tells two runs on the same inputs apart.
    convention : str
        How scores are computed.
    """

    experiment: str
    configuration: Mapping[str, Any]
    protocols: Sequence[ProtocolResult]
    stages: Sequence[StageTime]
    licences: Sequence[str]
    findings: Sequence[str] = ()
    skipped: Sequence[tuple[str, str]] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    created: str = ""
    convention: str = CONVENTION

    def __post_init__(self) -> None:
        names = [protocol.name for protocol in self.protocols]
        if not names or len(set(names)) != len(names):
            raise InputError(f"protocols are named {names}; give at least one, no name twice")
        for item in fields(self):
            if isinstance(getattr(self, item.name), str) and item.name.endswith("s"):
                raise InputError(f"{item.name} is a text; give a sequence of them")


def _cumulative_match(evaluations: Sequence[Evaluation]) -> NDArray[np.float64]:
    longest = min(_LONGEST_MATCH, *(evaluation.n_gallery for evaluation in evaluations))
    k = np.arange(1, longest + 1)
    shares = [
        (ranks[ranks > 0][:, None] <= k).mean(axis=0)
        for ranks in (evaluation.first_relevant_rank for evaluation in evaluations)
    ]
    return np.asarray(np.mean(shares, axis=0), np.float64)
