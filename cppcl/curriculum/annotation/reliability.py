"""Agreement between annotators, and running counts of their answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from numpy.typing import NDArray

from cppcl.curriculum.annotation.answers import GivenAnswer
from cppcl.curriculum.annotation.questions import RowPair
from cppcl.curriculum.pairs import ExplicitPairs


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


def krippendorff_alpha(counts: NDArray[np.integer] | Sequence[Sequence[int]]) -> float:
    r"""Krippendorff's alpha of nominal data.

    With :math:`n_{uc}` the annotators that gave unit u the value c, :math:`m_u = \sum_c n_{uc}`,
    :math:`n_c = \sum_u n_{uc}` and :math:`n = \sum_u m_u` over the units with
    :math:`m_u \geq 2`,

    .. math:: \alpha = 1 - \frac{(n - 1) \sum_u (m_u^2 - \sum_c n_{uc}^2) / (m_u - 1)}
                               {n^2 - \sum_c n_c^2}.

    Krippendorff, "Computing Krippendorff's Alpha-Reliability", 2011.

    Parameters
    ----------
    counts : (units, values) array of int
        How many annotators gave each unit each value. Units of fewer than two take no part.

    Returns
    -------
    float
        1 where all agree, about 0 where they agree as often as chance would; NaN where all
        values are equal, or no unit has two.
    """
    table = np.asarray(counts, dtype=np.float64)
    table = table[table.sum(axis=1) > 1]
    of_unit = table.sum(axis=1)
    n = of_unit.sum()
    expected = n**2 - (table.sum(axis=0) ** 2).sum()
    if expected == 0:
        return float("nan")
    disagreeing = (of_unit**2 - (table**2).sum(axis=1)) / (of_unit - 1)
    return float(1 - (n - 1) * disagreeing.sum() / expected)


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
    shared = [count for count in counts if sum(count) > 1]
    if not shared:
        return Reliability(None, 0)
    one_way = np.array(shared, dtype=np.int64)
    both = np.concatenate([one_way, one_way[:, ::-1]])
    return Reliability(krippendorff_alpha(both), len(shared))


@dataclass(frozen=True)
class AnnotatorWork:
    """Counts of one annotator.

    Attributes
    ----------
    annotator : str
        Name of the annotator.
    n_answers, n_skipped : int
        Answers, and how many of them are skips.
    seconds : float or None
        Median time for an answer, if known.
    """

    annotator: str
    n_answers: int
    n_skipped: int
    seconds: float | None


def work_of_annotators(answers: Iterable[GivenAnswer]) -> list[AnnotatorWork]:
    """Counts of each annotator, those with most answers first."""
    by: dict[str, list[GivenAnswer]] = {}
    for answer in answers:
        by.setdefault(answer.annotator, []).append(answer)
    found = []
    for annotator, given in by.items():
        times = [answer.seconds for answer in given if answer.seconds is not None]
        skipped = sum(answer.easier == "skip" for answer in given)
        found.append(
            AnnotatorWork(annotator, len(given), skipped, median(times) if times else None)
        )
    return sorted(found, key=lambda one: (-one.n_answers, one.annotator))


class Tally:
    """Counts that are updated by each answer, so that the next question need not read them all.

    Parameters
    ----------
    ids : sequence of str
        Names of the n samples; answers about others are ignored.

    Attributes
    ----------
    times_answered : Counter of pair
        Number of annotators that answered each pair of rows, skips among them.
    given : dict
        For each annotator, answers by pair of rows.
    """

    def __init__(self, ids: Sequence[str]) -> None:
        self._rows = {name: row for row, name in enumerate(ids)}
        self.times_answered: Counter[RowPair] = Counter()
        self.given: dict[str, dict[RowPair, GivenAnswer]] = {}
        self._ordered: list[RowPair] = []
        self._decided: dict[RowPair, list[int]] = {}
        self._reliability: Reliability | None = None

    def add(self, answer: GivenAnswer) -> None:
        """Count one answer; of one annotator each pair comes once."""
        a, b = self._rows.get(answer.sample_a), self._rows.get(answer.sample_b)
        if a is None or b is None:
            return
        pair = (min(a, b), max(a, b))
        self.given.setdefault(answer.annotator, {})[pair] = answer
        self.times_answered[pair] += 1
        if answer.easier == "skip":
            return
        easier, harder = (a, b) if answer.easier == "a" else (b, a)
        self._ordered.append((harder, easier))
        counts = self._decided.setdefault(pair, [0, 0])
        counts[easier == pair[0]] += 1
        if sum(counts) > 1:
            self._reliability = None

    def pairs(self) -> ExplicitPairs:
        """Return (harder, easier) of every answer that decides, in order."""
        pairs = np.array(self._ordered, dtype=np.int64).reshape(-1, 2)
        return ExplicitPairs(pairs, len(self._rows))

    def reliability(self) -> Reliability:
        """Agreement of the annotators, see `reliability`."""
        if self._reliability is None:
            self._reliability = reliability_of_counts(self._decided.values())
        return self._reliability
