"""Weights, schedule and solvers of training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cppcl.optim.codes import CodeSolver, L1Weight, check_solver
from cppcl.optim.dictionary import DictionarySolver
from cppcl.optim.pacing.schedule import MuScale
from cppcl.optim.pacing.step import (
    Coupling,
    PacingSolver,
    Regularizer,
    RegularizerSign,
    Selection,
    check_options,
)
from cppcl.validation import check_choice, check_flag, check_number

PacingLoss = Literal["codes", "shadow"]
"""Whether pacing sees the loss of a sample's code, or of the code that it would have alone."""


@dataclass(frozen=True)
class TrainingOptions:
    """Weights and schedule of the objective, checked; see `cppcl.learning.cprl.CPRL`.

    Raises
    ------
    InputError
        For an option out of range, or options that contradict each other.
    """

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
    code_solver: CodeSolver = "coordinate"
    device: str = "cpu"
    pacing_loss: PacingLoss = "codes"
    stop_when_selected: bool = True
    regularizer_sign: RegularizerSign = "corrected"
    mu_scale: MuScale = "gamma"

    def __post_init__(self) -> None:
        check_number("alpha", self.alpha, least=0)
        check_number("beta", self.beta, least=0)
        if self.gamma0 is not None:
            hint = ", or None for half the median loss; regularizer='none' switches pacing off"
            check_number("gamma0", self.gamma0, above=0, why=hint)
        check_number("eta", self.eta, above=1, why=", so that gamma grows")
        check_number("n_rounds", self.n_rounds, least=1, whole=True)
        check_number("mu", self.mu, least=0)
        check_flag("stop_when_selected", self.stop_when_selected)
        for name, options in {
            "regularizer": Regularizer,
            "l1_weight": L1Weight,
            "coupling": Coupling,
            "selection": Selection,
            "qp_solver": PacingSolver,
            "dictionary_solver": DictionarySolver,
            "pacing_loss": PacingLoss,
            "regularizer_sign": RegularizerSign,
            "mu_scale": MuScale,
        }.items():
            check_choice(name, getattr(self, name), options)
        check_options(
            self.regularizer,
            self.coupling,
            self.selection,
            self.qp_solver,
            self.regularizer_sign,
        )
        check_solver(self.code_solver, self.device)
