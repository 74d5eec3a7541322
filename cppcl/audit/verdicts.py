"""What people say about suspects: right or wrong, and the table of it, CSV."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args

from cppcl.curriculum.annotation.answers import check_annotator, check_seconds, check_time
from cppcl.errors import InputError
from cppcl.regular_files import read_text
from cppcl.validation import check_columns

Judgement = Literal["right", "wrong", "skip"]
JUDGEMENTS: tuple[str, ...] = get_args(Judgement)
COLUMNS = ("sketch", "image", "given", "verdict")
Item = tuple[str, str, str]
"""Ids of a sketch and of an image, empty for none, and the group or label given to them."""


@dataclass(frozen=True)
class Verdict:
    """What someone says about a pair, or about the label of one sample.

    Attributes
    ----------
    sketch, image : str
        Ids of the samples; of a label one is empty.
    given : str
        The group of the pair, or the label.
    verdict : {'right', 'wrong', 'skip'}
        'skip' decides nothing.
    label : str
        The right label in place of a wrong one; empty where it is not known, and of a pair.
    annotator : str
        Who; empty if not known.
    seconds : float or None
        How long it was looked at, if known.
    answered_at : str
        When, ISO 8601; empty if not known.
    """

    sketch: str
    image: str
    given: str
    verdict: Judgement
    label: str = ""
    annotator: str = ""
    seconds: float | None = None
    answered_at: str = ""

    @property
    def item(self) -> Item:
        """What it is about."""
        return self.sketch, self.image, self.given


NAMES = tuple(field.name for field in fields(Verdict))


def read_verdicts(text: str) -> list[Verdict]:
    """Read a table of verdicts.

    Parameters
    ----------
    text : str
        Comma-separated values with a head: ``sketch``, ``image``, ``given`` and ``verdict``
        (right, wrong, or skip or nothing where undecided), and perhaps ``label``, ``annotator``,
        ``seconds`` and ``answered_at``. Other columns, such as scores, are ignored.

    Raises
    ------
    InputError
        For a column that is missing or a line that is wrong; the line is named.
    """
    reader = csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True)
    found = []
    try:
        head = check_columns(reader.fieldnames, "line 1")
        missing = [name for name in COLUMNS if name not in head]
        if missing:
            raise InputError(f"line 1: the head lacks the columns {', '.join(missing)}")
        for row in reader:
            try:
                found.append(_verdict_of(row))
            except InputError as error:
                raise InputError(f"line {reader.line_num}: {error}") from error
    except csv.Error as error:
        raise InputError(f"line {reader.reader.line_num}: no CSV ({error})") from error
    return found


def read_verdict_file(path: Path) -> list[Verdict]:
    """Read a file of verdicts; errors name it."""
    try:
        return read_verdicts(read_text(path, "utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"verdicts {path}: cannot be read ({error})") from error
    except InputError as error:
        raise InputError(f"verdicts {path}, {error}") from error


def write_verdicts(verdicts: Iterable[Verdict]) -> str:
    """Text of a table that `read_verdicts` reads."""
    text = io.StringIO()
    writer = csv.DictWriter(text, NAMES, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: getattr(one, name) for name in NAMES} for one in verdicts)
    return text.getvalue()


def wrong_items(verdicts: Sequence[Verdict]) -> dict[Item, str]:
    """Items that more people call wrong than right, with the label that most of them give.

    Returns
    -------
    dict of Item to str
        The right label; empty where nobody named one, or two were named as often.
    """
    votes: Counter[Item] = Counter()
    labels: dict[Item, Counter[str]] = {}
    for one in verdicts:
        votes[one.item] += {"wrong": 1, "right": -1, "skip": 0}[one.verdict]
        if one.verdict == "wrong" and one.label:
            labels.setdefault(one.item, Counter())[one.label] += 1
    return {item: _most_named(labels.get(item)) for item, count in votes.items() if count > 0}


def _most_named(names: Counter[str] | None) -> str:
    first, *rest = names.most_common(2) if names else [("", 1)]
    return "" if rest and rest[0][1] == first[1] else first[0]


def _verdict_of(row: dict[str, Any]) -> Verdict:
    sketch, image, given = (row.get(name) or "" for name in COLUMNS[:3])
    if not (sketch or image) or not given:
        raise InputError(
            f"sketch={sketch!r}, image={image!r}, given={given!r}: give at least one sample, and "
            "its group or label"
        )
    verdict: Any = row.get("verdict") or "skip"
    if verdict not in JUDGEMENTS:
        raise InputError(f"verdict={verdict!r} must be one of {', '.join(JUDGEMENTS)}")
    label = row.get("label") or ""
    if label and (verdict != "wrong" or (sketch and image)):
        raise InputError(f"label={label!r}: only a wrong label of one sample has a right one")
    name = row.get("annotator") or ""
    return Verdict(
        sketch,
        image,
        given,
        verdict,
        label,
        check_annotator(name) if name else "",
        check_seconds(row.get("seconds")),
        check_time(row.get("answered_at")),
    )
