"""What reports are written with: pages from templates, and CSV files."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import Any


def render_page(template: str, **values: Any) -> str:
    """Fill in a template: values are escaped, and a name without a value is an error.

    Parameters
    ----------
    template : str
        File name in ``templates``.
    **values
        What the template shows.
    """
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    text = files("cppcl.report").joinpath("templates", template).read_text(encoding="utf-8")
    return environment.from_string(text).render(values)


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Text of a CSV file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()
