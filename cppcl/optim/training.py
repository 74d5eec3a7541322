"""The alternation of pacing, code and dictionary steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.curriculum.base import Curriculum
from cppcl.graph import Laplacian
from cppcl.optim.code_problem import (
    CodeBlock,
    CodeProblem,
    L1Weight,
    l1_weights,
    reconstruction_losses,
)
from cppcl.optim.codes import update_codes
from cppcl.optim.dictionary import (
    DictionarySolver,
    replace_unused_atoms,
    unused_atoms,
    update_dictionary,
)
from cppcl.optim.dictionary_dual import update_dictionary_dual
from cppcl.optim.pacing import (
    Coupling,
    CurriculumTerm,
    GraphCoupling,
    PacingProblem,
    PacingSolver,
    PrintedCoupling,
    Regularizer,
    Selection,
    update_pacing,
)

SIDES = ("sketch", "image")
SELECTED = {"B": 0.9, "A": 0.999}
"""Every sample counts as selected when the least pacing variable exceeds this."""
FINAL_ROUNDS = 5
"""Rounds at constant gamma once every sample is selected."""
NO_REPLACEMENT = 10
"""Last rounds, in which unused atoms are left alone."""


@dataclass(frozen=True)
class TrainingOptions:
    """Weights and schedule of the objective; see `cppcl.model.CPRL`."""

    alpha: float
    beta: float
    regularizer: Regularizer
    gamma0: float | None
    eta: float
    n_rounds: int
    mu: float
    l1_weight: L1Weight
    coupling: Coupling = "trace"
    selection: Selection = "relaxed"
    qp_solver: PacingSolver = "fista"
    dictionary_solver: DictionarySolver = "gradient"


@dataclass
class Training:
    """State of the learner: features, dictionaries, codes and pacing variables.

    Parameters
    ----------
    features : pair of (n_k, m_k) arrays
        Prepared features, sketches first.
    dictionaries : list of two (N, m_k) arrays
        Current atoms; replaced as training goes.
    laplacian : Laplacian
        The graph between the modalities.
    group_scale : (n,) array
        E of regulariser A.
    curricula : pair of Curriculum or None
        Ordered pairs of either modality.
    options : TrainingOptions
        Weights and schedule.
    """

    features: tuple[NDArray[Any], NDArray[Any]]
    dictionaries: list[NDArray[Any]]
    laplacian: Laplacian
    group_scale: NDArray[Any]
    curricula: tuple[Curriculum | None, Curriculum | None]
    options: TrainingOptions
    codes: NDArray[Any] = field(init=False)
    v: NDArray[Any] = field(init=False)
    gamma: float = field(init=False, default=1.0)

    def __post_init__(self) -> None:
        dtype = self.features[0].dtype
        n_sketches, n_images = map(len, self.features)
        self.rows = (slice(0, n_sketches), slice(n_sketches, n_sketches + n_images))
        self.v = np.ones(n_sketches + n_images, dtype=dtype)
        self.codes = np.zeros((len(self.v), len(self.dictionaries[0])), dtype=dtype)

    def losses(self) -> NDArray[Any]:
        """Reconstruction error of each sample, (n,)."""
        return np.concatenate(
            [
                reconstruction_losses(F, self.codes[rows], D)
                for F, D, rows in zip(self.features, self.dictionaries, self.rows, strict=True)
            ]
        )

    def pacing_losses(self) -> NDArray[Any]:
        """Loss that the pacing step sees: with the L1 term where that is weighted by v^2."""
        losses = self.losses()
        if self.options.l1_weight == "v2":
            losses += self.options.alpha * np.abs(self.codes).sum(axis=1)
        return losses

    def _curriculum_terms(self) -> list[CurriculumTerm]:
        """Hinge weights in units of gamma and of pairs a sample, so that they stay comparable."""
        terms = []
        for rows, curriculum in zip(self.rows, self.curricula, strict=True):
            n_pairs = 0.0 if curriculum is None else float(curriculum.degree().sum()) / 2
            if curriculum is not None and n_pairs and self.options.mu:
                mu = self.options.mu * self.gamma * (rows.stop - rows.start) / n_pairs
                terms.append(CurriculumTerm(rows, curriculum, mu))
        return terms

    def pacing_problem(self) -> PacingProblem:
        """Objective as a function of the pacing variables."""
        form = PrintedCoupling if self.options.coupling == "printed" else GraphCoupling
        coupled = self.options.coupling != "none" and self.options.beta > 0
        return PacingProblem(
            losses=self.pacing_losses(),
            regularizer=self.options.regularizer,
            gamma=self.gamma,
            group_scale=self.group_scale,
            coupling=form(self.laplacian, self.codes) if coupled else None,
            beta=self.options.beta,
            curricula=self._curriculum_terms(),
        )

    def code_problem(self, *, graph: bool = True) -> CodeProblem:
        """Objective as a function of the codes."""
        blocks = [
            CodeBlock(rows, F, D)
            for rows, F, D in zip(self.rows, self.features, self.dictionaries, strict=True)
        ]
        return CodeProblem(
            blocks,
            self.v,
            self.options.alpha,
            self.options.beta if graph else 0.0,
            self.laplacian,
            self.options.l1_weight,
        )

    def objective(self) -> float:
        """Evaluate the full objective at the current state."""
        v, options = self.v, self.options
        l1 = l1_weights(v, options.l1_weight) @ np.abs(self.codes).sum(axis=1)
        total = float((v * v) @ self.losses()) + options.alpha * float(l1)
        total += options.beta * self.laplacian.quadratic_form(v[:, None] * self.codes)
        if options.regularizer == "B":
            total += self.gamma * float((v * v / 2 - v).sum())
        elif options.regularizer == "A":
            total -= self.gamma * float((v / self.group_scale).sum())
        if options.regularizer != "none":
            for rows, curriculum, mu in self._curriculum_terms():
                total += mu * curriculum.value(v[rows])
        return total

    def reconstruction_objective(self) -> float:
        """Objective with every sample counting fully, comparable across regularisers."""
        total = float(self.losses().sum()) + self.options.alpha * float(np.abs(self.codes).sum())
        return total + self.options.beta * self.laplacian.quadratic_form(self.codes)

    def step_pacing(self) -> None:
        """Update the pacing variables."""
        self.v = update_pacing(
            self.pacing_problem(),
            start=self.v,
            solver=self.options.qp_solver,
            selection=self.options.selection,
        ).v

    def step_codes(self) -> None:
        """Update the codes."""
        self.codes = update_codes(self.code_problem(), start=self.codes).codes

    def step_dictionaries(self) -> None:
        """Update both dictionaries."""
        updated = []
        for side, F, D, rows in zip(
            SIDES, self.features, self.dictionaries, self.rows, strict=True
        ):
            C, v = self.codes[rows], self.v[rows]
            if self.options.dictionary_solver == "dual":
                result = update_dictionary_dual(F, C, v, start=D, name=f"{side}_features")
            else:
                result = update_dictionary(F, C, v, start=D)
            updated.append(result.dictionary)
        self.dictionaries = updated

    def replace_unused(self, rng: np.random.Generator) -> None:
        """Give unused atoms the worst represented samples."""
        weighted = self.v * self.losses()
        self.dictionaries = [
            replace_unused_atoms(D, self.codes[rows], F, weighted[rows], rng=rng)
            for F, D, rows in zip(self.features, self.dictionaries, self.rows, strict=True)
        ]

    def _record(self) -> dict[str, float]:
        entry = {
            "objective": self.objective(),
            "reconstruction_objective": self.reconstruction_objective(),
            "gamma": self.gamma if self.options.regularizer != "none" else float("nan"),
        }
        for name, rows in zip(SIDES, self.rows, strict=True):
            v = self.v[rows]
            entry[f"{name}_mean_v"] = float(v.mean())
            entry[f"{name}_selected"] = float((v > 0.5).mean())
            entry[f"{name}_sd_v"] = float(v.std())
            entry[f"{name}_unused_atoms"] = float(len(unused_atoms(self.codes[rows])))
        return entry

    def run(self, rng: np.random.Generator) -> dict[str, NDArray[np.float64]]:
        """Train; returns the history, one entry a round in each array.

        Codes start uncoupled, every sample counting fully; gamma starts at half the median
        loss and grows by ``eta`` a round until every sample is selected, then stays for a few
        rounds more.
        """
        self.codes = update_codes(self.code_problem(graph=False), start=self.codes).codes
        if self.options.gamma0 is not None:
            self.gamma = self.options.gamma0
        else:
            self.gamma = max(0.5 * float(np.median(self.pacing_losses())), 1e-12)
        history: list[dict[str, float]] = []
        final_rounds = 0
        for round_number in range(1, self.options.n_rounds + 1):
            self.step_pacing()
            self.step_codes()
            if float(self.v.mean()) > 0.5 and round_number <= (
                self.options.n_rounds - NO_REPLACEMENT
            ):
                self.replace_unused(rng)
            self.step_dictionaries()
            history.append(self._record())
            if self.options.regularizer != "none":
                if float(self.v.min()) > SELECTED[self.options.regularizer]:
                    final_rounds += 1
                    if final_rounds > FINAL_ROUNDS:
                        break
                elif not final_rounds:
                    self.gamma *= self.options.eta
        return _columns(history)


def _columns(history: Sequence[dict[str, float]]) -> dict[str, NDArray[np.float64]]:
    return {name: np.array([entry[name] for entry in history]) for name in history[0]}
