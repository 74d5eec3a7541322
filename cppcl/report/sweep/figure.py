"""Plot of a sweep: a score of every method over the values of an option."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cppcl.report.style import defaults, line, plain, png, tidy
from cppcl.report.sweep.data import Axis, SweepData, value_text
from cppcl.report.tables import is_percent, score_text, score_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKERS = ("o", "s", "^", "D", "v", "P", "X")
SPREAD = 12.0
"""Points along x over which methods stand apart at one value, so that no bar hides another."""
CHARACTER = 0.075
"""Width of a character of a label, in inches."""


def sweep_png(data: SweepData) -> bytes:
    """Plot as bytes of a PNG file: the same bytes for the same data."""
    with defaults():
        return png(draw(data))


def draw(data: SweepData) -> Figure:
    """Mean and deviation over splits of every method.

    Values of the last option are drawn along x. There is a panel for each value of the first, if
    there are two, and a row of panels for each protocol. Panels of a row share y.
    """
    from matplotlib.figure import Figure

    columns: list[tuple[Any, ...]] = [()]
    if len(data.axes) == 2:
        columns = [(value,) for value in data.axes[0].values]
    rows = data.protocols
    title = score_title(data.score)
    width = 5.0 if len(columns) == 1 else max(2.6, min(4.0, 10.0 / len(columns)))
    figure = Figure(
        figsize=(width * len(columns) + 1.8, 3.2 * len(rows) + 0.4), layout="constrained"
    )
    panels = figure.subplots(len(rows), len(columns), squeeze=False, sharex=True, sharey="row")
    figure.suptitle(plain(_headline(data)), fontsize=10)
    for protocol, row in zip(rows, panels, strict=True):
        for first, axes in zip(columns, row, strict=True):
            _draw_panel(axes, data, protocol, first)
        row[0].set_ylim(_bounds(data, protocol))
        row[0].set_ylabel(plain(f"{protocol}\n{title}" if len(rows) > 1 else title))
        _legend(row, data, protocol)
    for first, axes in zip(columns, panels[0], strict=True):
        _mark_values(axes, data.axes[-1], width)
        if first:
            axes.set_title(plain(f"{data.axes[0].option}: {_short(first[0])}"), fontsize=9)
    for axes in panels[-1]:
        axes.set_xlabel(plain(data.axes[-1].option))
    return figure


def _headline(data: SweepData) -> str:
    counts = sorted({len(row.scores) for row in data.rows})
    if counts == [1]:
        return f"{data.experiment}, one split"
    number = "-".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
    return f"{data.experiment}, mean ± standard deviation of {number} splits"


def _places(axis: Axis) -> tuple[list[Any], NDArray[np.float64]]:
    """Values from left to right, and where they stand along x."""
    if axis.numeric:
        values = sorted(axis.values)
        return values, np.array(values, np.float64)
    return list(axis.values), np.arange(len(axis.values), dtype=np.float64)


def _draw_panel(axes: Axes, data: SweepData, protocol: str, first: tuple[Any, ...]) -> None:
    """Draw one panel: a line a method, over the values of the last option."""
    from matplotlib.transforms import ScaledTranslation

    values, places = _places(data.axes[-1])
    scale = _scale(data.score)
    tidy(axes)
    figure: Any = axes.figure
    for number, method in enumerate(data.methods):
        found = [data.find(protocol, method, (*first, value)) for value in values]
        if not any(found):
            continue
        means = np.array([scale * row.mean if row else np.nan for row in found])
        deviations = np.array([scale * ((row and row.std) or 0) for row in found])
        aside = SPREAD * ((number + 0.5) / len(data.methods) - 0.5) / 72
        axes.errorbar(
            places,
            means,
            deviations if deviations.any() else None,
            **line(number, method),
            marker=MARKERS[number % len(MARKERS)],
            markersize=4.5,
            elinewidth=1,
            capsize=2.5,
            transform=axes.transData + ScaledTranslation(aside, 0, figure.dpi_scale_trans),
        )


def _scale(score: str) -> int:
    return 100 if is_percent(score) else 1


def _bounds(data: SweepData, protocol: str) -> tuple[float, float]:
    """Limits of y, which matplotlib does not find for what stands aside."""
    scale = _scale(data.score)
    ends = [
        scale * (row.mean + sign * (row.std or 0))
        for row in data.rows
        if row.protocol == protocol
        for sign in (-1, 1)
    ]
    margin = 0.06 * (max(ends) - min(ends)) or 0.01 * scale
    return min(ends) - margin, max(ends) + margin


def _mark_values(axes: Axes, axis: Axis, width: float) -> None:
    """Scale x, and put the ticks at the values, unless they would stand on one another.

    The panel is ``width`` inches wide.
    """
    from matplotlib.ticker import NullLocator

    values, places = _places(axis)
    if not axis.numeric:
        labels = [plain(_short(value)) for value in values]
        crowded = sum(len(label) + 2 for label in labels) * CHARACTER > width
        turned: dict[str, Any] = {"rotation": 30, "ha": "right"} if crowded else {}
        axes.set_xticks(places, labels, **turned, fontsize=8)
        axes.set_xlim(-0.5, len(values) - 0.5)
        return
    on_paper = np.log(places) if axis.logarithmic else places
    span = float(np.ptp(on_paper))
    margin = 0.07 * span or 1.0
    limits = np.array([on_paper[0] - margin, on_paper[-1] + margin])
    if axis.logarithmic:
        axes.set_xscale("log")
    axes.set_xlim(*(np.exp(limits) if axis.logarithmic else limits))
    if len(places) == 1 or np.diff(on_paper).min() > 0.06 * span:
        axes.set_xticks(places, [f"{value:g}" for value in values])
        axes.xaxis.set_minor_locator(NullLocator())


def _legend(panels: Any, data: SweepData, protocol: str) -> None:
    """Name the methods beside the last panel of a row, and say what chance reaches."""
    named: dict[str, Any] = {}
    for axes in panels:
        handles, labels = axes.get_legend_handles_labels()
        named.update(zip(labels, handles, strict=True))
    levels = [row.chance for row in data.rows if row.protocol == protocol]
    chance = dict.fromkeys(score_text(data.score, level) for level in (min(levels), max(levels)))
    panels[-1].legend(
        named.values(),
        named.keys(),
        loc="upper left",
        bbox_to_anchor=(1.02, 1.0),
        frameon=False,
        fontsize=8,
        title=f"chance: {' to '.join(chance)}",
        title_fontsize=8,
        alignment="left",
        handlelength=3,
    )


def _short(value: Any) -> str:
    text = value_text(value)
    return text if len(text) <= 28 else text[:27] + "…"
