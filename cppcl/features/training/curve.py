"""Loss and held-out score of a training, drawn."""

from __future__ import annotations

import io

import numpy as np
from numpy.typing import NDArray

from cppcl.features.base import Drawing


def curve_of(history: NDArray[np.floating]) -> Drawing:
    """Draw a history, (epochs, 2): loss and held-out score, NaN where there is none."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from PIL import Image

    figure = Figure(figsize=(5, 2.6), dpi=120)
    FigureCanvasAgg(figure)
    figure.subplots_adjust(left=0.12, right=0.88, bottom=0.2, top=0.95)
    passes = np.arange(1, len(history) + 1)
    axis = figure.add_subplot()
    axis.plot(passes, history[:, 0], color="C0")
    axis.set_xlabel("pass over the training pictures")
    axis.set_ylabel("loss", color="C0")
    axis.set_ylim(bottom=0)
    if np.isfinite(history[:, 1]).any():
        other = axis.twinx()
        other.plot(passes, 100 * history[:, 1], color="C1")
        other.set_ylabel("held out, mAP %", color="C1")
        other.set_ylim(bottom=0)
    file = io.BytesIO()
    figure.savefig(file, format="png")
    picture = np.asarray(Image.open(file).convert("RGB"))
    return Drawing(
        picture,
        "Mean loss of each pass over the training pictures, and mean average precision of the "
        "pictures that were held out of training, by which the pass that is kept was chosen",
    )
