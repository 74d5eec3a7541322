"""The look of every figure, and its way to the bytes of a PNG file."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from cppcl.report.thumbnails import small_png

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Told apart by people who do not see colours as most do (Okabe and Ito), and in print by dashes.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
DASHES: Sequence[Any] = ("-", (0, (6, 2)), (0, (5, 1, 1, 1)), (0, (3, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X")


@contextmanager
def defaults() -> Iterator[None]:
    """The style of matplotlib itself, whatever the user's is; unknown glyphs become boxes."""
    import matplotlib.style

    with warnings.catch_warnings(), matplotlib.style.context("default"):
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from font")
        yield


def tidy(axes: Axes) -> None:
    """A light grid behind the curves, and no frame where nothing is read off."""
    axes.grid(color="0.9")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def whole_numbers(axes: Axes) -> None:
    """Ticks of x at whole numbers alone."""
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))


def line(number: int, name: str) -> dict[str, Any]:
    """Style of the curve of one of several names, and its label in the legend."""
    return {
        "color": COLOURS[number % len(COLOURS)],
        "linestyle": DASHES[number % len(DASHES)],
        "linewidth": 1.8,
        "label": plain(name),
    }


def plain(text: str) -> str:
    """Keep a name from being read as a formula, or hidden for its leading underscore."""
    return ("\u200b" + text if text.startswith("_") else text).replace("$", r"\$")


def png(figure: Figure, *, palette: bool = True) -> bytes:
    """Bytes of a PNG file of a figure: the same for the same figure.

    Parameters
    ----------
    figure : Figure
        What is drawn.
    palette : bool
        Whether 256 colours will do; a scale of colours needs more.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image

    # `savefig` would lay out and encode every figure twice, and add matplotlib's version.
    figure.set_dpi(150)
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    return small_png(Image.fromarray(np.asarray(canvas.buffer_rgba())), palette=palette)
