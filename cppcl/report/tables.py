"""Tables of a report, as text cells and as comma-separated files."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cppcl.report.data import ProtocolResult, ReportData
from cppcl.report.writing import csv_text
from cppcl.retrieval.cutoffs import DIVISOR_TITLES, convention_line
from cppcl.retrieval.metrics import RECALL_LEVELS, summarise

_MATCH_RANKS = (1, 2, 3, 5, 10, 20, 50)


@dataclass(frozen=True)
class Cell:
    """A table cell: its text, the deviation beside it, and whether it is the column's best."""

    text: str
    deviation: str = ""
    best: bool = False


@dataclass(frozen=True)
class Table:
    """Column titles, and rows of a title and cells; the last row may be chance."""

    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[Cell]]]
    chance: tuple[str, Sequence[Cell]] | None = None


def score_table(protocol: ProtocolResult) -> Table:
    """Mean and deviation of every score for every method; the best mean of each column."""
    summaries = {name: summarise(method.scores) for name, method in protocol.methods.items()}
    keys = _score_keys(protocol)
    rows = []
    for name, summary in summaries.items():
        cells = []
        for key in keys:
            rivals = [other[key] for other in summaries.values() if key in other]
            best = key in summary and summary[key] == max(rivals)
            text = score_text(summary.get(key), summary.get(f"{key}_std"))
            mean, _, deviation = text.partition(" ")
            cells.append(Cell(mean, deviation, best))
        rows.append((name, cells))
    chance = [Cell(score_text(protocol.chance.get(key))) for key in keys]
    return Table([score_title(key) for key in keys], rows, ("chance", chance))


def match_table(protocol: ProtocolResult) -> Table | None:
    """Rank-k accuracy for a few k (cumulative match characteristic); None where not known."""
    curves = {
        name: np.asarray(method.cumulative_match, np.float64)
        for name, method in protocol.methods.items()
        if method.cumulative_match is not None
    }
    if not curves:
        return None
    ranks = [k for k in _MATCH_RANKS if k <= min(map(len, curves.values()))]
    tops = {k: max(curve[k - 1] for curve in curves.values()) for k in ranks}
    rows = [
        (
            name,
            [Cell(f"{100 * curve[k - 1]:.1f}", best=curve[k - 1] == tops[k]) for k in ranks],
        )
        for name, curve in curves.items()
    ]
    return Table([f"k = {k}" for k in ranks], rows)


def count_table(protocol: ProtocolResult) -> Table | None:
    """What was counted beside the scores; None where nothing was."""
    keys = _first_seen(method.counts for method in protocol.methods.values())
    if not keys:
        return None
    rows = [
        (name, [Cell(f"{method.counts[key]:,}" if key in method.counts else "–") for key in keys])
        for name, method in protocol.methods.items()
    ]
    return Table(keys, rows)


def measure_text(value: float | None) -> str:
    """A measure to two digits at least; a dash where it is not known."""
    if value is None:
        return "–"
    return f"{value:.0f}" if abs(value) >= 10 else f"{value:.2g}"


def training_table(protocol: ProtocolResult) -> Table | None:
    """How training went; None where it is not known."""
    keys = _first_seen(method.training for method in protocol.methods.values())
    if not keys:
        return None
    rows = [
        (
            name,
            [Cell(measure_text(method.training.get(k))) for k in keys],
        )
        for name, method in protocol.methods.items()
    ]
    return Table(keys, rows)


def headline(protocol: ProtocolResult) -> str:
    """What the first method, which answers searches, finds for 100 sketches, beside chance."""
    name, method = next(iter(protocol.methods.items()))
    return found_text(name, summarise(method.scores), protocol.chance)


def found_text(method: str, means: Mapping[str, float], chance: Mapping[str, float]) -> str:
    """For how many of 100 sketches a method finds a right picture; nothing without rank-1."""
    ranks = sorted(int(key[5:]) for key in means if re.fullmatch(r"rank_\d+", key))
    if 1 not in ranks or "rank_1" not in chance:
        return ""

    def of_100(k: int) -> str:
        key = f"rank_{k}"
        return f"{score_text(means[key])} (by chance {score_text(chance.get(key))})"

    found = f"Of 100 sketches, {of_100(1)} find a right picture first"
    if ranks[-1] > 1:
        found += f", {of_100(ranks[-1])} among the first {ranks[-1]}"
    return f"{found}, with {method}."


def score_title(key: str) -> str:
    """Name of a score for people, with its convention and unit."""
    return f"{score_name(key)} (%)"


def score_name(key: str) -> str:
    """Name of a score for people, with its convention, where the unit is said beside it."""
    if match := re.fullmatch(r"map_at_(\d+)_(\w+)", key):
        k, denominator = match.groups()
        return f"mAP@{k} / {DIVISOR_TITLES[denominator]}"
    if key.endswith("_in_class"):
        return f"{score_name(key.removesuffix('_in_class'))} in class"
    name, _, number = key.rpartition("_")
    titles = {
        "map_at": f"mAP@{number}, divisor not stated",
        "acc_at": f"Acc@{number}, gallery not stated",
        "rank": f"rank-{number}",
        "precision_at": f"P@{number}",
        "precision_within": f"P(Hamming ≤ {number})",
    }
    whole = {"map": "mAP", "reciprocal_rank": "mean 1/rank"}
    return whole.get(key) or titles.get(name, key)


def score_caption(key: str) -> str:
    """Name of a score for the title of a table, with its unit and how it is computed."""
    return ", ".join(filter(None, (score_title(key), convention_line([key]))))


def conventions(protocol: ProtocolResult) -> str:
    """How the scores of `score_table` are computed, in a line."""
    return convention_line(_score_keys(protocol))


def score_text(value: float | None, deviation: float | None = None) -> str:
    """Per cent, with a second decimal where the value is below 1."""
    if value is None or math.isnan(value):
        return "–"
    decimals = 2 if value < 0.01 else 1
    text = f"{100 * value:.{decimals}f}"
    return text if deviation is None else f"{text} ± {100 * deviation:.{decimals}f}"


def scores_csv(data: ReportData) -> str:
    """Every score of every split: protocol, method, split, score, value."""
    rows = [
        (protocol.name, name, split, key, float(value))
        for protocol in data.protocols
        for name, method in protocol.methods.items()
        for split, scores in enumerate(method.scores)
        for key, value in scores.items()
    ]
    return csv_text(("protocol", "method", "split", "score", "value"), rows)


def summary_csv(data: ReportData) -> str:
    """Mean, deviation over splits and chance: a line for each protocol, method and score."""
    rows = []
    for protocol in data.protocols:
        for name, method in protocol.methods.items():
            summary = summarise(method.scores)
            for key in summary:
                if not key.endswith("_std"):
                    deviation, chance = summary.get(f"{key}_std"), protocol.chance.get(key)
                    line = (len(method.scores), key, summary[key], deviation, chance)
                    rows.append((protocol.name, name, *line))
    return csv_text(("protocol", "method", "splits", "score", "mean", "std", "chance"), rows)


def precision_recall_csv(data: ReportData) -> str:
    """Mean interpolated precision at 101 levels of recall."""
    rows = [
        (protocol.name, name, f"{recall:.2f}", float(precision))
        for protocol in data.protocols
        for name, method in protocol.methods.items()
        for recall, precision in zip(
            RECALL_LEVELS, np.asarray(method.precision_recall), strict=True
        )
    ]
    return csv_text(("protocol", "method", "recall", "precision"), rows)


def _score_keys(protocol: ProtocolResult) -> list[str]:
    keys = _first_seen(split for method in protocol.methods.values() for split in method.scores)
    return sorted(keys, key=lambda key: key != protocol.main_score)


def _first_seen(mappings: Iterable[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(key for mapping in mappings for key in mapping))
