"""Self-paced learning as an object of its own, for any learner that has a loss a sample."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.curriculum.base import Curriculum
from cppcl.errors import InputError
from cppcl.learning.graph import Laplacian
from cppcl.optim.pacing.coupling import GraphCoupling, PrintedCoupling
from cppcl.optim.pacing.options import Pacing, Regularizer
from cppcl.optim.pacing.problem import CurriculumTerm, PacingProblem
from cppcl.optim.pacing.step import PacingResult, update_pacing
from cppcl.optim.printed import Printed

SELECTED = {"B": 0.9, "A": 0.999, "none": 0.0}
"""Every sample counts as selected when the least pacing variable exceeds this."""
ODDS_WEIGHT = 3.0
"""Weight of the odds that a sample is wrong, against its own loss."""


def odds_as_losses(
    odds: NDArray[Any], losses: NDArray[Any], regularizer: Regularizer
) -> NDArray[Any]:
    """Odds that samples are wrong (n,), brought to the scale of their losses (n,).

    Were they not weighed by `ODDS_WEIGHT`, ``v_p`` would be the probability that sample p is
    right, where its own loss is 0, at the gamma that selects a sample of median loss.
    """
    selected = SELECTED[regularizer]
    # v = gamma / (gamma + 2 l) of B, and gamma / 2 l of A, is `selected` at twice this.
    half = float(np.median(losses)) * (selected / (1 - selected) if regularizer == "B" else 1)
    scaled: NDArray[Any] = ODDS_WEIGHT * half * odds
    return scaled


@dataclass(kw_only=True)
class SelfPacing:
    r"""Pacing variables v in [0, 1] of n samples, and the schedule of gamma.

    A learner with a loss l_p for each sample, that can weigh samples by ``v_p^2``, is paced by
    alternation::

        pacing = SelfPacing(sizes=[n])
        for _ in range(n_rounds):
            v = pacing.step(losses)        # lowers the joint objective over v
            ...                            # fit with weights v * v, and update the losses
            if pacing.advance():           # raises gamma; true when there is no more to do
                break

    The joint objective is ``sum_p v_p^2 l_p + beta Tr((VC)^T L (VC)) + penalty()`` with the
    self-paced regulariser and the curricula in `penalty`; see
    `cppcl.optim.pacing.problem.PacingProblem`.

    Parameters
    ----------
    sizes : sequence of int
        Numbers of samples of the modalities, which are stacked in this order.
    options : Pacing, optional
        What `cppcl.optim.pacing.options.Pacing` describes; its `curricula` count where there are
        two modalities, sketches first.
    printed : collection of str, optional
        Forms that the paper prints, of those that concern pacing: the sign of regulariser B, the
        coupling, and the weight of a pair, which is `mu` at every gamma there. Ours is
        ``mu gamma`` times the modality's samples over its pairs, so that curricula keep their
        influence as gamma grows and whatever the number of pairs.
    group_scale : (n,) array, optional
        E of regulariser A, see `cppcl.optim.pacing.problem.group_sizes`; ones where None.
    curricula : sequence of Curriculum or None, optional
        Ordered pairs of each modality.
    laplacian : Laplacian, optional
        Graph over the samples; `step` then takes the codes that it compares.
    beta : float, default 1
        Weight of the graph.
    right_share : float, default 1
        Share of the samples that are to be selected in the end. Below 1, gamma grows until the
        mean pacing variable has come as near to it as it must come to 1 for every sample.
    final_rounds : int, default 5
        Rounds at constant gamma once every sample, or this share, is selected.

    Attributes
    ----------
    v : (n,) array
        Pacing variables; ones before the first step.
    gamma : float or None
        Age of the learner; None before the first step.
    rounds_selected : int
        Rounds in which every sample was selected. This, `v` and `gamma` are the whole state.

    Raises
    ------
    InputError
        For options that are out of range or contradict each other.
    """

    sizes: Sequence[int]
    options: Pacing = field(default_factory=Pacing)
    printed: Collection[Printed] = ()
    group_scale: NDArray[Any] | None = None
    curricula: Sequence[Curriculum | None] = ()
    laplacian: Laplacian | None = None
    beta: float = 1.0
    right_share: float = 1.0
    final_rounds: int = 5
    v: NDArray[Any] = field(init=False)
    gamma: float | None = field(init=False, default=None)
    rounds_selected: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.options.check_printed(self.printed)
        if self.curricula and len(self.curricula) != len(self.sizes):
            raise InputError(
                f"curricula has {len(self.curricula)} entries for {len(self.sizes)} modalities; "
                "give one a modality, None where it has none"
            )
        ends = np.cumsum([0, *self.sizes]).tolist()
        self.rows: tuple[slice, ...] = tuple(map(slice, ends[:-1], ends[1:]))
        self.v = np.ones(ends[-1])

    def step(self, losses: NDArray[Any], codes: NDArray[Any] | None = None) -> NDArray[Any]:
        """Update the pacing variables and return them.

        Parameters
        ----------
        losses : (n,) array
            Loss of each sample at ``v_p = 1``, not negative; gives the dtype.
        codes : (n, N) array, optional
            What the graph compares; needed where there is one.
        """
        if self.gamma is None:
            first = self.options.gamma0
            self.gamma = max(0.5 * float(np.median(losses)) if first is None else first, 1e-12)
        start = self.v.astype(losses.dtype, copy=False)
        self.result: PacingResult = update_pacing(
            self.problem(losses, codes),
            start=start,
            solver=self.options.qp_solver,
            selection=self.options.selection,
        )
        self.v = self.result.v
        return self.v

    def advance(self) -> bool:
        """Raise gamma, or count a final round; return True after the last final round."""
        regularizer = self.options.regularizer
        if regularizer == "none" or self.gamma is None:
            return False
        share = max(self.right_share, 1e-12)
        selected = self.v.min() if share == 1 else self.v.mean() / share
        if float(selected) > SELECTED[regularizer]:
            self.rounds_selected += 1
        elif not self.rounds_selected:
            self.gamma *= self.options.eta
        return self.rounds_selected > self.final_rounds

    def problem(self, losses: NDArray[Any], codes: NDArray[Any] | None = None) -> PacingProblem:
        """Joint objective as a function of the pacing variables, at the current gamma."""
        if self.laplacian is None or self.options.coupling == "none" or not self.beta:
            return self._problem(losses, None)
        if codes is None:
            raise InputError("codes is None, but the laplacian compares codes; give them")
        form = PrintedCoupling if "coupling" in self.printed else GraphCoupling
        return self._problem(losses, form(self.laplacian, codes))

    def penalty(self) -> float:
        """Self-paced regulariser and curricula at the current v and gamma."""
        return self._problem(np.zeros_like(self.v), None).value(self.v)

    def _problem(self, losses: NDArray[Any], coupling: GraphCoupling | None) -> PacingProblem:
        gamma = 1.0 if self.gamma is None else self.gamma
        terms = []
        curricula = self.curricula or [None] * len(self.rows)
        for rows, curriculum in zip(self.rows, curricula, strict=True):
            n_pairs = 0 if curriculum is None else curriculum.n_pairs
            if curriculum is not None and n_pairs and self.options.mu:
                scale = gamma * (rows.stop - rows.start) / n_pairs
                mu = self.options.mu * (1.0 if "pair_weight" in self.printed else scale)
                terms.append(CurriculumTerm(rows, curriculum, mu))
        return PacingProblem(
            losses=losses,
            regularizer=self.options.regularizer,
            gamma=gamma,
            group_scale=self.group_scale,
            coupling=coupling,
            beta=self.beta,
            curricula=terms,
            printed_sign="sign" in self.printed,
        )
