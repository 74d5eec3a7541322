"""Answers to which of two samples is easier, and their tables, CSV or JSON lines."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

from cppcl.errors import InputError
from cppcl.regular_files import read_text
from cppcl.validation import check_columns

COLUMNS = ("sample_a", "sample_b", "easier")
CHOICES = ("a", "b", "skip")
TableFormat = Literal["csv", "jsonl"]
LONGEST_NAME = 64
LONGEST_SECONDS = 86_400.0
"""A day; nobody looks at two pictures for longer."""


@dataclass(frozen=True)
class PairAnswer:
    """Which of two samples, given by their ids, someone found easier; 'skip' if undecided."""

    sample_a: str
    sample_b: str
    easier: Literal["a", "b", "skip"]


@dataclass(frozen=True)
class GivenAnswer(PairAnswer):
    """An answer, who gave it and when.

    Attributes
    ----------
    annotator : str
        Name of the annotator.
    seconds : float or None
        How long the pair was looked at, if known.
    answered_at : str
        When, ISO 8601; empty if not known.
    """

    annotator: str = ""
    seconds: float | None = None
    answered_at: str = ""

    @property
    def pair(self) -> tuple[str, str]:
        """Both ids in alphabetical order."""
        return min(self.sample_a, self.sample_b), max(self.sample_a, self.sample_b)

    @property
    def easier_sample(self) -> str | None:
        """Id of the easier sample; None for a skip."""
        return {"a": self.sample_a, "b": self.sample_b}.get(self.easier)


NAMES = tuple(field.name for field in fields(GivenAnswer))


class Line(NamedTuple):
    """One line of a file: an answer, or what is wrong with it."""

    number: int
    answer: GivenAnswer | None
    problem: str


def read_answers(path: Path) -> list[PairAnswer]:
    """Read a table of answers.

    Parameters
    ----------
    path : Path
        ``.csv`` with a head, or ``.jsonl`` with one JSON object a line. Columns are ``sample_a``
        and ``sample_b``, ids of samples, and ``easier``: ``a``, ``b``, or ``skip`` or nothing
        where undecided. Other columns, such as who answered, are ignored.

    Raises
    ------
    InputError
        The file is missing or of another kind, or a line of it is; the line is named.
    """
    try:
        text = read_text(path, "utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"answers {path}: cannot be read ({error})") from error
    if path.suffix not in (".csv", ".jsonl"):
        raise InputError(f"answers {path}: give a .csv or .jsonl file with the columns {COLUMNS}")
    try:
        rows = list(_rows(text, "csv" if path.suffix == ".csv" else "jsonl"))
    except InputError as error:
        raise InputError(f"answers {path}, {error}") from error
    answers = []
    for number, row, problem in rows:
        try:
            if problem:
                raise InputError(problem)
            answers.append(PairAnswer(*_choice(row)))
        except InputError as error:
            raise InputError(f"answers {path}, line {number}: {error}") from error
    return answers


def read_lines(text: str, kind: TableFormat, *, annotator: str) -> Iterator[Line]:
    """Read a table of answers line by line; a wrong line does not end the reading.

    Parameters
    ----------
    text : str
        Comma-separated values with a head, or one JSON object a line.
    kind : {'csv', 'jsonl'}
        Format of the table.
    annotator : str
        Name for lines without one.

    Raises
    ------
    InputError
        If the head of a table lacks a column.
    """
    for number, row, problem in _rows(text, kind):
        answer = None
        if not problem:
            try:
                answer = GivenAnswer(
                    *_choice(row),
                    check_annotator(str(row.get("annotator") or annotator)),
                    check_seconds(row.get("seconds")),
                    check_time(row.get("answered_at")),
                )
            except InputError as error:
                problem = str(error)
        yield Line(number, answer, problem)


def write_answers(answers: Iterable[GivenAnswer], kind: TableFormat) -> str:
    """Text of a table of answers that `read_answers` reads."""
    rows = [{name: getattr(answer, name) for name in NAMES} for answer in answers]
    if kind == "jsonl":
        return "".join(json.dumps(row) + "\n" for row in rows)
    text = io.StringIO()
    writer = csv.DictWriter(text, NAMES, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def check_annotator(name: str) -> str:
    """Return a name without surrounding blanks.

    Raises
    ------
    InputError
        For a name that is empty, too long, or could be read as a formula or a control sequence.
    """
    name = name.strip()
    if not name or len(name) > LONGEST_NAME or not name.isprintable() or not name[0].isalnum():
        raise InputError(
            f"name {name[:LONGEST_NAME]!r} must begin with a letter or digit and have at most "
            f"{LONGEST_NAME} characters, without tabs or line breaks"
        )
    return name


def check_seconds(value: Any) -> float | None:
    """Seconds as a number; None for None or nothing.

    Raises
    ------
    InputError
        If they are no number from 0 to a day.
    """
    if value is None or value == "":
        return None
    try:
        seconds = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        seconds = math.nan
    if not 0 <= seconds <= LONGEST_SECONDS:
        raise InputError(f"seconds={value!r} must be a number from 0 to {LONGEST_SECONDS:.0f}")
    return seconds


def check_time(value: Any) -> str:
    """A time as text; nothing for None or nothing.

    Raises
    ------
    InputError
        If it is no time in ISO 8601.
    """
    if value is None or value == "":
        return ""
    try:
        datetime.fromisoformat(value)
    except (TypeError, ValueError) as error:
        raise InputError(f"answered_at={value!r:.200} must be a time in ISO 8601") from error
    return str(value)


def _rows(text: str, kind: TableFormat) -> Iterator[tuple[int, dict[str, Any], str]]:
    """Number and content of each line of a table, or what is wrong with it."""
    yield from (_csv_rows if kind == "csv" else _json_rows)(text.removeprefix("\ufeff"))


def _csv_rows(text: str) -> Iterator[tuple[int, dict[str, Any], str]]:
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        head = check_columns(reader.fieldnames, "line 1")
        missing = [name for name in COLUMNS if name not in head]
        if missing:
            raise InputError(f"line 1: the head lacks the columns {', '.join(missing)}")
        for row in reader:
            yield reader.line_num, row, ""
    except csv.Error as error:
        # Quotes are unbalanced: where the next line begins is not known.
        yield reader.reader.line_num, {}, f"no CSV ({error}); what follows was not read"


def _json_rows(text: str) -> Iterator[tuple[int, dict[str, Any], str]]:
    for number, line in enumerate(io.StringIO(text, newline="\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            yield number, {}, f"no JSON ({error})"
            continue
        if isinstance(row, dict):
            yield number, row, ""
        else:
            yield number, {}, "no JSON object"


def _choice(row: dict[str, Any]) -> tuple[str, str, Literal["a", "b", "skip"]]:
    """Both ids, and which of them is easier."""
    a, b = row.get("sample_a"), row.get("sample_b")
    if a in (None, "") or b in (None, ""):
        raise InputError(f"sample_a={a!r} and sample_b={b!r} must be two ids")
    if a == b:
        raise InputError(f"sample_a and sample_b are both {a!r}; give two samples")
    easier: Any = row.get("easier") or "skip"
    if easier not in CHOICES:
        raise InputError(f"easier={easier!r} must be one of {', '.join(CHOICES)}")
    return str(a), str(b), easier
