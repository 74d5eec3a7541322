"""Figures of a reproduction, as SVG for light and dark pages and as PNG: the same bytes always."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from cppcl.report.data import ResultGrid
from cppcl.report.figures import grid_png
from cppcl.report.reproduction.data import Bars, Figure, Panel, Plots, Points, Surface
from cppcl.report.style import COLOURS, DASHES, MARKERS, defaults, plain, png
from cppcl.retrieval.comparison import Interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

Theme = Literal["light", "dark"]

# Okabe and Ito; those that vanish on a dark page are lighter there.
THEME_COLOURS = {
    "light": COLOURS,
    "dark": ("#4aa8e8", "#f0803c", "#2fc49b", "#e39cc5", "#8fd0f5", "#f2c14e", "#e6edf3"),
}
INK = {"light": "#1f2328", "dark": "#e6edf3"}
PAPER = {"light": "#ffffff", "dark": "#0d1117"}
LINES = {"light": "#d8dee4", "dark": "#30363d"}
PANELS_IN_A_ROW = 2
MOST_INCHES = 60.0
"""Height of a plot of many categories."""
LEAST_FACTOR = 10.0
"""Least factor between the ends of a logarithmic axis of points."""
SHOWN_POINTS = 25
"""Curves of more points than this are drawn without markers."""


def render_figure(figure: Figure) -> dict[str, bytes]:
    """Files of a figure by name: ``.svg`` and ``-dark.svg`` for pages, and ``.png``.

    Pictures found for queries are a PNG alone.
    """
    if isinstance(figure.content, ResultGrid):
        return {f"{figure.name}.png": grid_png(figure.content)}
    files = {}
    themes: tuple[tuple[Theme, str], ...] = (("light", ""), ("dark", "-dark"))
    for theme, ending in themes:
        with themed(theme):
            drawing = draw(figure.content, theme)
            files[f"{figure.name}{ending}.svg"] = svg(drawing, theme)
            if theme == "light":
                files[f"{figure.name}.png"] = png(drawing, palette=False)
    return files


@contextmanager
def themed(theme: Theme) -> Iterator[None]:
    """Colours of a theme; identifiers in SVG files that do not change."""
    import matplotlib as mpl

    ink = INK[theme]
    with defaults(), mpl.rc_context():
        mpl.rcParams.update(
            {
                "svg.hashsalt": "cppcl",
                "text.color": ink,
                "axes.labelcolor": ink,
                "axes.edgecolor": ink,
                "axes.titlecolor": ink,
                "xtick.color": ink,
                "ytick.color": ink,
                "axes.facecolor": PAPER[theme],
                "figure.facecolor": PAPER[theme],
                "legend.labelcolor": ink,
            }
        )
        yield


def svg(drawing: Drawing, theme: Theme) -> bytes:
    """Bytes of an SVG file, without date and version."""
    buffer = io.BytesIO()
    drawing.savefig(
        buffer,
        format="svg",
        facecolor=PAPER[theme],
        metadata={"Date": None, "Creator": None},
    )
    return buffer.getvalue()


def draw(content: Plots | Bars | Surface | Points, theme: Theme) -> Drawing:
    """Draw what a figure holds."""
    if isinstance(content, Plots):
        return _draw_plots(content, theme)
    if isinstance(content, Bars):
        return _draw_bars(content, theme)
    if isinstance(content, Surface):
        return _draw_surface(content, theme)
    return _draw_points(content, theme)


def _draw_plots(content: Plots, theme: Theme) -> Drawing:
    from matplotlib.figure import Figure as Canvas

    n = len(content.panels)
    columns = min(n, PANELS_IN_A_ROW)
    rows = -(-n // columns)
    figure = Canvas(figsize=(4.6 * columns, 3.3 * rows + 0.3), layout="constrained")
    places = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes in places[n:]:
        axes.axis("off")
    named: dict[str, Any] = {}
    for axes, panel in zip(places, content.panels, strict=False):
        _draw_panel(axes, panel, theme)
        handles, labels = axes.get_legend_handles_labels()
        named |= dict(zip(labels, handles, strict=True))
    if named:
        figure.legend(
            named.values(),
            named.keys(),
            loc="outside lower center",
            ncols=min(3, len(named)),
            frameon=False,
            fontsize=8,
            handlelength=3,
        )
    return figure


def _draw_panel(axes: Axes, panel: Panel, theme: Theme) -> None:
    _tidy(axes, theme)
    for curve in panel.curves:
        many = len(curve.x) > SHOWN_POINTS or not curve.markers
        axes.errorbar(
            np.asarray(curve.x, np.float64),
            np.asarray(curve.y, np.float64),
            None if curve.intervals is None else _bars(curve.intervals),
            color=_colour(curve.number, theme),
            linestyle=DASHES[curve.number % len(DASHES)],
            linewidth=1.8,
            marker=None if many else _marker(curve.number),
            markersize=4.5,
            elinewidth=1,
            capsize=2.5,
            label=plain(curve.label),
        )
    if panel.level:
        name, value = panel.level
        axes.axhline(value, color=INK[theme], lw=1, ls=":", label=plain(name))
    if panel.logarithmic:
        axes.set_xscale("log")
    if panel.y_from_zero:
        axes.set_ylim(0, None)
    if panel.title != panel.x_label:
        axes.set_title(plain(panel.title), fontsize=9)
    axes.set_xlabel(plain(panel.x_label), fontsize=9)
    axes.set_ylabel(plain(panel.y_label), fontsize=9)
    axes.tick_params(labelsize=8)


def _draw_bars(content: Bars, theme: Theme) -> Drawing:
    from matplotlib.figure import Figure as Canvas

    n, methods = len(content.categories), len(content.values)
    figure = Canvas(
        figsize=(6.4, min(MOST_INCHES, max(2.5, n * (0.16 * methods + 0.14) + 1.0))),
        layout="constrained",
    )
    axes = figure.subplots()
    _tidy(axes, theme)
    height = 0.84 / methods
    for number, (method, values) in enumerate(content.values.items()):
        axes.barh(
            np.arange(n) + (number - (methods - 1) / 2) * height,
            np.asarray(values, np.float64),
            height,
            color=_colour(number, theme),
            label=plain(method),
        )
    axes.set_yticks(np.arange(n), [plain(name) for name in content.categories], fontsize=8)
    axes.set_ylim(n - 0.5, -0.5)
    axes.set_xlabel(plain(content.y_label), fontsize=9)
    axes.tick_params(labelsize=8)
    figure.legend(loc="outside lower center", ncols=min(3, methods), frameon=False, fontsize=8)
    return figure


def _draw_surface(content: Surface, theme: Theme) -> Drawing:
    from matplotlib.figure import Figure as Canvas

    known = [[np.nan if one is None else one.mean for one in row] for row in content.values]
    values = np.asarray(known, np.float64)
    figure = Canvas(
        figsize=(1.5 + 0.86 * len(content.x), 1.2 + 0.62 * len(content.y)), layout="constrained"
    )
    axes = figure.subplots()
    # Colours of the whole range from 0: those of what differs by chance look alike.
    low, high = min(0.0, float(np.nanmin(values))), float(np.nanmax(values))
    image = axes.imshow(
        values, origin="lower", aspect="auto", cmap="cividis", vmin=low, vmax=high or 1.0
    )
    for row, column in np.ndindex(values.shape):
        one = content.values[row][column]
        if one is not None:
            axes.text(
                column,
                row,
                f"{_short(one.mean)}\n{_short(one.low)} to {_short(one.high)}",
                ha="center",
                va="center",
                fontsize=6.5,
                color="black" if one.mean > (low + high) / 2 else "white",
            )
    axes.set_xticks(range(len(content.x)), [f"{value:g}" for value in content.x], fontsize=8)
    axes.set_yticks(range(len(content.y)), [f"{value:g}" for value in content.y], fontsize=8)
    axes.set_xlabel(plain(content.x_label), fontsize=9)
    axes.set_ylabel(plain(content.y_label), fontsize=9)
    bar = figure.colorbar(image, label=content.value_label)
    bar.ax.tick_params(labelsize=8)
    return figure


def _draw_points(content: Points, theme: Theme) -> Drawing:
    from matplotlib.figure import Figure as Canvas

    figure = Canvas(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.subplots()
    _tidy(axes, theme)
    for number, (name, (x, y)) in enumerate(content.points.items()):
        axes.errorbar(
            x.mean,
            y.mean,
            _bars([y]),
            _bars([x]),
            elinewidth=1,
            capsize=2.5,
            color=_colour(number, theme),
            marker=_marker(number),
            markerfacecolor="none" if number >= len(MARKERS) else None,
            markersize=7,
            linestyle="",
            label=plain(name),
        )
    if content.logarithmic:
        axes.set_xscale("log")
        _widen(axes)
    axes.set_xlabel(plain(content.x_label), fontsize=9)
    axes.set_ylabel(plain(content.y_label), fontsize=9)
    axes.set_ylim(0, None)
    axes.tick_params(labelsize=8)
    columns = min(3, len(content.points))
    figure.legend(loc="outside lower center", ncols=columns, frameon=False, fontsize=8)
    return figure


def _bars(intervals: Sequence[Interval]) -> NDArray[np.float64]:
    """How far intervals reach below and above their means, (2, n)."""
    reach = [(one.mean - one.low, one.high - one.mean) for one in intervals]
    return np.maximum(np.asarray(reach, np.float64).T, 0)


def _short(value: float) -> str:
    """A value as small type holds it."""
    return f"{value:.1f}"


def _widen(axes: Axes) -> None:
    """Let a logarithmic axis of x hold a factor of ten at least: close times then look close."""
    low, high = axes.get_xlim()
    if high < LEAST_FACTOR * low:
        middle = np.sqrt(low * high)
        axes.set_xlim(middle / np.sqrt(LEAST_FACTOR), middle * np.sqrt(LEAST_FACTOR))


def _colour(number: int, theme: Theme) -> str:
    return THEME_COLOURS[theme][number % len(COLOURS)]


def _marker(number: int) -> str:
    """Another marker where colours begin anew."""
    return MARKERS[(number + number // len(MARKERS)) % len(MARKERS)]


def _tidy(axes: Axes, theme: Theme) -> None:
    axes.grid(color=LINES[theme])
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
