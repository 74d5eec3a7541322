"""How far people agree with each other on which of two samples is easier."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from cppcl.curriculum.people.given_answers import GivenAnswer


@dataclass(frozen=True)
class Reliability:
    """Agreement between annotators.

    Attributes
    ----------
    alpha : float or None
        Krippendorff's alpha: 1 where all agree, 0 where they agree as often as chance would.
        None where no pair was decided by two people.
    n_pairs : int
        Pairs that two people or more decided.
    """

    alpha: float | None
    n_pairs: int


@dataclass(frozen=True)
class Work:
    """What one annotator did.

    Attributes
    ----------
    annotator : str
        Who.
    n_answers, n_skipped : int
        Answers, and how many of them decide nothing.
    seconds : float or None
        Median time for an answer, where it is known.
    """

    annotator: str
    n_answers: int
    n_skipped: int
    seconds: float | None


def reliability(answers: Iterable[GivenAnswer]) -> Reliability:
    """Krippendorff's alpha of nominal data over the pairs that people decided.

    Which sample of a pair is called the first is arbitrary, so each pair counts in both
    directions: both values are then equally frequent, and chance agreement does not depend on how
    samples are named. A skip is a missing value.

    Krippendorff, "Content Analysis: An Introduction to Its Methodology", 4th ed., ch. 12.
    """
    decided: dict[tuple[str, str], dict[str, bool]] = {}
    for answer in answers:
        if answer.easier != "skip":
            first = answer.easier_sample == answer.pair[0]
            decided.setdefault(answer.pair, {})[answer.annotator] = first
    return reliability_of_counts(
        (len(said) - sum(said.values()), sum(said.values())) for said in decided.values()
    )


def reliability_of_counts(counts: Iterable[Sequence[int]]) -> Reliability:
    """Agreement from the number of annotators that decided each pair one way and the other."""
    import krippendorff

    shared = [count for count in counts if sum(count) > 1]
    if not shared:
        return Reliability(None, 0)
    one_way = np.array(shared, dtype=np.int64)
    both = np.concatenate([one_way, one_way[:, ::-1]])
    alpha = krippendorff.alpha(value_counts=both, level_of_measurement="nominal")
    return Reliability(float(alpha), len(shared))


def work(answers: Iterable[GivenAnswer]) -> list[Work]:
    """What each annotator did, those with most answers first."""
    by: dict[str, list[GivenAnswer]] = {}
    for answer in answers:
        by.setdefault(answer.annotator, []).append(answer)
    found = []
    for annotator, given in by.items():
        times = [answer.seconds for answer in given if answer.seconds is not None]
        skipped = sum(answer.easier == "skip" for answer in given)
        found.append(Work(annotator, len(given), skipped, median(times) if times else None))
    return sorted(found, key=lambda one: (-one.n_answers, one.annotator))
