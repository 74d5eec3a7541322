"""The alternation of pacing, class map, code and function steps of supervised hashing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.curriculum.base import Curriculum
from cppcl.hashing.functions import BitRegression
from cppcl.hashing.objective import Array, HashedSamples, HashObjective, sums_by_class
from cppcl.modality import MODALITIES
from cppcl.optim.pacing.options import Pacing
from cppcl.optim.pacing.schedule import SelfPacing, odds_as_losses

N_STARTS = 2
"""Regressions of class codes, drawn first, by which codes start."""


@dataclass
class HashAlternation:
    """State of supervised hashing: codes, class map, hash functions and pacing variables.

    Parameters
    ----------
    classes : pair of (n_k,) int64 arrays
        Number of each sample's class, sketches first.
    regression : BitRegression
        Hash functions of the samples.
    n_bits : int
        Bits m of a code.
    unlike, label_weight, function_weight : float
        As of `cppcl.hashing.objective.HashObjective`.
    weights : (n,) float64
        Weights of the samples, where they are not paced.
    pacing_options : Pacing
        How samples are taken up.
    curricula : pair of Curriculum or None
        Ordered pairs of either modality.
    odds : (n,) array, optional
        Odds that each sample is wrong, which become a part of its loss in pacing.
    right_share : float, default 1
        Share of the samples that are right.
    """

    classes: tuple[NDArray[np.int64], NDArray[np.int64]]
    regression: BitRegression
    n_bits: int
    unlike: float
    label_weight: float
    function_weight: float
    weights: Array
    pacing_options: Pacing
    curricula: Sequence[Curriculum | None] = (None, None)
    odds: Array | None = None
    right_share: float = 1.0
    objective: HashObjective = field(init=False)
    pacing: SelfPacing = field(init=False)
    disagreement: Array | None = field(init=False, default=None)
    history: dict[str, list[float]] = field(init=False, default_factory=dict)
    pacing_rounds: list[NDArray[np.float32]] = field(init=False, default_factory=list)

    @property
    def paced(self) -> bool:
        """True if a regulariser weighs the samples."""
        return self.pacing_options.regularizer != "none"

    @property
    def sides(self) -> tuple[HashedSamples, HashedSamples]:
        """Sketches and images."""
        return self.objective.sketches, self.objective.images

    def start(self, rng: np.random.Generator) -> None:
        """Draw class codes, let regressions make them predictable, and take their signs.

        Samples start with the code of their class, so that both modalities agree.
        """
        classes = np.concatenate(self.classes)
        n_classes = int(classes.max()) + 1
        dtype = self.regression.rows.dtype
        of_class = rng.standard_normal((n_classes, self.n_bits))
        sizes = np.bincount(classes, self.weights, n_classes)[:, None]
        for _ in range(N_STARTS):
            values = self.regression.fit(of_class[classes].astype(dtype))
            of_class = sums_by_class(values, classes, self.weights, n_classes) / sizes
            of_class -= of_class.mean(axis=0)
            lengths = np.sqrt(np.mean(of_class**2, axis=0))
            of_class /= np.where(lengths > 0, lengths, 1)
        codes = np.where(of_class >= 0, 1, -1).astype(dtype)[classes]
        values = self.regression.fit(codes)
        sketches, images = (
            HashedSamples(of, codes[rows], values[rows], self.weights[rows])
            for of, rows in zip(self.classes, self._rows(), strict=True)
        )
        self.objective = HashObjective(
            sketches,
            images,
            n_classes,
            self.unlike,
            self.label_weight,
            self.function_weight,
        )
        self.objective.penalty = self.regression.penalty
        self.objective.step_class_map()
        self.pacing = SelfPacing(
            sizes=[len(of) for of in self.classes],
            options=self.pacing_options,
            curricula=self.curricula,
            right_share=self.right_share,
        )
        if self.odds is not None:
            self.disagreement = odds_as_losses(
                self.odds, self._losses(), self.pacing_options.regularizer
            )

    def value(self) -> float:
        """Full objective at the current state, with that of pacing."""
        total = self.objective.value()
        if self.paced:
            total += self.pacing.penalty()
        if self.disagreement is not None:
            total += float(self.pacing.v**2 @ self.disagreement)
        return total

    def step_pacing(self) -> None:
        """Update the pacing variables, and the weights of the samples with them."""
        losses = self._losses()
        v = self.pacing.step(losses if self.disagreement is None else losses + self.disagreement)
        self.weights = v * v
        for samples, rows in zip(self.sides, self._rows(), strict=True):
            samples.weights = self.weights[rows]
        self.regression.weigh(self.weights)

    def step_functions(self) -> None:
        """Fit the hash functions to the codes."""
        values = self.regression.fit(np.concatenate([samples.codes for samples in self.sides]))
        for samples, rows in zip(self.sides, self._rows(), strict=True):
            samples.values = values[rows]
        self.objective.penalty = self.regression.penalty

    def run(self, n_rounds: int) -> None:
        """Take steps until nothing changes, or every sample was selected for a while."""
        for _ in range(n_rounds):
            if self.paced:
                self.step_pacing()
            self.objective.step_class_map()
            n_changed = sum(self.objective.step_codes(samples) for samples in self.sides[::-1])
            self.step_functions()
            self._record(n_changed)
            finished = self.pacing.advance()
            if finished and self.pacing_options.stop_when_selected:
                break
            if not self.paced and not n_changed:
                break

    def columns(self) -> dict[str, NDArray[np.float64]]:
        """One value a round of what was recorded, by name."""
        return {name: np.array(values) for name, values in self.history.items()}

    def _losses(self) -> Array:
        return np.concatenate([self.objective.losses(samples) for samples in self.sides])

    def _rows(self) -> tuple[slice, slice]:
        n_sketches = len(self.classes[0])
        return slice(0, n_sketches), slice(n_sketches, None)

    def _record(self, n_changed: int) -> None:
        n_codes = sum(map(len, self.classes))
        entry: dict[str, Any] = {
            "objective": self.value(),
            "changed_bits": n_changed / (n_codes * self.n_bits),
        }
        if self.paced:
            entry |= {"gamma": self.pacing.gamma, "pacing_kkt": self.pacing.result.kkt}
            self.pacing_rounds.append(self.pacing.v.astype(np.float32))
            for modality, rows in zip(MODALITIES, self._rows(), strict=True):
                v = self.pacing.v[rows]
                entry[f"{modality}_mean_v"] = float(v.mean())
                entry[f"{modality}_selected"] = float((v > 0.5).mean())
                entry[f"{modality}_sd_v"] = float(v.std())
        for name, value in entry.items():
            self.history.setdefault(name, []).append(float(value))
