"""The part of a report on pacing: its section of the page, and the files beside it."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

import numpy as np

from cppcl.report.curricula import PLURAL
from cppcl.report.pacing.data import N_SHOWN, SELECTED_ABOVE, PacedSide, PacingResult
from cppcl.report.pacing.figure import pacing_png
from cppcl.report.tables import csv_text
from cppcl.report.thumbnails import png_uri, thumbnail_uri

FLAT = 0.01
"""Standard deviation of v, in the round where it is largest, below which samples count alike."""
PICTURE_SIDE = 64
"""Of a picture of a strip, in pixels."""


def render_pacing(
    result: PacingResult, protocol: str, file_name: str
) -> tuple[str, dict[str, bytes]]:
    """Render what is known of pacing: the HTML of a section, and the files beside it.

    Parameters
    ----------
    result : PacingResult
        Of one method.
    protocol, file_name : str
        Name that pictures are described by, and what it is in names of files.

    Returns
    -------
    str, dict of str to bytes
        The section; and, where pacing was kept, ``pacing_<file_name>.csv`` with every sample and
        ``pacing_by_easiness_<file_name>.png``.
    """
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    text = files("cppcl.report").joinpath("templates/pacing.html").read_text(encoding="utf-8")
    table, written, figure = f"pacing_{file_name}.csv", dict[str, bytes](), b""
    if result.sides:
        figure = pacing_png(result.sides)
        written[table] = pacing_csv(result.sides).encode()
        written[f"pacing_by_easiness_{file_name}.png"] = figure
    html = environment.from_string(text).render(
        result=result,
        protocol=protocol,
        uri=png_uri(figure),
        table=table,
        most=N_SHOWN,
        rows=[(PLURAL[side.modality], cells(side)) for side in result.sides],
        imposed=" and ".join(PLURAL[modality] for modality in result.curricula),
        shown=[
            {
                "plural": PLURAL[side.modality],
                "facts": facts(side),
                "strips": strips(side) if side.pictures else [],
            }
            for side in result.sides
        ],
    )
    return html, written


def cells(side: PacedSide) -> list[str]:
    """Texts of a modality's row: score, n, both correlations and the largest deviation of v."""
    numbers = ["–" if value != value else f"{value:+.2f}" for value in side.correlations()]
    return [side.score or "none", f"{side.n_scored:,}", *numbers, f"{side.largest_sd:.2g}"]


def facts(side: PacedSide) -> list[str]:
    """Sentences on when samples of a modality entered."""
    n_rounds, n = side.v.shape
    plural, entered = PLURAL[side.modality], side.entry_rounds > 0
    values = side.v[side.widest]
    told = [
        f"{n:,} training {plural}, {n_rounds} rounds. v varies most in round {side.widest + 1}: "
        f"from {values.min():.2f} to {values.max():.2f}, standard deviation {side.largest_sd:.2g}."
    ]
    if side.largest_sd < FLAT:
        told.append(
            f"The pacing is flat: all {plural} count nearly alike at any time, and their order "
            "below rests on small differences."
        )
    elif len(side.entries) == 1 and entered.all():
        told.append("All entered together; v itself, averaged over rounds, orders them.")
    if never := int((~entered).sum()):
        told.append(f"{never:,} never entered: their v stays at {SELECTED_ABOVE:g} or below.")
    after = np.arange(1, n_rounds + 1)[:, None] > side.entry_rounds
    if left := int(((side.v <= SELECTED_ABOVE) & after & entered).any(axis=0).sum()):
        told.append(f"{left:,} fell back in a later round.")
    return told


def strips(side: PacedSide) -> list[dict[str, Any]]:
    """Pictures of samples that entered, by round, with their labels and scores."""
    return [
        {
            "title": f"{entries}: {entries.n_entered:,} entered, {entries.n_so_far:,} of "
            f"{side.v.shape[1]:,} so far",
            "name": f"{PLURAL[side.modality]} that entered in {str(entries).lower()}",
            "alt": f"{side.modality} of {str(entries).lower()}",
            "pictures": [
                (
                    side.labels[k],
                    f"{side.easiness[k]:.3g}" if np.isfinite(side.easiness[k]) else "",
                    thumbnail_uri(side.pictures[k], PICTURE_SIDE),
                )
                for k in entries.shown.tolist()
            ],
        }
        for entries in side.entries
    ]


def pacing_csv(sides: Sequence[PacedSide]) -> str:
    """Every sample: its easiness, the round in which it entered, and v after each round.

    ``entry_round`` is empty for a sample that never entered, ``easiness`` for one without score.
    """
    rounds = [f"v_{k + 1}" for k in range(len(sides[0].v))]
    rows = [
        (
            *(side.ids[k], side.modality),
            f"{side.easiness[k]:.6g}" if np.isfinite(side.easiness[k]) else "",
            side.entry_rounds[k] or "",
            *(f"{value:.6g}" for value in side.v[:, k].tolist()),
        )
        for side in sides
        for k in range(side.v.shape[1])
    ]
    return csv_text(("sample", "modality", "easiness", "entry_round", *rounds), rows)
