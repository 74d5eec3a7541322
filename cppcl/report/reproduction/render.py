"""Render a reproduction: a page, with its figures and tables as files beside it."""

from __future__ import annotations

from typing import Any

from cppcl.report.data import ResultGrid
from cppcl.report.reproduction.data import Item, Reproduction, ResultTable
from cppcl.report.reproduction.errata import ERRATA
from cppcl.report.reproduction.figures import render_figure
from cppcl.report.writing import csv_text, render_page

PAGE = "index.html"
CLAIMS = "claims.csv"
ITEMS = "items.csv"
AFTER_CELLS = ("errata", "note", "artifacts")
"""Columns of every table's file after its cells."""


def render_reproduction(data: Reproduction) -> dict[str, bytes]:
    """Render into files: the same bytes for the same data and library versions.

    Returns
    -------
    dict of str to bytes
        ``index.html``, which refers to the other files and to nothing else; ``items.csv``, what
        there is and what is missing; ``claims.csv``, statements of the paper with what was
        measured; ``<table>.csv`` of each table, with the artifacts that its numbers come from;
        ``<figure>.svg``, ``<figure>-dark.svg`` and ``<figure>.png`` of each figure.
    """
    written: dict[str, bytes] = {}
    for item in data.items:
        for figure in item.figures:
            written |= render_figure(figure)
        for table in item.tables:
            written[f"{table.name}.csv"] = table_csv(table).encode()
    written[ITEMS] = items_csv(data).encode()
    written[CLAIMS] = claims_csv(data).encode()
    written[PAGE] = page(data).encode()
    return written


def table_csv(table: ResultTable) -> str:
    """A line a row: values as they are, errata, note, and the artifacts behind it."""
    header = (table.first, *table.columns, *AFTER_CELLS)
    rows = [
        (
            row.title,
            *("" if cell.value is None else cell.value for cell in row.cells),
            " ".join(map(str, row.errata)),
            row.note,
            " ".join(row.artifacts),
        )
        for row in table.rows
    ]
    return csv_text(header, rows)


def items_csv(data: Reproduction) -> str:
    """A line an item: state, and why something is missing."""
    rows = [(item.name, item.title, item.source, item.state, item.message) for item in data.items]
    return csv_text(("item", "title", "source", "state", "message"), rows)


def claims_csv(data: Reproduction) -> str:
    """A line a statement of the paper: what was measured, and the verdict."""
    rows = [
        (item.name, claim.text, claim.measured, claim.verdict, " ".join(map(str, claim.errata)))
        for item in data.items
        for claim in item.claims
    ]
    return csv_text(("item", "statement", "measured", "verdict", "errata"), rows)


def page(data: Reproduction) -> str:
    """The page."""
    return render_page(
        "reproduction.html",
        data=data,
        errata={number: ERRATA[number] for number in data.errata},
        items=[_section(item) for item in data.items],
        claims=any(item.claims for item in data.items),
    )


def _section(item: Item) -> dict[str, Any]:
    verdicts = [claim.verdict for claim in item.claims]
    agreements = [
        cell.value
        for table in item.tables
        for row in table.rows
        for column, cell in zip(table.columns, row.cells, strict=True)
        if column == "agreement" and cell.value
    ]
    counts = [
        f"{found.count(word)} {word}"
        for found in (agreements, verdicts)
        for word in dict.fromkeys(map(str, found))
    ]
    return {
        "item": item,
        "summary": ", ".join(counts),
        "figures": [(figure, isinstance(figure.content, ResultGrid)) for figure in item.figures],
        "tables": [
            (
                table,
                [alignment(table, column) for column in range(len(table.columns))],
                any(row.note or row.errata for row in table.rows),
                [(row.title, row.artifacts) for row in table.rows if row.artifacts],
            )
            for table in item.tables
        ],
    }


def alignment(table: ResultTable, column: int) -> str:
    """Class of the cells of a column: words begin at the left, numbers end at the right."""
    texts = [row.cells[column].text for row in table.rows]
    begins = {text[0] for text in texts if text not in ("", "–")}
    return "word" if begins and all(map(str.isalpha, begins)) else "number"
