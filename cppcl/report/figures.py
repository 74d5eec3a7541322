"""Figures of a report, as bytes of PNG files: the same bytes for the same data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cppcl.report.data import ProtocolResult, ResultGrid
from cppcl.report.style import DASHES, defaults, line, plain, png, tidy, whole_numbers
from cppcl.report.thumbnails import thumbnail
from cppcl.retrieval.metrics import RECALL_LEVELS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

QUERY, RIGHT, WRONG = "#8c959f", "#1a7f37", "#c4281c"
CELL, GAP = (1.25, 1.45), 0.04
"""Width and height of a picture with its label, and the space around it, in inches."""


def precision_recall_png(protocol: ProtocolResult) -> bytes:
    """Precision over recall of every method, with the mAP of chance."""
    with defaults():
        figure, (axes,) = _figure(1)
        for number, (name, method) in enumerate(protocol.methods.items()):
            axes.plot(RECALL_LEVELS, np.asarray(method.precision_recall), **line(number, name))
        if "map" in protocol.chance:
            axes.axhline(protocol.chance["map"], color="0.45", lw=1, ls=":", label="chance, mAP")
        axes.set(xlabel="recall", ylabel="precision", xlim=(0, 1), ylim=(0, None))
        _legend(axes)
        return png(figure)


def cumulative_match_png(protocol: ProtocolResult) -> bytes | None:
    """Rank-k accuracy over k of every method; None where it is not known."""
    curves = [
        (number, name, np.asarray(method.cumulative_match))
        for number, (name, method) in enumerate(protocol.methods.items())
        if method.cumulative_match is not None
    ]
    if not curves:
        return None
    with defaults():
        figure, (axes,) = _figure(1)
        for number, name, curve in curves:
            axes.plot(np.arange(1, len(curve) + 1), 100 * curve, **line(number, name))
        axes.set(xlabel="k", ylabel="rank-k accuracy (%)", xlim=(1, None), ylim=(0, None))
        whole_numbers(axes)
        _legend(axes)
        return png(figure)


def history_png(protocol: ProtocolResult) -> bytes | None:
    """Objective, gamma and pacing over iterations, a panel each; None where none is known."""
    panels: dict[str, list[tuple[int, str, str, Any]]] = {}
    for number, (name, method) in enumerate(protocol.methods.items()):
        for key, values in method.history.items():
            panel, _, curve = key.partition("/")
            panels.setdefault(panel, []).append((number, name, curve, np.asarray(values)))
    if not panels:
        return None
    with defaults():
        figure, all_axes = _figure(len(panels))
        for axes, (panel, curves) in zip(all_axes, panels.items(), strict=True):
            kinds = list(dict.fromkeys(curve for _, _, curve, _ in curves))
            for number, name, curve, values in curves:
                style = line(number, f"{name}, {curve}" if curve else name)
                style["linestyle"] = DASHES[kinds.index(curve) % len(DASHES)]
                axes.plot(np.arange(1, len(values) + 1), values, marker=".", **style)
            axes.set_ylabel(plain(panel))
            whole_numbers(axes)
            _legend(axes)
        all_axes[-1].set_xlabel("outer iteration")
        return png(figure)


def grid_png(grid: ResultGrid) -> bytes:
    """Queries on the left, each with its nearest pictures, framed by right and wrong."""
    from matplotlib.figure import Figure

    columns = 1 + max((len(query.nearest) for query in grid.queries), default=0)
    rows = max(1, len(grid.queries))
    width, height = CELL[0] * columns, CELL[1] * rows
    with defaults():
        figure = Figure(figsize=(width, height))
        # One for all pictures, in inches: one for each takes seconds.
        axes = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(height, 0), autoscale_on=False)
        axes.axis("off")
        for row, query in enumerate(grid.queries):
            _show(axes, row, 0, query.picture, query.label, QUERY, ":")
            for column, found in enumerate(query.nearest, start=1):
                mark, colour, dash = (
                    ("✓", RIGHT, "-") if found.correct else ("✗", WRONG, (0, (3, 2)))
                )
                label = f"{mark} {found.label}"
                _show(axes, row, column, found.picture, label, colour, dash)
        return png(figure)


def _show(
    axes: Axes, row: int, column: int, picture: Any, label: str, colour: str, dash: Any
) -> None:
    from matplotlib.patches import Rectangle

    side = CELL[0] - 2 * GAP
    left, top = CELL[0] * column + GAP, CELL[1] * row + GAP
    extent = (left, left + side, top + side, top)
    axes.imshow(np.asarray(thumbnail(picture)), extent=extent, aspect="auto")
    frame = Rectangle((left, top), side, side, fill=False, ec=colour, lw=2.5, ls=dash)
    axes.add_patch(frame)
    axes.text(
        left + side / 2,
        top + side + GAP,
        label if len(label) <= 18 else label[:17] + "…",
        fontsize=7,
        color="black" if colour == QUERY else colour,
        ha="center",
        va="top",
        parse_math=False,
    )


def _figure(n_panels: int) -> tuple[Figure, list[Axes]]:
    from matplotlib.figure import Figure

    height = 3.4 if n_panels == 1 else 2.0 * n_panels
    figure = Figure(figsize=(5.4, height), layout="constrained")
    panels = figure.subplots(n_panels, 1, squeeze=False, sharex=True)[:, 0]
    for axes in panels:
        tidy(axes)
    return figure, list(panels)


def _legend(axes: Axes) -> None:
    axes.legend(frameon=False, fontsize=8, loc="best")
