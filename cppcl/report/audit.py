"""The page and the table of an audit: what most likely is wrong, with its pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from cppcl.features.base import Picture
from cppcl.report.thumbnails import thumbnail_uri
from cppcl.report.writing import csv_text, render_page

SIDE = 192
"""Side of a picture on the page, in pixels."""
COLUMNS = (
    "sketch",
    "image",
    "given",
    "suggested",
    "score",
    "probability_wrong",
    "verdict",
    "label",
)


@dataclass(frozen=True)
class SuspectRow:
    """A suspect as tables show it.

    Attributes
    ----------
    sketch, image : str
        Ids of its samples; of a label one is empty.
    given, suggested : str
        Group or label, and the more likely label if there is one.
    score, probability_wrong : float
        Of the agreement.
    """

    sketch: str
    image: str
    given: str
    suggested: str
    score: float
    probability_wrong: float


@dataclass(frozen=True)
class ShownSuspect:
    """A suspect with its pictures, each (h, w, 3) uint8 and what it is called."""

    row: SuspectRow
    pictures: Sequence[tuple[Picture, str]]


def audit_csv(rows: Sequence[SuspectRow]) -> str:
    """All suspects, the most suspect first; the columns verdict and label are to be filled in."""
    return csv_text(
        COLUMNS,
        (
            (
                row.sketch,
                row.image,
                row.given,
                row.suggested,
                f"{row.score:.6g}",
                f"{row.probability_wrong:.4f}",
                "",
                "",
            )
            for row in rows
        ),
    )


def render_audit(
    *,
    experiment: str,
    protocol: str,
    kind: Literal["pairs", "labels"],
    shown: Sequence[ShownSuspect],
    n_judged: int,
    wrong_share: float,
) -> str:
    """Self-contained page of the most suspect pairs or labels.

    Parameters
    ----------
    experiment, protocol, kind
        What was judged.
    shown : sequence of ShownSuspect
        The most suspect first.
    n_judged : int
        Number of pairs or labels that were judged.
    wrong_share : float
        Estimated share of wrong ones.
    """
    return render_page(
        "audit.html",
        experiment=experiment,
        protocol=protocol,
        kind=kind,
        n_judged=n_judged,
        n_expected=round(wrong_share * n_judged),
        wrong_share=f"{100 * wrong_share:.1f} %",
        side=SIDE,
        suspects=[
            {
                "row": one.row,
                "wrong": f"{100 * one.row.probability_wrong:.0f} %",
                "score": f"{one.row.score:.3f}",
                "pictures": [(thumbnail_uri(p, SIDE), text) for p, text in one.pictures],
            }
            for one in shown
        ],
    )
