"""Who is asked what: pairs, answers and their counts, apart from the web."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np

from cppcl.curriculum.annotation.answers import (
    CHOICES,
    GivenAnswer,
    TableFormat,
    check_seconds,
    read_lines,
    write_answers,
)
from cppcl.curriculum.annotation.questions import RowPair, least_sure, next_proposal, strengths
from cppcl.curriculum.annotation.reliability import (
    AnnotatorWork,
    Reliability,
    Tally,
    work_of_annotators,
)
from cppcl.errors import InputError
from cppcl.modality import Modality
from deployments.annotate.database import AnswerDatabase
from deployments.annotate.samples import AnnotationSet, Sample

REPEAT_EVERY = 5
"""Of so many questions one is about a pair that someone else answered, if there is any."""
MOST_SHOWN = 10_000
MOST_NAMED = 100
LONGEST_PROBLEM = 500
SHOWN_SECONDS = 300.0
"""How long a pair that someone looks at is kept from others."""


class Question(NamedTuple):
    """Two pictures to be compared, and whether their pair is one of the proposals."""

    left: Sample
    right: Sample
    proposed: bool


@dataclass(frozen=True)
class AnnotationProgress:
    """How far the work on one modality is.

    Attributes
    ----------
    n_proposals : int
        Proposed pairs.
    n_answered : int
        Proposed pairs that someone answered.
    n_mine : int
        Answers of the annotator.
    seconds : float or None
        Their median time for an answer.
    agreement : Reliability
        Of all annotators.
    """

    n_proposals: int
    n_answered: int
    n_mine: int
    seconds: float | None
    agreement: Reliability


@dataclass(frozen=True)
class ImportReport:
    """What became of the lines of a file.

    Attributes
    ----------
    n_new, n_known : int
        Answers that were kept, and that were there before.
    n_wrong : int
        Lines that were left out.
    problems : list of (int, str)
        Number of each of the first `MOST_NAMED` of them, and why.
    """

    n_new: int
    n_known: int
    n_wrong: int
    problems: list[tuple[int, str]]


class Session:
    """The state behind the page; safe to use from several threads.

    Parameters
    ----------
    annotated : AnnotationSet
        Pictures and proposed pairs.
    database : AnswerDatabase
        Where answers are kept.
    clock : callable
        Seconds, for pairs that someone left without an answer.
    """

    def __init__(
        self,
        annotated: AnnotationSet,
        database: AnswerDatabase,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.annotated = annotated
        self.database = database
        self._clock = clock
        self._lock = threading.RLock()
        self._shown: dict[tuple[str, Modality], tuple[RowPair, float]] = {}
        self._tallies: dict[Modality, Tally] = {}
        self._last = self._n_read = 0
        self._rows = {
            modality: {sample.id: row for row, sample in enumerate(side.samples)}
            for modality, side in annotated.modalities.items()
        }

    def question(
        self, annotator: str, modality: Modality, *, hold: bool = True
    ) -> Question | None:
        """Return what to ask someone next; None if all is done.

        With `hold` it is the same until it is answered, and others are asked about other pairs
        for a while, as long as there are any.
        """
        with self._lock:
            side, who = self.annotated.modalities[modality], (annotator, modality)
            tally = self._tally(modality)
            mine = tally.given.get(annotator, {})
            pair = self._shown[who][0] if who in self._shown else None
            if pair is None or pair in mine:
                pair = self._choose(annotator, modality, tally)
            if pair is None:
                self._shown.pop(who, None)
                return None
            if hold or who in self._shown:
                self._hold(who, pair)
            first, second = (side.samples[row] for row in pair)
            if _swapped(annotator, pair):
                first, second = second, first
            return Question(first, second, pair in set(side.proposals))

    def answer(
        self, annotator: str, modality: Modality, left: Any, right: Any, easier: Any, seconds: Any
    ) -> bool:
        """Keep an answer; it is on the disk when this returns.

        Returns
        -------
        bool
            True if it is new.

        Raises
        ------
        InputError
            The pictures are not two of these, or the answer is none.
        ContradictionError
            The same person answered the same pair otherwise.
        """
        rows = self._rows[modality]
        if left not in rows or right not in rows or left == right:
            raise InputError(
                f"left={left!r:.200} and right={right!r:.200} must be ids of two training "
                f"{modality} pictures of this experiment"
            )
        if easier not in CHOICES:
            raise InputError(f"easier={easier!r:.200} must be one of {', '.join(CHOICES)}")
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        given = GivenAnswer(left, right, easier, annotator, check_seconds(seconds), now)
        return self.database.add(given)

    def undo(self, annotator: str, modality: Modality) -> bool:
        """Take back the last answer of someone, and ask it again; False if there is none."""
        rows = self._rows[modality]
        with self._lock:
            taken = self.database.undo(annotator, rows)
            if taken is None:
                return False
            a, b = sorted(rows[name] for name in taken.pair)
            self._hold((annotator, modality), (a, b))
            return True

    def progress(self, annotator: str | None, modality: Modality) -> AnnotationProgress:
        """Count what was done."""
        with self._lock:
            tally, proposals = self._tally(modality), self.annotated.modalities[modality].proposals
            mine = list(tally.given.get(annotator or "", {}).values())
            return AnnotationProgress(
                len(proposals),
                sum(pair in tally.times_answered for pair in proposals),
                len(mine),
                work_of_annotators(mine)[0].seconds if mine else None,
                tally.reliability(),
            )

    def work(self) -> list[AnnotatorWork]:
        """What each annotator did, over both modalities."""
        return work_of_annotators(self.database.answers())

    def export(self, kind: TableFormat, modality: Modality | None = None) -> str:
        """Text of a table of answers, of one modality or of both."""
        kinds = self.annotated.modality_of
        answers = self.database.answers()
        return write_answers(
            (a for a in answers if modality is None or kinds[a.sample_a] == modality), kind
        )

    def take_in(self, text: str, kind: TableFormat, annotator: str = "imported") -> ImportReport:
        """Import a table of answers; lines that are wrong are left out and reported.

        Raises
        ------
        InputError
            If the head of a table lacks a column.
        """
        good: list[tuple[int, GivenAnswer]] = []
        problems: list[tuple[int, str]] = []
        n_wrong = 0
        for line in read_lines(text, kind, annotator=annotator):
            problem = line.problem
            if line.answer is not None:
                problem = self._problem(line.answer)
                if not problem:
                    good.append((line.number, line.answer))
            if problem:
                n_wrong += 1
                if n_wrong <= MOST_NAMED:
                    problems.append((line.number, problem[:LONGEST_PROBLEM]))
        outcomes = self.database.add_imported(answer for _, answer in good)
        for (number, _), outcome in zip(good, outcomes, strict=True):
            if outcome not in ("", "known"):
                n_wrong += 1
                problems.append((number, outcome))
        named = sorted(problems)[:MOST_NAMED]
        return ImportReport(outcomes.count(""), outcomes.count("known"), n_wrong, named)

    def _problem(self, answer: GivenAnswer) -> str:
        """Say what keeps an answer of a file from being of use; nothing does as a rule."""
        names = (answer.sample_a, answer.sample_b)
        unknown = [name for name in names if name not in self.annotated.modality_of]
        if unknown:
            return (
                f"{' and '.join(map(repr, unknown))} {'is' if len(unknown) == 1 else 'are'} no "
                f"sample of the experiment {self.annotated.experiment!r}"
            )
        if len({self.annotated.modality_of[name] for name in names}) > 1:
            return f"{names[0]!r} and {names[1]!r} are a sketch and an image; they have no order"
        return ""

    def _hold(self, who: tuple[str, Modality], pair: RowPair) -> None:
        """Keep a pair for someone; those who looked longest ago give theirs up."""
        self._shown.pop(who, None)
        self._shown[who] = pair, self._clock()
        while len(self._shown) > MOST_SHOWN:
            del self._shown[next(iter(self._shown))]

    def _choose(self, annotator: str, modality: Modality, tally: Tally) -> RowPair | None:
        side, times = self.annotated.modalities[modality], tally.times_answered
        mine = tally.given.get(annotator, {}).keys()
        latest = self._clock() - SHOWN_SECONDS
        shown = {
            pair
            for (_, label), (pair, since) in self._shown.items()
            if label == modality and since > latest
        }
        again = len(mine) % REPEAT_EVERY == REPEAT_EVERY - 1
        easiness = None
        # Where others look at all that is left, it is asked twice.
        for kept in (shown, set[RowPair]()):
            pair = next_proposal(side.proposals, times, mine, kept, again=again)
            if pair is not None:
                return pair
            if easiness is None:
                easiness = strengths(tally.pairs())
                easiness[~side.usable] = np.nan
            pair = least_sure(easiness, side.classes, times, mine, kept)
            if pair is not None:
                return pair
        return None

    def _tally(self, modality: Modality) -> Tally:
        """Counts of a modality with the answers that came since they were last asked for."""
        new = self.database.answers_after(self._last)
        if not self._tallies or self._n_read + len(new) != self.database.n_answers:
            # The first time, or some were taken back.
            self._tallies = {m: Tally(list(rows)) for m, rows in self._rows.items()}
            self._n_read = 0
            new = self.database.answers_after(0)
        for number, given in new:
            self._last = number
            for tally in self._tallies.values():
                tally.add(given)
        self._n_read += len(new)
        return self._tallies[modality]


def _swapped(annotator: str, pair: RowPair) -> bool:
    """True if the higher row is shown on the left: random, but always the same for a pair."""
    seed = np.random.SeedSequence([*annotator.encode(), *pair])
    return bool(seed.generate_state(1)[0] & 1)
