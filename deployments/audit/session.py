"""Which suspect is asked about next, and what becomes of the verdict; apart from the web."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from cppcl.audit.suspects import Suspect
from cppcl.audit.verdicts import JUDGEMENTS, Item, Verdict, write_verdicts, wrong_items
from cppcl.curriculum.annotation.answers import check_seconds
from cppcl.errors import InputError
from deployments.audit.database import VerdictDatabase
from tasks.audit import Audit


@dataclass(frozen=True)
class AuditProgress:
    """How far the work is.

    Attributes
    ----------
    n_asked : int
        Suspects that are asked about.
    n_answered : int
        Those with a verdict of anyone.
    n_wrong : int
        Those that more people call wrong than right.
    n_mine : int
        Verdicts of the annotator.
    """

    n_asked: int
    n_answered: int
    n_wrong: int
    n_mine: int


class AuditSession:
    """The state behind the page; safe to use from several threads.

    Parameters
    ----------
    audit : Audit
        What was judged.
    database : VerdictDatabase
        Where verdicts are kept.
    n_asked : int
        Number of the most suspect that are asked about.
    """

    def __init__(self, audit: Audit, database: VerdictDatabase, n_asked: int) -> None:
        self.audit = audit
        self.database = database
        self.suspects: dict[Item, Suspect] = {
            audit.item_of(suspect): suspect for suspect in audit.suspects[:n_asked]
        }

    def question(self, annotator: str) -> Suspect | None:
        """Return the most suspect that someone has not judged; those come first that nobody has.

        None if all are judged.
        """
        verdicts = self.database.verdicts()
        mine = {one.item for one in verdicts if one.annotator == annotator}
        anyone = {one.item for one in verdicts}
        left = [item for item in self.suspects if item not in mine]
        fresh = [item for item in left if item not in anyone]
        return self.suspects[(fresh or left)[0]] if left else None

    def answer(
        self, annotator: str, sketch: str, image: str, given: str, choice: str, seconds: Any
    ) -> bool:
        """Keep a verdict; it is on the disk when this returns.

        Parameters
        ----------
        annotator : str
            Who.
        sketch, image, given : str
            What it is about.
        choice : str
            right, wrong, skip, or suggested: wrong, and the suggested label is the right one.
        seconds : str or number
            How long it was looked at; empty if not known.

        Returns
        -------
        bool
            True if it is new.

        Raises
        ------
        InputError
            It is about none of the suspects, or is no verdict.
        OtherVerdictError
            The same person said something else about the same before.
        """
        suspect = self.suspects.get((sketch, image, given))
        if suspect is None:
            raise InputError(
                f"sketch={sketch!r:.200}, image={image!r:.200}, given={given!r:.200}: no suspect "
                "of this audit"
            )
        label = suspect.suggested if choice == "suggested" else ""
        verdict: Any = "wrong" if label else choice
        if verdict not in JUDGEMENTS:
            raise InputError(f"verdict={choice!r:.200} must be one of {', '.join(JUDGEMENTS)}")
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        return self.database.add(
            Verdict(sketch, image, given, verdict, label, annotator, check_seconds(seconds), now)
        )

    def undo(self, annotator: str) -> bool:
        """Take back the last verdict of someone; False if there is none."""
        return self.database.undo(annotator) is not None

    def progress(self, annotator: str = "") -> AuditProgress:
        """Count what was done."""
        verdicts = self.database.verdicts()
        answered = {one.item for one in verdicts} & self.suspects.keys()
        return AuditProgress(
            len(self.suspects),
            len(answered),
            len(wrong_items(verdicts).keys() & self.suspects.keys()),
            sum(one.annotator == annotator for one in verdicts),
        )

    def export(self) -> str:
        """Text of the table of all verdicts, those of earlier audits among them."""
        return write_verdicts(self.database.verdicts())
