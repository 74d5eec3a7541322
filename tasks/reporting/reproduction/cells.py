"""Scores as the cells of tables, in per cent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cppcl.report.reproduction.data import Claim, Value
from cppcl.report.reproduction.verdicts import Finding, missing_text
from cppcl.retrieval.comparison import Interval
from tasks.reporting.reproduction.series import Scores

NOTHING = Value.of(None)
INTERVAL = "95 % interval"
OVER_SPLITS = "over splits"
WORDS = {True: "ahead", None: "level", False: "behind"}
"""What a difference is, by whether it lies above 0."""

Content = dict[str, Any]
"""Tables, figures, claims and notes of an item."""


def score_cell(value: float | None) -> Value:
    """A score."""
    if value is None:
        return NOTHING
    return Value(value, f"{100 * value:.1f}")


def signed(value: float) -> str:
    """A difference of scores, with its sign."""
    return f"{100 * value:+.1f}"


def percent(found: Interval) -> Interval:
    """An interval as figures show it, in per cent."""
    return Interval(100 * found.mean, 100 * found.low, 100 * found.high)


def interval_text(found: Interval | None) -> str:
    """The interval of a difference of scores; a dash where there is none."""
    return f"[{signed(found.low)}, {signed(found.high)}]" if found else "–"


def interval_cell(found: Interval | None) -> Value:
    """The same in a table."""
    if found is None:
        return NOTHING
    return Value(f"[{found.low!r}, {found.high!r}]", interval_text(found))


def with_intervals(found: Finding) -> str:
    """A difference of scores, its intervals over queries and over splits."""
    return (
        f"{signed(found.mean)} {interval_text(found.over_queries)}, over splits "
        f"{interval_text(found.over_splits)}"
    )


def verdict_of(found: Finding) -> str:
    """What a difference is, in a word: ahead, level or behind; or that splits are missing."""
    return missing_text(found.missing_splits) if found.missing_splits else WORDS[found.above()]


def claim(
    said: Mapping[str, Any], measured: str, holds: bool | None, findings: Iterable[Finding]
) -> Claim:
    """A statement with its verdict, or with the number of splits that are missing for one."""
    missing = max((found.missing_splits for found in findings), default=0)
    text = said.get("text") or said["statement"]
    return Claim(text, measured, None if missing else holds, said["errata"], missing)


def mean_cells(score: str, found: Scores | None) -> list[Value]:
    """Mean over splits, deviation and interval; dashes where nothing is known."""
    if found is None:
        return [NOTHING] * 3
    ours = found.interval(score)
    low, high = score_cell(ours.low), score_cell(ours.high)
    return [
        score_cell(ours.mean),
        score_cell(found.deviation(score)),
        Value(f"[{ours.low!r}, {ours.high!r}]", f"[{low.text}, {high.text}]"),
    ]
