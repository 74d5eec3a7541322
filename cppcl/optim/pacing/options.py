"""Options of self-paced learning."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from cppcl.errors import InputError
from cppcl.learning.estimator import Estimator
from cppcl.optim.printed import Printed
from cppcl.validation import check_choice, check_flag, check_number

Regularizer = Literal["B", "A", "none"]
"""Self-paced regulariser of the paper, or none (every sample counts fully)."""
Loss = Literal["reconstruction", "agreement"]
"""What makes a sample hard: its reconstruction, or also that it seems to be tied wrongly."""
Coupling = Literal["trace", "none"]
"""How the graph acts on the pacing variables: by its trace term, or not at all."""
Selection = Literal["relaxed", "binary"]
"""Range of the pacing variables: from 0 to 1, or 0 and 1 only."""
PacingSolver = Literal["fista", "osqp", "cvxpy"]
"""Name of a solver of the pacing step."""
Curricula = Literal["both", "sketch", "image"]
"""Which modalities' curricula take part."""


@dataclass(kw_only=True, repr=False)
class Pacing(Estimator):
    """How samples are taken up, easy ones first.

    Parameters
    ----------
    regularizer : {'B', 'A', 'none'}, default 'B'
        Self-paced regulariser; 'none' lets every sample count fully (V = I).
    loss : {'reconstruction', 'agreement'}, default 'reconstruction'
        Loss by which samples are easy or hard. 'agreement' adds the odds that a sample is wrong,
        as models that have not seen it judge its partner or its label
        (`cppcl.learning.agreement`); gamma then ends at the share of samples that are right.
    gamma0 : float, optional
        First gamma, the age of the learner; half the median loss where None.
    eta : float, default 1.3
        Growth of gamma a round, above 1.
    stop_when_selected : bool, default True
        End training a few rounds after every sample is selected.
    mu : float, default 0.5
        Weight of the curricula, in units of gamma and of pairs a sample; 0 ignores them.
    curricula : {'both', 'sketch', 'image'}, default 'both'
        Which of the curricula that are given take part.
    coupling : {'trace', 'none'}, default 'trace'
        With 'trace' the graph acts on the pacing variables too.
    selection : {'relaxed', 'binary'}, default 'relaxed'
        Pacing variables lie between 0 and 1, or are 0 or 1 ('binary'), the mixed-integer form
        of regulariser A.
    qp_solver : {'fista', 'osqp', 'cvxpy'}, default 'fista'
        Solver of the pacing step; the others take moderate numbers of samples only.

    Raises
    ------
    InputError
        For an option out of range, or options that contradict each other.
    """

    regularizer: Regularizer = "B"
    loss: Loss = "reconstruction"
    gamma0: float | None = None
    eta: float = 1.3
    stop_when_selected: bool = True
    mu: float = 0.5
    curricula: Curricula = "both"
    coupling: Coupling = "trace"
    selection: Selection = "relaxed"
    qp_solver: PacingSolver = "fista"

    def __post_init__(self) -> None:
        check_choice("regularizer", self.regularizer, Regularizer)
        check_choice("loss", self.loss, Loss)
        if self.gamma0 is not None:
            hint = ", or None for half the median loss; regularizer='none' switches pacing off"
            check_number("gamma0", self.gamma0, above=0, why=hint)
        check_number("eta", self.eta, above=1, why=", so that gamma grows")
        check_flag("stop_when_selected", self.stop_when_selected)
        check_number("mu", self.mu, least=0)
        check_choice("curricula", self.curricula, Curricula)
        check_choice("coupling", self.coupling, Coupling)
        check_choice("selection", self.selection, Selection)
        check_choice("qp_solver", self.qp_solver, PacingSolver)
        check_selection(self.selection, self.regularizer)
        if self.loss == "agreement" and self.regularizer == "none":
            raise InputError(
                "loss='agreement' is of pacing, which regularizer='none' switches off; use 'B'"
            )

    def check_printed(self, printed: Collection[Printed]) -> None:
        """Refuse printed forms that have no meaning with these options."""
        if "sign" in printed and self.regularizer != "B":
            raise InputError(
                f"printed 'sign' concerns regulariser B, not {self.regularizer!r}; use "
                "regularizer='B', or leave 'sign' out"
            )
        if "coupling" in printed and self.coupling == "none":
            raise InputError("printed 'coupling' needs coupling='trace', not 'none'")
        check_convex(self.qp_solver, "coupling" not in printed)


def check_selection(selection: Selection, regularizer: Regularizer) -> None:
    """Refuse a binary selection by another regulariser than A."""
    if selection == "binary" and regularizer != "A":
        raise InputError(
            f"selection='binary' is a form of regulariser A, not of {regularizer!r}; use "
            "regularizer='A', or selection='relaxed'"
        )


def check_convex(qp_solver: str, convex: bool) -> None:
    """Refuse a solver of convex programs for a problem that is not convex."""
    if not convex and qp_solver != "fista":
        raise InputError(
            f"qp_solver={qp_solver!r} solves convex programs only, and the printed coupling is "
            "not convex; use qp_solver='fista', or leave 'coupling' out of printed"
        )
