"""Verdicts on disk."""

from __future__ import annotations

from cppcl.audit.verdicts import Verdict
from cppcl.errors import InputError
from deployments.web.database import ExperimentDatabase

COLUMNS = "sketch, image, given, verdict, label, annotator, seconds, answered_at"


class OtherVerdictError(InputError):
    """Someone judged the same pair or label otherwise before."""


class VerdictDatabase(ExperimentDatabase):
    """Verdicts on the pairs and labels of one experiment in one file."""

    application = 0x63707056  # "cppV"
    schema = """
CREATE TABLE verdicts (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    sketch TEXT NOT NULL,
    image TEXT NOT NULL,
    given TEXT NOT NULL,
    verdict TEXT NOT NULL CHECK (verdict IN ('right', 'wrong', 'skip')),
    label TEXT NOT NULL,
    annotator TEXT NOT NULL,
    seconds REAL,
    answered_at TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX one_verdict ON verdicts (annotator, sketch, image, given);
"""

    def add(self, verdict: Verdict) -> bool:
        """Keep a verdict; it is on the disk when this returns.

        Returns
        -------
        bool
            True if it is new; the same again changes nothing.

        Raises
        ------
        OtherVerdictError
            The same person said something else about the same before.
        """
        with self._writing():
            before = self._connection.execute(
                "SELECT verdict, label FROM verdicts "
                "WHERE annotator = ? AND sketch = ? AND image = ? AND given = ?",
                (verdict.annotator, *verdict.item),
            ).fetchone()
            if before is None:
                values = [getattr(verdict, name) for name in COLUMNS.split(", ")]
                self._connection.execute(
                    f"INSERT INTO verdicts ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values
                )
                return True
        if before == (verdict.verdict, verdict.label):
            return False
        raise OtherVerdictError(
            f"{verdict.annotator!r} called {verdict.sketch or verdict.image!r} {before[0]} "
            "before; undo that first"
        )

    def undo(self, annotator: str) -> Verdict | None:
        """Remove and return the last verdict of someone."""
        with self._writing():
            row = self._connection.execute(
                f"SELECT number, {COLUMNS} FROM verdicts WHERE annotator = ? "
                "ORDER BY number DESC LIMIT 1",
                (annotator,),
            ).fetchone()
            if row is None:
                return None
            self._connection.execute("DELETE FROM verdicts WHERE number = ?", row[:1])
            return Verdict(*row[1:])

    def verdicts(self) -> list[Verdict]:
        """All verdicts in the order in which they were given."""
        with self._lock, self._explained():
            rows = self._connection.execute(f"SELECT {COLUMNS} FROM verdicts ORDER BY number")
            return [Verdict(*row) for row in rows]
