"""Scores over the share of wrong pairs or labels in training, where protocols differ in that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cppcl.report.style import defaults, line, png, tidy
from cppcl.report.tables import score_title

if TYPE_CHECKING:
    from cppcl.report.data import ProtocolResult

KINDS = {
    "wrong_pairs": "wrong pairs",
    "near_pairs": "wrong pairs of similar names",
    "wrong_labels": "wrong labels",
}
"""Kinds of noise, and their names for people."""
SHARE = "estimated share right"
AUC = "area under the curve of v, wrong against right"
"""Names of what training under noise found, in `MethodResult.training`."""


@dataclass(frozen=True)
class NoiseCurve:
    """Protocols that are alike but for how much of their training is wrong, least first.

    Attributes
    ----------
    kind : str
        One of `KINDS`.
    levels : tuple of float
        Share that is wrong under each protocol.
    protocols : tuple of ProtocolResult
        What was measured.
    """

    kind: str
    levels: tuple[float, ...]
    protocols: tuple[ProtocolResult, ...]

    @property
    def title(self) -> str:
        """What is wrong, in words."""
        return KINDS[self.kind]

    @property
    def several(self) -> bool:
        """True if a score is the mean over several splits."""
        return any(len(m.scores) > 1 for p in self.protocols for m in p.methods.values())

    def means(self, method: str) -> list[float]:
        """Mean main score of a method at each level."""
        return [
            float(np.mean([scores[p.main_score] for scores in p.methods[method].scores]))
            for p in self.protocols
        ]

    def picture(self) -> bytes:
        """Main score of every method over the share that is wrong, as a PNG file."""
        from matplotlib.figure import Figure

        first = self.protocols[0]
        percent = 100 * np.array(self.levels)
        with defaults():
            figure = Figure(figsize=(7, 4.5), layout="constrained")
            axes = figure.subplots()
            for number, name in enumerate(first.methods):
                values = 100 * np.array(self.means(name))
                axes.plot(percent, values, marker="o", **line(number, name))
            axes.set_xlabel(f"{self.title} in training (%)")
            axes.set_ylabel(score_title(first.main_score))
            axes.set_xticks(percent)
            tidy(axes)
            axes.legend(fontsize=8, frameon=False, ncols=2)
            return png(figure)


def noise_curves(protocols: Sequence[ProtocolResult]) -> list[NoiseCurve]:
    """Protocols of the same methods and score that differ in noise, by what is wrong.

    Clean ones of the same methods are the beginning of the curve.
    """
    found = []
    for kind in KINDS:
        noisy = [p for p in protocols if p.noise.get(kind)]
        for first in noisy:
            alike = [
                p
                for p in protocols
                if p.main_score == first.main_score
                and list(p.methods) == list(first.methods)
                and not set(p.noise) - {kind}
            ]
            levels = [p.noise.get(kind, 0.0) for p in alike]
            if first is next(p for p in alike if p.noise) and len(set(levels)) > 1:
                order = np.argsort(levels, kind="stable").tolist()
                found.append(
                    NoiseCurve(
                        kind, tuple(levels[k] for k in order), tuple(alike[k] for k in order)
                    )
                )
    return found
