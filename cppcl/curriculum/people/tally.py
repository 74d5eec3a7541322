"""Running counts of the answers about the samples of one modality."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from cppcl.curriculum.pairs import ExplicitPairs
from cppcl.curriculum.people.annotators import Reliability, reliability_of_counts
from cppcl.curriculum.people.given_answers import GivenAnswer
from cppcl.curriculum.people.questions import Pair


class Tally:
    """Counts that each answer changes a little, so that the next question need not read all.

    Parameters
    ----------
    ids : sequence of str
        Names of the n samples; answers about others are passed over.

    Attributes
    ----------
    times_answered : Counter of pair
        Number of annotators that answered each pair of rows, skips among them.
    given : dict
        For each annotator, answers by pair of rows.
    """

    def __init__(self, ids: Sequence[str]) -> None:
        self._rows = {name: row for row, name in enumerate(ids)}
        self.times_answered: Counter[Pair] = Counter()
        self.given: dict[str, dict[Pair, GivenAnswer]] = {}
        self._ordered: list[Pair] = []
        self._decided: dict[Pair, list[int]] = {}
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
        """Agreement of the annotators, see `cppcl.curriculum.people.annotators.reliability`."""
        if self._reliability is None:
            self._reliability = reliability_of_counts(self._decided.values())
        return self._reliability
