"""Answers on disk: an SQLite file that survives the death of its writer at any moment."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from cppcl.curriculum.annotation.answers import GivenAnswer
from cppcl.errors import InputError
from deployments.web.database import ExperimentDatabase

COLUMNS = "sample_a, sample_b, easier, annotator, seconds, answered_at"


class ContradictionError(InputError):
    """Someone answered the same pair otherwise before."""


class AnswerDatabase(ExperimentDatabase):
    """Answers of one experiment in one file.

    Every answer is synchronised to the disk before `add` returns. Any number of threads and
    processes may use a file at the same time.

    Parameters
    ----------
    path : Path
        File, made if it is not there.
    experiment : str
        Whose pictures the answers are about.
    ids : collection of str
        Ids of its samples.

    Raises
    ------
    InputError
        The file is no such database, or is about other pictures.
    CppclError
        It cannot be opened or written.
    """

    application = 0x63707041  # "cppA"
    schema = """
CREATE TABLE answers (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    sample_a TEXT NOT NULL,
    sample_b TEXT NOT NULL,
    easier TEXT NOT NULL CHECK (easier IN ('a', 'b', 'skip')),
    annotator TEXT NOT NULL,
    seconds REAL,
    answered_at TEXT NOT NULL,
    imported INTEGER NOT NULL,
    CHECK (sample_a <> sample_b)
) STRICT;
-- One answer a person and pair, whichever side its samples were shown on.
CREATE UNIQUE INDEX one_answer
    ON answers (annotator, min(sample_a, sample_b), max(sample_a, sample_b));
"""

    def __init__(self, path: Path, experiment: str, ids: Collection[str]) -> None:
        super().__init__(path, experiment)
        try:
            self._check(experiment, ids)
        except BaseException:
            self.close()
            raise

    @property
    def n_answers(self) -> int:
        """Number of stored answers, of all people."""
        with self._lock, self._explained():
            (count,) = self._connection.execute("SELECT count(*) FROM answers").fetchone()
            return int(count)

    def add(self, answer: GivenAnswer) -> bool:
        """Keep an answer; it is on the disk when this returns.

        Returns
        -------
        bool
            True if it is new; the same answer again changes nothing.

        Raises
        ------
        ContradictionError
            The same person answered the same pair otherwise.
        """
        with self._writing():
            return self._add(answer, imported=False)

    def add_imported(self, answers: Iterable[GivenAnswer]) -> list[str]:
        """Keep answers, all of them in one transaction.

        Returns
        -------
        list of str
            For each answer: nothing, 'known' if it was there, or why it was left out.
        """
        found = []
        with self._writing():
            for answer in answers:
                try:
                    found.append("" if self._add(answer, imported=True) else "known")
                except ContradictionError as error:
                    found.append(str(error))
        return found

    def undo(self, annotator: str, among: Collection[str]) -> GivenAnswer | None:
        """Remove and return the last answer that someone gave here about some samples."""
        with self._writing():
            rows = self._connection.execute(
                f"SELECT number, {COLUMNS} FROM answers WHERE annotator = ? AND NOT imported "
                "ORDER BY number DESC",
                (annotator,),
            )
            for number, *row in rows:
                answer = GivenAnswer(*row)
                if answer.sample_a in among:
                    rows.close()
                    self._connection.execute("DELETE FROM answers WHERE number = ?", (number,))
                    return answer
        return None

    def answers(self) -> list[GivenAnswer]:
        """All answers in the order in which they were given."""
        return [answer for _, answer in self.answers_after(0)]

    def answers_after(self, number: int) -> list[tuple[int, GivenAnswer]]:
        """Answers that were given after that of a number, each with its own."""
        with self._lock, self._explained():
            rows = self._connection.execute(
                f"SELECT number, {COLUMNS} FROM answers WHERE number > ? ORDER BY number",
                (number,),
            )
            return [(own, GivenAnswer(*row)) for own, *row in rows]

    def _add(self, answer: GivenAnswer, *, imported: bool) -> bool:
        before = self._connection.execute(
            f"SELECT {COLUMNS} FROM answers WHERE annotator = ? "
            "AND min(sample_a, sample_b) = ? AND max(sample_a, sample_b) = ?",
            (answer.annotator, *answer.pair),
        ).fetchone()
        if before is None:
            values = [getattr(answer, name) for name in COLUMNS.split(", ")]
            self._connection.execute(
                f"INSERT INTO answers ({COLUMNS}, imported) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (*values, imported),
            )
            return True
        known = GivenAnswer(*before)
        if (known.easier_sample, known.pair) == (answer.easier_sample, answer.pair):
            return False
        earlier = f"{known.easier_sample!r} easier" if known.easier_sample else "skip"
        raise ContradictionError(
            f"{answer.annotator!r} answered {answer.pair[0]!r} and {answer.pair[1]!r} before: "
            f"{earlier}; undo that first"
        )

    def _check(self, experiment: str, ids: Collection[str]) -> None:
        strange = [a for a in self.answers() if not (a.sample_a in ids and a.sample_b in ids)]
        if strange:
            raise InputError(
                f"--database {self.path}: {len(strange)} answers are about pictures that "
                f"{experiment!r} has not, such as {strange[0].sample_a!r} or "
                f"{strange[0].sample_b!r}; give another file, or run the experiment on the "
                "pictures that were annotated"
            )
