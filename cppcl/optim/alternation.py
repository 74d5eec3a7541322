"""The alternation of pacing, code and dictionary steps."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.curriculum.base import Curriculum
from cppcl.errors import InputError
from cppcl.learning.graph import Laplacian
from cppcl.modality import MODALITIES
from cppcl.optim.code_problem import CodeProblem
from cppcl.optim.codes import CODE_TOLERANCE, CodeSolver, encode, update_codes
from cppcl.optim.dictionary import (
    replace_unused_atoms,
    unused_atoms,
    update_dictionary,
)
from cppcl.optim.dictionary_dual import update_dictionary_dual
from cppcl.optim.pacing.options import Pacing
from cppcl.optim.pacing.problem import PacingProblem
from cppcl.optim.pacing.schedule import SelfPacing, odds_as_losses
from cppcl.optim.printed import Printed
from cppcl.optim.terms import CodeBlock, GraphTerm, L1Weight, Reconstruction, Sparsity, Term

NO_REPLACEMENT = 10
"""Last rounds, in which unused atoms are left alone."""


@dataclass
class Alternation:
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
    alpha, beta : float
        Weights of sparsity and of the graph.
    n_rounds : int
        Most rounds.
    pacing_options : Pacing
        How samples are taken up.
    printed : collection of str
        Forms that the paper prints, which take the place of ours.
    code_solver, device
        As in `cppcl.optim.codes.update_codes`.
    odds : (n,) array, optional
        Odds that each sample is wrong, which become a part of its loss.
    right_share : float, default 1
        Share of the samples that are right.
    """

    features: tuple[NDArray[Any], NDArray[Any]]
    dictionaries: list[NDArray[Any]]
    laplacian: Laplacian
    group_scale: NDArray[Any]
    curricula: tuple[Curriculum | None, Curriculum | None]
    alpha: float
    beta: float
    n_rounds: int
    pacing_options: Pacing = field(default_factory=Pacing)
    printed: Collection[Printed] = ()
    code_solver: CodeSolver = "coordinate"
    device: str = "cpu"
    odds: NDArray[Any] | None = None
    right_share: float = 1.0
    codes: NDArray[Any] = field(init=False)
    disagreement: NDArray[Any] | None = field(init=False, default=None)
    pacing: SelfPacing = field(init=False)
    history: list[dict[str, float]] = field(init=False, default_factory=list)
    pacing_rounds: list[NDArray[np.float32]] = field(init=False, default_factory=list)
    _finished: bool = field(init=False, default=False)
    _rng_state: Any = field(init=False, default=None)
    _reconstruction: Reconstruction | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        dtype = self.features[0].dtype
        n_sketches, n_images = map(len, self.features)
        self.rows = (slice(0, n_sketches), slice(n_sketches, n_sketches + n_images))
        shape = (n_sketches + n_images, len(self.dictionaries[0]))
        self.codes = np.zeros(shape, dtype=dtype)
        self.l1_weight: L1Weight = "none" if "l1" in self.printed else "v2"
        self.pacing = SelfPacing(
            sizes=(n_sketches, n_images),
            options=self.pacing_options,
            printed=self.printed,
            group_scale=self.group_scale,
            curricula=self.curricula,
            laplacian=self.laplacian,
            beta=self.beta,
            right_share=self.right_share,
        )
        self.pacing.v = np.ones(shape[0], dtype=dtype)

    @property
    def v(self) -> NDArray[Any]:
        """Pacing variables, (n,)."""
        return self.pacing.v

    @property
    def gamma(self) -> float:
        """Age of the learner; NaN without pacing."""
        known = self.pacing_options.regularizer != "none" and self.pacing.gamma is not None
        return float(self.pacing.gamma) if known else float("nan")  # type: ignore[arg-type]

    @property
    def round_number(self) -> int:
        """Rounds done."""
        return len(self.history)

    def blocks(self) -> list[CodeBlock]:
        """Samples and atoms of the modalities."""
        parts = zip(self.rows, self.features, self.dictionaries, strict=True)
        return [CodeBlock(rows, F, D) for rows, F, D in parts]

    def reconstruction(self) -> Reconstruction:
        """Coupled reconstruction by the current dictionaries."""
        known = self._reconstruction
        if known is None or any(
            block.dictionary is not D
            for block, D in zip(known.blocks, self.dictionaries, strict=True)
        ):
            self._reconstruction = known = Reconstruction(self.blocks(), self.device)
        return known

    def terms(self) -> list[Term]:
        """Terms of the objective that codes take part in."""
        return [
            self.reconstruction(),
            GraphTerm(self.laplacian, self.beta),
            Sparsity(self.alpha, self.l1_weight),
        ]

    def losses(self) -> NDArray[Any]:
        """Reconstruction error of each sample, (n,)."""
        return self.reconstruction().losses(self.codes)

    def pacing_losses(self) -> NDArray[Any]:
        """Loss that the pacing step sees: with the L1 term where that is weighted by v^2."""
        codes = self.codes
        if "shadow_loss" in self.printed:
            parts = zip(self.features, self.dictionaries, strict=True)
            codes = np.concatenate([encode(F, D, self.alpha).codes for F, D in parts])
        losses = self.reconstruction().losses(codes)
        if self.l1_weight == "v2":
            losses += self.alpha * np.abs(codes).sum(axis=1)
        if self.disagreement is not None:
            losses += self.disagreement
        return losses

    def scale_disagreement(self) -> None:
        """Bring the odds that samples are wrong to the scale of their reconstruction."""
        if self.odds is None:
            return
        regularizer = self.pacing_options.regularizer
        scaled = odds_as_losses(self.odds, self.pacing_losses(), regularizer)
        self.disagreement = scaled.astype(self.codes.dtype)

    def pacing_problem(self) -> PacingProblem:
        """Objective as a function of the pacing variables."""
        return self.pacing.problem(self.pacing_losses(), self.codes)

    def code_problem(self, *, graph: bool = True) -> CodeProblem:
        """Objective as a function of the codes."""
        return CodeProblem(
            self.blocks(),
            self.v,
            self.alpha,
            self.beta if graph else 0.0,
            self.laplacian,
            self.l1_weight,
        )

    def objective(self) -> float:
        """Evaluate the full objective at the current state."""
        total = sum(term.value(self.codes, self.v) for term in self.terms())
        if self.pacing_options.regularizer != "none":
            total += self.pacing.penalty()
        if self.disagreement is not None:
            total += float(self.v.astype(np.float64) ** 2 @ self.disagreement)
        return total

    def reconstruction_objective(self) -> float:
        """Objective with every sample counting fully, comparable across regularisers."""
        ones = np.ones_like(self.v)
        return sum(term.value(self.codes, ones) for term in self.terms())

    def step_pacing(self) -> None:
        """Update the pacing variables."""
        self.pacing.step(self.pacing_losses(), self.codes)

    def step_codes(self) -> None:
        """Update the codes."""
        self.codes = self._updated_codes(self.code_problem())

    def _updated_codes(self, problem: CodeProblem) -> NDArray[Any]:
        return update_codes(
            problem,
            start=self.codes,
            solver=self.code_solver,
            device=self.device,
            tol=CODE_TOLERANCE,
        ).codes

    def step_dictionaries(self) -> None:
        """Update both dictionaries."""
        updated = []
        for modality, F, D, rows in zip(
            MODALITIES, self.features, self.dictionaries, self.rows, strict=True
        ):
            C, v = self.codes[rows], self.v[rows]
            if "dual" in self.printed:
                result = update_dictionary_dual(F, C, v, start=D, name=f"{modality}_features")
            else:
                result = update_dictionary(F, C, v, start=D, device=self.device)
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
            "gamma": self.gamma,
            "pacing_kkt": self.pacing.result.kkt,
        }
        for modality, rows in zip(MODALITIES, self.rows, strict=True):
            v = self.v[rows]
            entry[f"{modality}_mean_v"] = float(v.mean())
            entry[f"{modality}_selected"] = float((v > 0.5).mean())
            entry[f"{modality}_sd_v"] = float(v.std())
            entry[f"{modality}_unused_atoms"] = float(len(unused_atoms(self.codes[rows])))
        return entry

    def run(
        self, rng: np.random.Generator, callback: Callable[[Alternation], object] | None = None
    ) -> dict[str, NDArray[np.float64]]:
        """Train; returns the history, one entry a round in each array.

        Codes start uncoupled, every sample counting fully; gamma starts at half the median
        loss and grows by ``eta`` a round until every sample is selected, then stays for a few
        rounds more. A state restored by `from_arrays` goes on where it was.

        Parameters
        ----------
        rng : numpy Generator
            Source of the draws; set to the restored state's.
        callback : callable, optional
            Called with this object after each round.
        """
        if self._rng_state is not None:
            rng.bit_generator.state = self._rng_state
        if not self.history:
            self.codes = self._updated_codes(self.code_problem(graph=False))
            self.scale_disagreement()
        while self.round_number < self.n_rounds and not self._finished:
            self.step_pacing()
            self.step_codes()
            if float(self.v.mean()) > 0.5 and self.round_number < (self.n_rounds - NO_REPLACEMENT):
                self.replace_unused(rng)
            self.step_dictionaries()
            self.history.append(self._record())
            self.pacing_rounds.append(self.v.astype(np.float32))
            self._finished = self.pacing.advance() and self.pacing_options.stop_when_selected
            self._rng_state = rng.bit_generator.state
            if callback is not None:
                callback(self)
        return _columns(self.history)

    def v_of_rounds(self) -> NDArray[np.float32]:
        """Pacing variables after each round, (rounds, n)."""
        return np.array(self.pacing_rounds, np.float32).reshape(
            len(self.pacing_rounds), len(self.v)
        )

    def learned(self) -> dict[str, NDArray[Any]]:
        """Dictionaries and pacing variables of either modality, by name."""
        arrays: dict[str, NDArray[Any]] = {}
        rounds = self.v_of_rounds()
        for modality, D, rows in zip(MODALITIES, self.dictionaries, self.rows, strict=True):
            arrays[f"{modality}_dictionary"] = D
            arrays[f"{modality}_pacing"] = self.v[rows]
            arrays[f"{modality}_pacing_rounds"] = rounds[:, rows]
        return arrays

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the state after a round, by name: enough to go on as if never interrupted."""
        columns = _columns(self.history) if self.history else {}
        draws = json.dumps(self._rng_state).encode()
        return {
            "codes": self.codes,
            "v": self.v,
            "pacing_rounds": self.v_of_rounds(),
            **{
                f"{modality}_dictionary": D
                for modality, D in zip(MODALITIES, self.dictionaries, strict=True)
            },
            **({} if self.disagreement is None else {"disagreement": self.disagreement}),
            "gamma": np.array([self.pacing.gamma]),
            "rounds_selected": np.array([self.pacing.rounds_selected]),
            "finished": np.array([self._finished]),
            "rng": np.frombuffer(draws, dtype=np.uint8),
            **{f"history_{name}": column for name, column in columns.items()},
        }

    def from_arrays(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Restore what `to_arrays` returned, on an object made of the same data and options.

        Raises
        ------
        InputError
            For arrays of another shape than the data and options need, or missing ones.
        """
        wanted: dict[str, tuple[int, ...]] = {"codes": self.codes.shape, "v": self.v.shape}
        if self.odds is not None:
            wanted["disagreement"] = self.v.shape
        for modality, D in zip(MODALITIES, self.dictionaries, strict=True):
            wanted[f"{modality}_dictionary"] = D.shape
        for name, shape in wanted.items():
            found = arrays[name].shape if name in arrays else None
            if found != shape:
                raise InputError(
                    f"the training to resume has {name} of shape {found}, but these data and "
                    f"options need {shape}; resume with the same ones, or start anew"
                )
        self.codes, self.pacing.v = arrays["codes"], arrays["v"]
        self.disagreement = arrays.get("disagreement")
        self.dictionaries = [arrays[f"{modality}_dictionary"] for modality in MODALITIES]
        self.pacing.gamma = float(arrays["gamma"][0])
        self.pacing.rounds_selected = int(arrays["rounds_selected"][0])
        self._finished = bool(arrays["finished"][0])
        self._rng_state = json.loads(arrays["rng"].tobytes())
        names = [name for name in arrays if name.startswith("history_")]
        self.history = [
            {
                name.removeprefix("history_"): float(value)
                for name, value in zip(names, row, strict=True)
            }
            for row in zip(*(arrays[name] for name in names), strict=True)
        ]
        self.pacing_rounds = list(arrays["pacing_rounds"])


def _columns(history: Sequence[dict[str, float]]) -> dict[str, NDArray[np.float64]]:
    return {name: np.array([entry[name] for entry in history]) for name in history[0]}
