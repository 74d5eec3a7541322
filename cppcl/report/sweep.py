"""The report of a sweep: scores of every method over the values of one or two options."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import InputError
from cppcl.report.style import MARKERS, defaults, line, plain, png, tidy
from cppcl.report.tables import score_caption, score_text, score_title
from cppcl.report.thumbnails import png_uri
from cppcl.report.writing import csv_text, render_page
from cppcl.retrieval.metrics import summarise

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SPREAD = 12.0
"""Points along x over which methods stand apart at one value, so that no bar hides another."""
CHARACTER = 0.075
"""Width of a character of a label, in inches."""
COLUMNS = ("protocol", "method", "splits", "score", "mean", "std", "chance")
"""Columns of the table beside those of the options."""


def value_text(value: Any) -> str:
    """Value of an option as YAML takes it; a text as it is."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True)
class Axis:
    """An option and the values that it takes.

    Parameters
    ----------
    option : str
        A name or a dotted path.
    values : tuple
        Plain data (what YAML can hold), each once.
    """

    option: str
    values: tuple[Any, ...]

    def __post_init__(self) -> None:
        texts = [value_text(value) for value in self.values]
        if not texts or len(set(texts)) < len(texts):
            raise InputError(
                f"{self.option} takes the values {texts}; give at least one, each once"
            )

    @property
    def numeric(self) -> bool:
        """Whether every value is a number."""
        return all(isinstance(v, int | float) and not isinstance(v, bool) for v in self.values)

    @property
    def logarithmic(self) -> bool:
        """Whether the values are positive numbers that span a decade or more."""
        if not self.numeric or min(self.values) <= 0:
            return False
        return math.log10(max(self.values)) - math.log10(min(self.values)) > 1 - 1e-9


@dataclass(frozen=True)
class SweepScores:
    """What one method reached under one protocol with one combination of values.

    Parameters
    ----------
    values : tuple
        A value of each axis.
    protocol, method : str
        Their names.
    scores : sequence of float
        Of each split.
    chance : float
        Expected score of a random ranking, averaged over splits.
    """

    values: tuple[Any, ...]
    protocol: str
    method: str
    scores: Sequence[float]
    chance: float

    @property
    def mean(self) -> float:
        """Mean over splits."""
        return summarise([{"score": score} for score in self.scores])["score"]

    @property
    def std(self) -> float | None:
        """Standard deviation over splits (divisor splits - 1); None for a single split."""
        return summarise([{"score": score} for score in self.scores]).get("score_std")


@dataclass(frozen=True)
class SweepData:
    """All that the report of a sweep shows.

    Parameters
    ----------
    experiment : str
        Its name.
    score : str
        Key of the score, such as ``rank_1``.
    axes : sequence of Axis
        One, or two: the first tells panels apart, the last is drawn along x.
    rows : sequence of SweepScores
        Combinations without any row are shown as missing.
    """

    experiment: str
    score: str
    axes: Sequence[Axis]
    rows: Sequence[SweepScores]

    def __post_init__(self) -> None:
        if not 1 <= len(self.axes) <= 2:
            raise InputError(f"a sweep shows one or two options, not {len(self.axes)}")
        if not self.rows:
            raise InputError(f"sweep of {self.experiment!r} has no scores; give at least one row")

    @property
    def protocols(self) -> list[str]:
        """Names of the protocols, in order of appearance."""
        return list(dict.fromkeys(row.protocol for row in self.rows))

    @property
    def methods(self) -> list[str]:
        """Names of the methods of all protocols, in order of appearance."""
        return list(dict.fromkeys(row.method for row in self.rows))

    @property
    def combinations(self) -> list[tuple[Any, ...]]:
        """Every combination of values, the last option fastest."""
        return list(itertools.product(*(axis.values for axis in self.axes)))

    def find(self, protocol: str, method: str, values: tuple[Any, ...]) -> SweepScores | None:
        """What a method reached with a combination; None where it is missing."""
        wanted = (protocol, method, value_text(values))
        for row in self.rows:
            if (row.protocol, row.method, value_text(row.values)) == wanted:
                return row
        return None

    @property
    def missing(self) -> list[tuple[Any, ...]]:
        """Combinations of which nothing is known."""
        known = {value_text(row.values) for row in self.rows}
        return [values for values in self.combinations if value_text(values) not in known]


def render_sweep(data: SweepData) -> dict[str, bytes]:
    """Render a sweep into files.

    Returns
    -------
    dict of str to bytes
        ``sweep.csv``, a line for each combination, protocol and method; ``sweep.json``, the same
        with the scores of each split; ``sweep.png``; and ``sweep.html``, a page that refers to
        nothing outside itself. The same bytes for the same data.
    """
    plot = sweep_png(data)
    return {
        "sweep.csv": sweep_csv(data).encode(),
        "sweep.json": (json.dumps(sweep_document(data), indent=1) + "\n").encode(),
        "sweep.png": plot,
        "sweep.html": sweep_page(data, plot).encode(),
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


def sweep_page(data: SweepData, plot: bytes) -> str:
    """A page with the plot and a table of every protocol."""
    return render_page(
        "sweep.html",
        data=data,
        title=score_title(data.score),
        caption=f"{score_caption(data.score)}; {_of_splits(data)}",
        plot=png_uri(plot),
        tables=_tables(data),
    )


def _tables(data: SweepData) -> list[dict[str, Any]]:
    tables = []
    for protocol in data.protocols:
        here = [row for row in data.rows if row.protocol == protocol]
        methods = list(dict.fromkeys(row.method for row in here))
        rows = []
        for values in data.combinations:
            found = [data.find(protocol, method, values) for method in methods]
            cells = [score_text(row.mean, row.std) if row else "–" for row in found]
            chance = next((score_text(row.chance) for row in found if row), "–")
            rows.append((list(map(value_text, values)), [*cells, chance]))
        tables.append({"protocol": protocol, "methods": [*methods, "chance"], "rows": rows})
    return tables


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
    return f"{data.experiment}, {_of_splits(data)}"


def _of_splits(data: SweepData) -> str:
    counts = sorted({len(row.scores) for row in data.rows})
    if counts == [1]:
        return "one split"
    number = "-".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
    return f"mean ± standard deviation of {number} splits"


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
    tidy(axes)
    figure: Any = axes.figure
    for number, method in enumerate(data.methods):
        found = [data.find(protocol, method, (*first, value)) for value in values]
        if not any(found):
            continue
        means = np.array([100 * row.mean if row else np.nan for row in found])
        deviations = np.array([100 * ((row and row.std) or 0) for row in found])
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


def _bounds(data: SweepData, protocol: str) -> tuple[float, float]:
    """Limits of y; matplotlib does not find them for markers that are moved aside."""
    ends = [
        100 * (row.mean + sign * (row.std or 0))
        for row in data.rows
        if row.protocol == protocol
        for sign in (-1, 1)
    ]
    margin = 0.06 * (max(ends) - min(ends)) or 1.0
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
    """Name the methods beside the last panel of a row, with the score of chance."""
    named: dict[str, Any] = {}
    for axes in panels:
        handles, labels = axes.get_legend_handles_labels()
        named.update(zip(labels, handles, strict=True))
    levels = [row.chance for row in data.rows if row.protocol == protocol]
    chance = dict.fromkeys(score_text(level) for level in (min(levels), max(levels)))
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
