"""Tables that set methods beside each other, and beside what a publication reports."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from cppcl.report.data import ProtocolResult, ReportData
from cppcl.report.published import as_printed
from cppcl.report.tables import Cell, Table, score_caption, score_name, score_text
from cppcl.report.writing import csv_text
from cppcl.retrieval.comparison import Interval

COMPARISONS = "comparisons.json"
"""File of a report that holds `comparisons`."""


def difference_table(protocol: ProtocolResult) -> Table | None:
    """The first method minus each other one, in points; None with nothing to compare."""
    found_of = protocol.differences.values()
    several = any(found.ahead + found.level + found.behind > 1 for found in found_of)
    rows = [
        (
            name,
            [
                Cell(f"{100 * found.mean:+.2f}"),
                Cell(f"[{100 * found.low:+.2f}, {100 * found.high:+.2f}]"),
                *([Cell(f"{found.ahead} / {found.level} / {found.behind}")] if several else []),
                Cell(found.verdict),
            ],
        )
        for name, found in protocol.differences.items()
    ]
    standings = ["splits ahead / level / behind"] if several else []
    return Table(["difference", "95 % interval", *standings, "verdict"], rows) if rows else None


def difference_sentence(protocol: ProtocolResult) -> str:
    """Which differences are larger than chance, and which are not."""
    words = {
        "ahead": "ahead of {} by more than chance",
        "behind": "behind {} by more than chance",
        "level": "level with {}, by what could be chance",
    }
    parts = []
    for verdict, text in words.items():
        names = [name for name, d in protocol.differences.items() if d.verdict == verdict]
        if names:
            parts.append(text.format(listed(names)))
    return f"{next(iter(protocol.methods))} is {'; '.join(parts)}." if parts else ""


def published_table(protocol: ProtocolResult) -> Table | None:
    """Published scores beside ours, a line a method; None where nothing is published."""
    if protocol.published is None or not protocol.beside_published:
        return None
    found = protocol.beside_published
    fewer = any(row.first_mean is not None for row in found.values())
    rows = []
    for row in found.values():
        cells = [Cell(published_text(row.published)), _cell(row.mean, row.std)]
        if fewer:
            cells.append(_cell(row.first_mean, row.first_std))
        cells += [Cell(interval_text(row.interval)), Cell(row.verdict or "–")]
        rows.append((row.title, cells))
    first = [f"first {splits_text(protocol.published.trials or 0)}"] if fewer else []
    return Table(["published", "ours", *first, "95 % interval", "verdict"], rows)


def published_title(protocol: ProtocolResult) -> str:
    """Source of the published scores, number of splits, and which score it is."""
    if protocol.published is None:
        return ""
    trials = protocol.published.trials
    over = f" ({splits_text(trials)})" if trials else ""
    return f"{protocol.published.source}{over}: {score_caption(protocol.published.score)}"


def published_text(value: float | None) -> str:
    """A published score with as many digits as it was given with, at least as many as ours."""
    if value is None:
        return "–"
    return as_printed(100 * value, 1)


def splits_text(number: int) -> str:
    """So many splits."""
    return f"{number} split{'s' if number != 1 else ''}"


def interval_text(interval: Interval) -> str:
    """Both ends of an interval."""
    return f"[{score_text(interval.low)}, {score_text(interval.high)}]"


def listed(names: list[str]) -> str:
    """Names as a sentence lists them."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def differences_csv(data: ReportData) -> str | None:
    """A line for each protocol and method that the first is compared with; None without any."""
    rows = [
        (
            *(protocol.name, next(iter(protocol.methods)), name, protocol.main_score),
            *(found.mean, found.low, found.high),
            *(found.ahead, found.level, found.behind, found.verdict),
        )
        for protocol in data.protocols
        for name, found in protocol.differences.items()
    ]
    header = "protocol,first,method,score,difference,low,high,ahead,level,behind,verdict"
    return csv_text(header.split(","), rows) if rows else None


def published_csv(data: ReportData) -> str | None:
    """A line for each protocol and method beside a publication; None without any."""
    rows = [
        (
            *(protocol.name, name, row.title, protocol.published.source),
            *(protocol.published.score, row.published, row.mean, row.std),
            *(row.interval.low, row.interval.high, len(protocol.methods[name].scores)),
            *(protocol.published.trials, row.first_mean, row.first_std, row.verdict),
        )
        for protocol in data.protocols
        if protocol.published
        for name, row in protocol.beside_published.items()
    ]
    header = (
        "protocol,method,title,source,score,published,mean,std,low,high,splits,trials,"
        "first_mean,first_std,verdict"
    )
    return csv_text(header.split(","), rows) if rows else None


def comparisons(data: ReportData) -> dict[str, dict[str, Any]]:
    """Return ``differences`` and ``published`` by protocol, as plain data; only what there is.

    ``differences`` hold the name of the ``first`` method, the ``score``, and of each other one of
    ``methods`` the fields of `cppcl.retrieval.comparison.Difference` and its verdict.
    ``published`` hold ``source``, ``score``, ``trials``, and of each of ``methods`` the fields of
    `cppcl.report.published.BesidePublished` and its verdict.
    """
    blocks: dict[str, dict[str, Any]] = {"differences": {}, "published": {}}
    for protocol in data.protocols:
        if protocol.differences:
            blocks["differences"][protocol.name] = {
                "first": next(iter(protocol.methods)),
                "score": protocol.main_score,
                "methods": {
                    name: {**asdict(found), "verdict": found.verdict}
                    for name, found in protocol.differences.items()
                },
            }
        if protocol.published and protocol.beside_published:
            given = protocol.published
            blocks["published"][protocol.name] = {
                **{"source": given.source, "score": given.score, "trials": given.trials},
                "methods": {
                    name: {
                        **{"title": row.title, "published": row.published, "std": row.std},
                        **asdict(row.interval),
                        **{"first_mean": row.first_mean, "first_std": row.first_std},
                        "verdict": row.verdict,
                    }
                    for name, row in protocol.beside_published.items()
                },
            }
    return {kind: block for kind, block in blocks.items() if block}


def comparisons_json(data: ReportData) -> str | None:
    """`comparisons` as a document; None without any."""
    found = comparisons(data)
    return json.dumps(found, indent=1, ensure_ascii=False) if found else None


def _cell(mean: float | None, std: float | None) -> Cell:
    text, _, deviation = score_text(mean, std).partition(" ")
    return Cell(text, deviation)


def choice_text(choice: Mapping[str, Any]) -> str:
    """Which method validation prefers, by which score, and which is second."""
    text = (
        f"validation on training pictures prefers {choice['method']}: "
        f"{score_name(choice['score'])} {100 * choice['validation']:.1f} per cent"
    )
    if "runner_up" in choice:
        text += f", against {100 * choice['runner_up_validation']:.1f} of {choice['runner_up']}"
    return text
