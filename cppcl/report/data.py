"""What a report shows: plain data, gathered before anything is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cppcl.errors import InputError
from cppcl.features.base import Picture
from cppcl.report.curricula import CurriculumResult
from cppcl.report.pacing import MethodPacing
from cppcl.report.published import BesidePublished, PublishedScores
from cppcl.retrieval.comparison import Difference, mean_interval, paired_difference
from cppcl.retrieval.metrics import CONVENTION, RECALL_LEVELS, RankingScores
from cppcl.retrieval.on_the_fly import Course

_LONGEST_MATCH = 50


@dataclass(frozen=True)
class QueryScores:
    """What one method reached for every query of one split.

    Parameters
    ----------
    queries : array_like, (q,)
        Integers that tell sketches apart: the same sketch has the same in every split.
    first_relevant_rank, average_precision : array_like, (q,)
        As in `cppcl.retrieval.metrics.RankingScores`.
    """

    queries: ArrayLike
    first_relevant_rank: ArrayLike
    average_precision: ArrayLike

    def values(self, score: str) -> NDArray[np.float64]:
        """Score of every query, (q,); NaN for one without any relevant picture.

        Parameters
        ----------
        score : str
            ``map`` for average precision, or ``rank_<k>`` for 1 where a relevant picture is among
            the first k, else 0.

        Raises
        ------
        InputError
            For any other score: it is not known of single queries.
        """
        if score == "map":
            return np.asarray(self.average_precision, np.float64)
        name, _, number = score.partition("_")
        if name != "rank" or not number.isdecimal():
            raise InputError(f"score {score!r} is not known of queries; give map or rank_k")
        ranks = np.asarray(self.first_relevant_rank)
        return np.where(ranks > 0, (ranks <= int(number)) * 1.0, np.nan)


@dataclass(frozen=True)
class MethodResult:
    """Scores of one method under one protocol.

    Parameters
    ----------
    scores : sequence of dict
        `RankingScores.scores` of each split.
    precision_recall : array_like, (101,)
        Mean precision at recall 0, 0.01, ..., 1, averaged over splits.
    cumulative_match : array_like, (K,), optional
        Share of queries with a relevant item among the first 1, ..., K, averaged over splits.
    counts : dict of str to int
        What was counted beside the scores, such as all-zero codes: totals over splits. Bits of
        binary codes are among them.
    history : dict of str to array_like, (iterations,)
        Curves of one training run. A key is ``panel`` or ``panel/curve``: ``objective``,
        ``gamma``, ``mean v/sketch``, ``mean v/image``.
    training : dict of str to float
        How training went, means over splits: seconds, deviation of the pacing variables.
    query_scores : sequence of QueryScores
        Of each split, as `scores`; where there are none, nothing is compared.
    course : Course, optional
        Scores over the course of drawing, means over splits.
    """

    scores: Sequence[Mapping[str, float]]
    precision_recall: ArrayLike
    cumulative_match: ArrayLike | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    history: Mapping[str, ArrayLike] = field(default_factory=dict)
    training: Mapping[str, float] = field(default_factory=dict)
    query_scores: Sequence[QueryScores] = ()
    course: Course | None = None

    def __post_init__(self) -> None:
        if not self.scores:
            raise InputError("scores hold no split; give the scores of at least one")
        if self.query_scores and len(self.query_scores) != len(self.scores):
            raise InputError(
                f"query_scores are of {len(self.query_scores)} splits and scores of "
                f"{len(self.scores)}; give those of every split"
            )
        curve = np.shape(self.precision_recall)
        if curve != RECALL_LEVELS.shape:
            raise InputError(f"precision_recall has shape {curve}; give (101,) precisions")

    @classmethod
    def from_evaluations(
        cls,
        evaluations: Sequence[RankingScores],
        history: Mapping[str, ArrayLike] | None = None,
        queries: Sequence[ArrayLike] = (),
    ) -> Self:
        """Gather the evaluations of one method, one a split, and which sketches they asked."""
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
                **({} if evaluations[0].n_bits is None else {"bits": evaluations[0].n_bits}),
            },
            history=history or {},
            query_scores=[
                QueryScores(rows, e.first_relevant_rank, e.average_precision)
                for rows, e in zip(queries, evaluations, strict=True)
            ]
            if queries
            else (),
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
    published : PublishedScores, optional
        What a publication reports of the same methods.
    curricula : sequence of CurriculumResult
        Of the modalities of one split, where methods were trained with any.
    pacing : MethodPacing, optional
        Of the first method that paces.
    noise : dict of str to float
        Share of training samples that is wrong, by what is; see `cppcl.report.noise`.
    choice : str
        Which method answers, and by which score, where validation chose it.
    """

    name: str
    description: str
    chance: Mapping[str, float]
    methods: Mapping[str, MethodResult]
    main_score: str = "map"
    grid: ResultGrid | None = None
    published: PublishedScores | None = None
    curricula: Sequence[CurriculumResult] = ()
    pacing: MethodPacing | None = None
    choice: str = ""
    noise: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.methods:
            raise InputError(f"protocol {self.name!r} has no methods; give at least one")

    @cached_property
    def differences(self) -> dict[str, Difference]:
        """The first method minus each other one in the main score, by the other's name."""
        first, *others = self.methods
        ours = self.methods[first].query_scores
        return {
            name: paired_difference(
                [split.values(self.main_score) for split in ours],
                [split.values(self.main_score) for split in theirs],
                [split.queries for split in ours],
            )
            for name in others
            if ours and (theirs := self.methods[name].query_scores)
        }

    @cached_property
    def beside_published(self) -> dict[str, BesidePublished]:
        """Every method's score beside the published one, by its name."""
        if self.published is None:
            return {}
        score = self.published.score
        return {
            name: self.published.beside(
                name,
                [split[score] for split in method.scores],
                mean_interval(
                    [split.values(score) for split in method.query_scores],
                    [split.queries for split in method.query_scores],
                ),
            )
            for name, method in self.methods.items()
            if method.query_scores
        }


@dataclass(frozen=True)
class LearnedFeatures:
    """What an extractor learned from training pictures.

    Parameters
    ----------
    artifact : str
        Where it is stored, as ``learn/<key>``.
    extractor : str
        Which one.
    n_pictures : int
        Training pictures that it learned from.
    used_in : sequence of str
        Protocols and splits whose features come from it.
    remarks : sequence of str
        What a person should know about it.
    picture, caption : bytes, str, optional
        How it looks, a PNG, and how to read it.
    """

    artifact: str
    extractor: str
    n_pictures: int
    used_in: Sequence[str]
    remarks: Sequence[str] = ()
    picture: bytes | None = None
    caption: str = ""


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
    learned : sequence of LearnedFeatures
        What extractors learned, where they do.
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
    learned: Sequence[LearnedFeatures] = ()
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


def _cumulative_match(evaluations: Sequence[RankingScores]) -> NDArray[np.float64]:
    longest = min(_LONGEST_MATCH, *(evaluation.n_gallery for evaluation in evaluations))
    k = np.arange(1, longest + 1)
    shares = [
        (ranks[ranks > 0][:, None] <= k).mean(axis=0)
        for ranks in (evaluation.first_relevant_rank for evaluation in evaluations)
    ]
    return np.asarray(np.mean(shares, axis=0), np.float64)
