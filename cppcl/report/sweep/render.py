"""Render a sweep: a table, a plot, and one page that holds both."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from cppcl.report.sweep.data import SweepData, value_text
from cppcl.report.sweep.figure import sweep_png
from cppcl.report.tables import csv_text, score_text, score_title
from cppcl.report.thumbnails import png_uri

COLUMNS = ("protocol", "method", "splits", "score", "mean", "std", "chance")
"""Columns of the table beside those of the options."""


def render_sweep(data: SweepData) -> dict[str, bytes]:
    """Render a sweep into files.

    Returns
    -------
    dict of str to bytes
        ``sweep.csv``, a line for each combination, protocol and method; ``sweep.json``, the same
        with the scores of each split; ``sweep.png``; and ``sweep.html``, a page that refers to
        nothing outside itself. The same bytes for the same data.
    """
    png = sweep_png(data)
    return {
        "sweep.csv": sweep_csv(data).encode(),
        "sweep.json": (json.dumps(sweep_document(data), indent=1) + "\n").encode(),
        "sweep.png": png,
        "sweep.html": sweep_page(data, png).encode(),
    }


def sweep_csv(data: SweepData) -> str:
    """A line for each combination, protocol and method: mean, deviation over splits, chance."""
    # An option may be called as a column is.
    options = [
        f"option {axis.option}" if axis.option in COLUMNS else axis.option for axis in data.axes
    ]
    rows = [
        (
            *map(value_text, row.values),
            *(row.protocol, row.method),
            *(len(row.scores), data.score, row.mean, row.std, row.chance),
        )
        for row in data.rows
    ]
    return csv_text((*options, *COLUMNS), rows)


def sweep_document(data: SweepData) -> dict[str, Any]:
    """The table with the scores of each split, and what is missing, as plain data."""
    options = [axis.option for axis in data.axes]

    def named(values: tuple[Any, ...]) -> dict[str, Any]:
        return dict(zip(options, values, strict=True))

    return {
        "experiment": data.experiment,
        "score": data.score,
        "axes": [{"option": axis.option, "values": list(axis.values)} for axis in data.axes],
        "rows": [
            {
                "values": named(row.values),
                "protocol": row.protocol,
                "method": row.method,
                "scores": list(row.scores),
                "mean": row.mean,
                "std": row.std,
                "chance": row.chance,
            }
            for row in data.rows
        ],
        "missing": [named(values) for values in data.missing],
    }


def sweep_page(data: SweepData, png: bytes) -> str:
    """A page with the plot and a table of every protocol."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    text = files("cppcl.report").joinpath("templates/sweep.html").read_text(encoding="utf-8")
    return environment.from_string(text).render(
        data=data, title=score_title(data.score), plot=png_uri(png), tables=_tables(data)
    )


def _tables(data: SweepData) -> list[dict[str, Any]]:
    tables = []
    for protocol in data.protocols:
        here = [row for row in data.rows if row.protocol == protocol]
        methods = list(dict.fromkeys(row.method for row in here))
        rows = []
        for values in data.combinations:
            found = [data.find(protocol, method, values) for method in methods]
            cells = [score_text(data.score, row.mean, row.std) if row else "–" for row in found]
            chance = next((score_text(data.score, row.chance) for row in found if row), "–")
            rows.append((list(map(value_text, values)), [*cells, chance]))
        tables.append({"protocol": protocol, "methods": [*methods, "chance"], "rows": rows})
    return tables
