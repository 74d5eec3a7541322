"""Scores as the cells of tables: per cent of ranks, four decimals of mAP."""

from __future__ import annotations

from typing import Any

from cppcl.report.reproduction.data import Value
from cppcl.report.tables import is_percent
from cppcl.retrieval.comparison import Difference
from tasks.reporting.reproduction.series import Scores

NOTHING = Value.of(None)
INTERVAL = "95 % interval"
HOLDS = {"ahead": True, "level": None, "behind": False}
"""Verdict of a statement that one is ahead, by the verdict of the difference."""

Content = dict[str, Any]
"""Tables, figures, claims and notes of an item."""


def score_cell(score: str, value: float | None) -> Value:
    """A score."""
    if value is None:
        return NOTHING
    return Value(value, f"{100 * value:.1f}" if is_percent(score) else f"{value:.4f}")


def signed(score: str, value: float) -> str:
    """A difference of scores, with its sign."""
    return f"{100 * value:+.1f}" if is_percent(score) else f"{value:+.4f}"


def with_interval(score: str, found: Difference) -> str:
    """A difference of scores and its interval."""
    return f"{signed(score, found.mean)} [{signed(score, found.low)}, {signed(score, found.high)}]"


def mean_cells(score: str, found: Scores | None) -> list[Value]:
    """Mean over splits, deviation and interval; dashes where nothing is known."""
    if found is None:
        return [NOTHING] * 3
    ours = found.interval(score)
    low, high = score_cell(score, ours.low), score_cell(score, ours.high)
    return [
        score_cell(score, ours.mean),
        score_cell(score, found.deviation(score)),
        Value(f"[{ours.low!r}, {ours.high!r}]", f"[{low.text}, {high.text}]"),
    ]
