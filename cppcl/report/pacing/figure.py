"""Pacing variables over rounds, of easy samples and of hard ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cppcl.report.curricula import PLURAL
from cppcl.report.style import defaults, line, plain, png, tidy

if TYPE_CHECKING:
    from cppcl.report.pacing.data import PacedSide

QUARTERS = ("easiest quarter", "second", "third", "hardest quarter")


def mean_v_of_quarters(side: PacedSide) -> list[NDArray[np.float64]]:
    """Mean pacing variable, (rounds,), of each quarter by easiness; of all where none is known."""
    known = np.flatnonzero(np.isfinite(side.easiness))
    if len(known) < len(QUARTERS):
        return [side.v.mean(axis=1, dtype=np.float64)]
    order = known[np.argsort(-side.easiness[known], kind="stable")]
    return [
        side.v[:, rows].mean(axis=1, dtype=np.float64)
        for rows in np.array_split(order, len(QUARTERS))
    ]


def pacing_png(sides: Sequence[PacedSide]) -> bytes:
    """Mean v of each quarter of the samples by easiness over rounds, a panel each modality."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    with defaults():
        figure = Figure(figsize=(3.2 * len(sides), 2.6), layout="constrained")
        panels = figure.subplots(1, len(sides), squeeze=False, sharey=True)[0]
        for axes, side in zip(panels, sides, strict=True):
            tidy(axes)
            curves = mean_v_of_quarters(side)
            names = QUARTERS if len(curves) == len(QUARTERS) else ("all",)
            for number, (name, curve) in enumerate(zip(names, curves, strict=True)):
                axes.plot(np.arange(1, len(curve) + 1), curve, marker=".", **line(number, name))
            axes.set_title(plain(PLURAL[side.modality]), fontsize=9)
            axes.set(xlabel="round", ylim=(0, 1.02))
            axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
        panels[0].set_ylabel("mean v")
        panels[-1].legend(frameon=False, fontsize=8, loc="best")
        return png(figure)
