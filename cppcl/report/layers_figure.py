"""One figure of what a descriptor sees of a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cppcl.features.layers import Layer, Numbers, Seen, Tiles
from cppcl.report.style import COLOURS, defaults, png

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure

COLUMNS = 3
PANEL = 3.2
"""Side of a panel, inches."""
MOST_BARS = 128
"""Values above which a vector is drawn as a heat map."""
MANY_POINTS = 1000
"""Points above which they are drawn small."""
GREY, LINE = "0.75", "#d55e00"
FADED = 0.35
"""How dark a picture is under what is drawn over it."""


def layers_png(title: str, layers: list[Layer]) -> bytes:
    """Draw layers side by side, as the bytes of a PNG file: the same for the same layers.

    Parameters
    ----------
    title : str
        Above all of them.
    layers : list of Layer
        At least one.
    """
    from matplotlib.figure import Figure

    columns = 2 if len(layers) == 4 else min(COLUMNS, len(layers))
    rows = -(-len(layers) // columns)
    with defaults():
        figure = Figure(figsize=(PANEL * columns, PANEL * rows + 0.4), layout="constrained")
        figure.suptitle(title, fontsize=11, parse_math=False)
        panels = figure.subfigures(rows, columns, squeeze=False).flat
        for panel, layer in zip(panels, layers, strict=False):
            panel.suptitle(layer.title, fontsize=9, parse_math=False)
            if isinstance(layer, Tiles):
                _draw_tiles(panel, layer)
            elif isinstance(layer, Numbers):
                _draw_numbers(panel, layer)
            else:
                _draw_seen(panel.subplots(), layer)
        return png(figure, palette=False)


def _draw_seen(axes: Axes, layer: Seen) -> None:
    """Draw a picture, faded where something lies over it."""
    over = (layer.points, layer.boxes, layer.angles)
    faded = any(drawn is not None for drawn in over)
    axes.imshow(_shown(layer.picture, faded), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    axes.set(xticks=[], yticks=[])
    height, width = layer.picture.shape[:2]
    for k in range(1, layer.grid):
        axes.axhline(k * height / layer.grid - 0.5, color=GREY, linewidth=0.6)
        axes.axvline(k * width / layer.grid - 0.5, color=GREY, linewidth=0.6)
    if layer.points is not None:
        _draw_points(axes, layer)
    if layer.boxes is not None:
        _draw_boxes(axes, layer.boxes)
    if layer.angles is not None and layer.lengths is not None:
        _draw_lines(axes, layer.angles, layer.lengths, layer.picture.shape)
    # What reaches beyond the picture, such as windows, must not shrink it.
    axes.set(xlim=(-0.5, width - 0.5), ylim=(height - 0.5, -0.5))


def _shown(picture: NDArray[Any], faded: bool) -> NDArray[Any]:
    """Values in [0, 1], marks dark on white."""
    if picture.dtype == np.bool_:
        values = np.where(picture, 0.0, 1.0)
    elif picture.dtype == np.uint8:
        values = picture / 255
    else:
        values = picture
    return 1 - FADED * (1 - values) if faded else values


def _draw_points(axes: Axes, layer: Seen) -> None:
    """Draw points: first the grey ones, then group after group."""
    points = np.asarray(layer.points)
    groups = np.zeros(len(points)) if layer.groups is None else layer.groups
    size = 2 if len(points) > MANY_POINTS else 9
    for group in sorted(set(groups.tolist())):
        colour = GREY if group < 0 else COLOURS[int(group) % len(COLOURS)]
        chosen = points[groups == group]
        axes.scatter(chosen[:, 1], chosen[:, 0], s=size, color=colour, linewidths=0)


def _draw_boxes(axes: Axes, boxes: NDArray[Any]) -> None:
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    drawn = [
        Rectangle((left - 0.5, top - 0.5), right - left, bottom - top)
        for left, top, right, bottom in boxes
    ]
    axes.add_collection(PatchCollection(drawn, facecolor="none", edgecolor=LINE, linewidth=1.2))


def _draw_lines(
    axes: Axes, angles: NDArray[Any], lengths: NDArray[Any], shape: tuple[int, ...]
) -> None:
    """Draw the lines of every cell through its middle."""
    from matplotlib.collections import LineCollection

    n_rows, n_columns, _ = angles.shape
    sides = np.array([shape[1] / n_columns, shape[0] / n_rows])
    relative = lengths / (float(np.max(lengths)) or 1.0)
    rows, columns, which = np.nonzero(relative)
    middles = (np.stack([columns, rows], axis=1) + 0.5) * sides - 0.5
    drawn, chosen = relative[rows, columns, which], angles[rows, columns, which]
    half = np.stack([np.cos(chosen), np.sin(chosen)], axis=1) * drawn[:, None] * sides.min() / 2
    segments = np.stack([middles - half, middles + half], axis=1)
    axes.add_collection(LineCollection(list(segments), colors=LINE, linewidths=0.9))


def _draw_tiles(panel: SubFigure, layer: Tiles) -> None:
    columns = min(3, max(1, len(layer.tiles)))
    rows = -(-len(layer.tiles) // columns)
    grid = panel.subplots(max(rows, 1), columns, squeeze=False)
    for axes in grid.flat:
        axes.axis("off")
    for number, (axes, tile) in enumerate(zip(grid.flat, layer.tiles, strict=False)):
        axes.axis("on")
        axes.imshow(tile, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
        axes.set(xticks=[], yticks=[])
        axes.set_xlabel(layer.captions[number], fontsize=8)
        for spine in axes.spines.values():
            spine.set(color=COLOURS[number % len(COLOURS)], linewidth=3)


def _draw_numbers(panel: SubFigure, layer: Numbers) -> None:
    """Draw bars for few values, else a heat map; a long vector runs on line by line."""
    from matplotlib.ticker import MaxNLocator

    axes = panel.subplots()
    values = np.asarray(layer.values, dtype=np.float64)
    axes.tick_params(labelsize=7)
    if values.size == 1:
        axes.axis("off")
        axes.text(0.5, 0.5, f"{values.item():.4g}", ha="center", va="center", fontsize=20)
        return
    if values.size <= MOST_BARS and values.ndim == 1:
        axes.bar(np.arange(len(values)), values, color=COLOURS[0])
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_xlabel(f"{len(values)} values", fontsize=8)
        return
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True))
    rows, columns = layer.rows, layer.columns
    if values.ndim == 1:
        columns = f"{len(values)} values, line after line"
        values = _folded(values)
        axes.set(xticks=[], yticks=[])
    # The sign matters where there is one: 0 is then white, and as far on both sides.
    signed = bool(np.nanmin(values) < 0)
    limit = float(np.nanmax(np.abs(values))) or 1.0
    image = axes.imshow(
        values,
        aspect="auto",
        cmap="RdBu_r" if signed else "viridis",
        vmin=-limit if signed else 0,
        vmax=limit,
        interpolation="nearest",
    )
    axes.set_xlabel(columns, fontsize=8)
    axes.set_ylabel(rows, fontsize=8)
    panel.colorbar(image, ax=axes, shrink=0.8).ax.tick_params(labelsize=7)


def _folded(vector: NDArray[np.float64]) -> NDArray[np.float64]:
    """Lay out a vector in lines, as high as wide, NaN after its end."""
    width = int(np.ceil(np.sqrt(len(vector))))
    lines = np.full(-(-len(vector) // width) * width, np.nan)
    lines[: len(vector)] = vector
    return lines.reshape(-1, width)
