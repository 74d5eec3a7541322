"""Scores over the share of a sketch that is drawn, as a figure and a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cppcl.report.style import defaults, line, png, tidy
from cppcl.report.writing import csv_text
from cppcl.retrieval.on_the_fly import Course

if TYPE_CHECKING:
    from cppcl.report.data import ProtocolResult, ReportData


def mean_course(courses: Sequence[Course]) -> Course:
    """Mean of several splits, whose steps are the same."""

    def mean(curves: Sequence[Any]) -> Any:
        return np.mean(curves, axis=0)

    return Course(
        shares=courses[0].shares,
        percentile=mean([one.percentile for one in courses]),
        reciprocal_rank=mean([one.reciprocal_rank for one in courses]),
        found={k: mean([one.found[k] for one in courses]) for k in courses[0].found},
    )


def curves_of(course: Course) -> dict[str, Any]:
    """Every curve in per cent, by its title."""
    found = {f"rank-{k} (%)": 100 * curve for k, curve in course.found.items()}
    return {
        "percentile of the rank (%)": 100 * course.percentile,
        "mean 1/rank (%)": 100 * course.reciprocal_rank,
        **found,
    }


def on_the_fly_png(protocol: ProtocolResult) -> bytes | None:
    """Every curve over the share that is drawn, a panel each; None where all is drawn."""
    from matplotlib.figure import Figure

    drawn = {name: m.course for name, m in protocol.methods.items() if m.course is not None}
    if not drawn:
        return None
    titles = list(curves_of(next(iter(drawn.values()))))
    rows = -(-len(titles) // 2)
    with defaults():
        figure = Figure(figsize=(9, 3 * rows), layout="constrained")
        panels = figure.subplots(rows, 2, squeeze=False).ravel()
        for axes, title in zip(panels, titles, strict=False):
            for number, (name, course) in enumerate(drawn.items()):
                values = curves_of(course)[title]
                axes.plot(100 * course.shares, values, **line(number, name))
            axes.set(xlabel="drawn (% of the ink)", ylabel=title, xlim=(0, 100))
            tidy(axes)
        for axes in panels[len(titles) :]:
            axes.axis("off")
        panels[0].legend(fontsize=8, frameon=False)
        return png(figure)


def on_the_fly_csv(data: ReportData) -> str:
    """Every curve, a line a step and score; nothing where all is drawn."""
    rows = [
        (protocol.name, name, f"{share:.2f}", score, float(value))
        for protocol in data.protocols
        for name, method in protocol.methods.items()
        if method.course is not None
        for score, curve in {
            "percentile": method.course.percentile,
            "reciprocal_rank": method.course.reciprocal_rank,
            **{f"rank_{k}": curve for k, curve in method.course.found.items()},
        }.items()
        for share, value in zip(method.course.shares, curve, strict=True)
    ]
    if not rows:
        return ""
    return csv_text(("protocol", "method", "drawn", "score", "value"), rows)
