"""CPRL: cross-modal, self-paced, partially ordered learning of coupled dictionaries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cppcl.curriculum.base import Curriculum
from cppcl.errors import InputError
from cppcl.learning.affinity import Within
from cppcl.learning.estimator import Estimator, training_memory
from cppcl.learning.fitted import Learned
from cppcl.learning.fitting import Curricula, code_samples, learn
from cppcl.learning.graph import Normalize
from cppcl.learning.preparation import Preparation
from cppcl.learning.rounds import Round
from cppcl.learning.soft_links import LinkModel
from cppcl.learning.training_data import TrainingData
from cppcl.optim.codes import CodeSolver, L1Weight
from cppcl.optim.dictionary import DictionarySolver
from cppcl.optim.initialization import AtomStart, Initialization
from cppcl.optim.pacing.problem import GroupScale
from cppcl.optim.pacing.schedule import MuScale
from cppcl.optim.pacing.step import (
    Coupling,
    PacingSolver,
    Regularizer,
    RegularizerSign,
    Selection,
)
from cppcl.optim.training_options import PacingLoss, TrainingOptions
from cppcl.validation import Labels, check_choice, check_flag, check_number


class CPRL(Estimator):
    r"""Coupled dictionaries of sketches and images, learned from easy samples to hard ones.

    Minimises, over two dictionaries of N atoms in the unit ball, codes C and pacing variables
    ``0 <= v <= 1``,

    ``sum_p v_p^2 (|f_p - c_p D|^2 + alpha |c_p|_1) + beta Tr((VC)^T L (VC)) + R_gamma(v)
    + mu sum_(i,j) max(0, v_i - v_j)``,

    by alternation, gamma growing each round. L ties sketches to images of the same label. New
    samples are coded by their own modality's dictionary alone, and ranked by the cosine of
    their codes.

    Parameters
    ----------
    n_atoms : int, default 100
        Atoms N of either dictionary; may exceed the number of samples.
    alpha : float, default 0.05
        Weight of the L1 norm, for features of unit norm (all codes vanish from 2 on).
    beta : float, default 1.0
        Weight of the graph.
    regularizer : {'B', 'A', 'none'}, default 'B'
        Self-paced regulariser; 'none' lets every sample count fully (V = I).
    regularizer_sign : {'corrected', 'printed'}, default 'corrected'
        Sign of regulariser B; with the one printed in the paper no sample is ever selected.
    group_scale : {'relative', 'size'}, default 'relative'
        Sizes of groups in regulariser A: over their mean within the modality, or as printed.
    gamma0 : float, optional
        First gamma; half the median loss where None.
    eta : float, default 1.3
        Growth of gamma a round, above 1.
    n_rounds : int, default 40
        Most rounds; fewer are run once every sample has been selected for a while.
    stop_when_selected : bool, default True
        Whether training ends a few rounds after every sample is selected.
    mu : float, default 0.5
        Weight of the curricula; 0 ignores them.
    curricula : {'both', 'sketch', 'image'}, default 'both'
        Which of the curricula that are given take part.
    mu_scale : {'gamma', 'constant'}, default 'gamma'
        Whether `mu` is in units of gamma and of pairs a sample, or weighs each pair as printed in
        the paper, so that curricula fade as gamma grows.
    l1_weight : {'v2', 'none'}, default 'v2'
        Whether pacing weighs the L1 norm too; 'none', as printed in the paper, zeroes the codes
        of samples that are not yet selected.
    coupling : {'trace', 'none', 'printed'}, default 'trace'
        Whether the graph acts on the pacing variables too. 'printed' is the form printed in the
        paper, for comparison: not convex, and not the term that the codes minimise.
    pacing_loss : {'codes', 'shadow'}, default 'codes'
        Whether pacing sees the loss of a sample's code, or of the code that it would have alone
        and counting fully: with ``l1_weight='none'`` the former is largest for what is not yet
        selected. With 'shadow' the steps minimise different objectives.
    selection : {'relaxed', 'binary'}, default 'relaxed'
        Whether pacing variables lie between 0 and 1, or are either; the latter is the
        mixed-integer form of regulariser A.
    qp_solver : {'fista', 'osqp', 'cvxpy'}, default 'fista'
        Solver of the pacing step; the others take moderate numbers of samples only.
    dictionary_solver : {'gradient', 'dual'}, default 'gradient'
        Solver of the dictionary step; 'dual', the paper's, refuses fewer than 1.2 samples an atom.
    code_solver : {'coordinate', 'gradient'}, default 'coordinate'
        Solver of the code step: coordinate descent, or accelerated proximal gradient.
    device : str, default 'cpu'
        Where code and dictionary steps run, such as 'cuda', which needs
        ``code_solver='gradient'``.
    normalize : {'mean_degree', 'sym', 'none'}, default 'mean_degree'
        Scale of the graph's weights.
    within : {'none', 'knn', 'dense'}, default 'none'
        Gaussian weights within a modality: none, between neighbours of the same class, or, as
        printed in the paper, between all samples, which drowns the links between modalities.
    n_neighbors : int, default 10
        Neighbours of 'knn'.
    sigma : float, default 1
        Width of the Gaussian, for features of unit norm.
    initialization : {'joint', 'independent'}, default 'joint'
        Dictionaries from shared codes of linked pairs, or from each modality alone.
    atom_start : {'samples', 'principal', 'correlated'}, default 'samples'
        What initialisation starts from: random samples, principal directions of linked pairs,
        or the directions in which linked samples agree most, each as long as its relative
        strength (with whitening: the canonical directions and correlations).
    n_initial_rounds : int, default 10
        Alternations of the initialisation.
    center : bool, default True
        Subtract the training mean from either modality's features; this and the options down to
        `power` are those of `cppcl.learning.preparation.Preparation`.
    unit_norm : bool, default True
        Scale features to unit norm.
    n_components : int, optional
        Principal axes of the features that are kept; all where None.
    whiten : bool, default False
        Scale principal axes to unit variance.
    ridge : float, default 1e-3
        Regularises whitening, relative to the largest variance.
    power : float, default 1
        Power of the entries of the features, signs kept, before they are centred.
    code_ridge : float, default 0
        Weight of the squared norm of a new sample's code. It stands for the graph, whose term
        ``beta |c - partner's code|^2`` is ``beta |c|^2`` where the partner is unknown.
    soft_links : float, default 0
        Weight of the links of a new sample, which are not known: the graph's term, in expectation.
        Its code stays near the one that is expected of the samples that it would be linked to.
    link_model : {'groups', 'linear'}, default 'groups'
        What is expected of them. 'groups': the mean codes of the classes of training, each
        weighted by how much the code that the sample has alone resembles it; for classes seen in
        training. 'linear': a linear prediction from that code, learned from the linked samples of
        training (`cppcl.learning.soft_links.linear_prediction`); for new instances.
    link_temperature : float, default 0.1
        The smaller, the more the nearest class counts; in units of the cosine.
    center_codes : bool, default False
        Subtract the mean code of the modality's training samples from codes.
    seed : int, default 0
        Seed of every draw: the same seed gives the same bytes.

    Attributes
    ----------
    sketch_dictionary_, image_dictionary_ : (N, m_k) arrays
        Atoms as rows, in the space of the prepared features.
    sketch_pacing_, image_pacing_ : (n_k,) arrays
        Pacing variables after training.
    sketch_pacing_rounds_, image_pacing_rounds_ : (rounds, n_k) float32 arrays
        Pacing variables after each round.
    history_ : dict of (rounds,) arrays
        For each round: `objective` (its own, at its gamma), `reconstruction_objective` (every
        sample counting fully: comparable between settings), `gamma`, and for each modality
        `*_mean_v`, `*_selected` (share above 0.5), `*_sd_v` and `*_unused_atoms`; `pacing_kkt`
        is the residual of the optimality conditions of the round's pacing step.

    Raises
    ------
    InputError
        For an option out of range.
    """

    version: ClassVar[int] = 2
    warm_start_option: ClassVar[str | None] = "alpha"
    zero_codes_hint: ClassVar[str] = "a smaller alpha leaves fewer"
    history_: dict[str, NDArray[np.float64]]

    def __init__(
        self,
        *,
        n_atoms: int = 100,
        alpha: float = 0.05,
        beta: float = 1.0,
        regularizer: Regularizer = "B",
        regularizer_sign: RegularizerSign = "corrected",
        group_scale: GroupScale = "relative",
        gamma0: float | None = None,
        eta: float = 1.3,
        n_rounds: int = 40,
        stop_when_selected: bool = True,
        mu: float = 0.5,
        curricula: Curricula = "both",
        mu_scale: MuScale = "gamma",
        l1_weight: L1Weight = "v2",
        coupling: Coupling = "trace",
        pacing_loss: PacingLoss = "codes",
        selection: Selection = "relaxed",
        qp_solver: PacingSolver = "fista",
        dictionary_solver: DictionarySolver = "gradient",
        code_solver: CodeSolver = "coordinate",
        device: str = "cpu",
        normalize: Normalize = "mean_degree",
        within: Within = "none",
        n_neighbors: int = 10,
        sigma: float = 1.0,
        initialization: Initialization = "joint",
        atom_start: AtomStart = "samples",
        n_initial_rounds: int = 10,
        center: bool = True,
        unit_norm: bool = True,
        n_components: int | None = None,
        whiten: bool = False,
        ridge: float = 1e-3,
        power: float = 1.0,
        code_ridge: float = 0.0,
        soft_links: float = 0.0,
        link_model: LinkModel = "groups",
        link_temperature: float = 0.1,
        center_codes: bool = False,
        seed: int = 0,
    ) -> None:
        self.n_atoms = check_number("n_atoms", n_atoms, least=1, whole=True)
        self.alpha = alpha
        self.beta = beta
        self.regularizer = regularizer
        self.regularizer_sign = regularizer_sign
        self.group_scale = check_choice("group_scale", group_scale, GroupScale)
        self.gamma0 = gamma0
        self.eta = eta
        self.n_rounds = n_rounds
        self.stop_when_selected = stop_when_selected
        self.mu = mu
        self.curricula = check_choice("curricula", curricula, Curricula)
        self.mu_scale = mu_scale
        self.l1_weight = l1_weight
        self.coupling = coupling
        self.pacing_loss = pacing_loss
        self.selection = selection
        self.qp_solver = qp_solver
        self.dictionary_solver = dictionary_solver
        self.code_solver = code_solver
        self.device = device
        self.training_options()  # checks them
        self.normalize = check_choice("normalize", normalize, Normalize)
        self.within = check_choice("within", within, Within)
        self.n_neighbors = check_number("n_neighbors", n_neighbors, least=1, whole=True)
        self.sigma = check_number("sigma", sigma, above=0)
        self.initialization = check_choice("initialization", initialization, Initialization)
        self.atom_start = check_choice("atom_start", atom_start, AtomStart)
        self.n_initial_rounds = check_number(
            "n_initial_rounds", n_initial_rounds, least=0, whole=True
        )
        self.center = center
        self.unit_norm = unit_norm
        self.n_components = n_components
        self.whiten = whiten
        self.ridge = ridge
        self.power = power
        self.make_preparation()  # checks its options
        self.code_ridge = check_number("code_ridge", code_ridge, least=0)
        self.soft_links = check_number("soft_links", soft_links, least=0)
        self.link_model = check_choice("link_model", link_model, LinkModel)
        self.link_temperature = check_number("link_temperature", link_temperature, above=0)
        self.center_codes = check_flag("center_codes", center_codes)
        self.seed = check_number("seed", seed, least=0, whole=True)
        self._learned = Learned()

    @property
    def uses_curricula(self) -> bool:
        """True if curricula have any weight."""
        return self.mu > 0

    @property
    def curriculum_modalities(self) -> tuple[str, ...]:
        """Modalities whose curricula are gone by."""
        if self.curricula == "both":
            return super().curriculum_modalities
        return (self.curricula,) if self.uses_curricula else ()

    @property
    def paces(self) -> bool:
        """True if a regulariser weighs the samples."""
        return self.regularizer != "none"

    @property
    def uses_gpu(self) -> bool:
        """True if codes and dictionaries are learned on a GPU."""
        return self.device != "cpu"

    def memory(self, n_sketches: int, n_images: int, dimensions: tuple[int, int]) -> int:
        """Bytes that `fit` needs at most, for features and codes."""
        sketch, image = (m + self.n_atoms for m in dimensions)
        return training_memory(n_sketches * sketch + n_images * image)

    def training_options(self) -> TrainingOptions:
        """Options of the alternation."""
        return TrainingOptions(
            **{option.name: getattr(self, option.name) for option in fields(TrainingOptions)}
        )

    def make_preparation(self) -> Preparation:
        """Preparation of one modality's features, not fitted."""
        return Preparation(**{name: getattr(self, name) for name in Preparation.option_names()})

    def fit(
        self,
        sketch_features: NDArray[Any],
        image_features: NDArray[Any],
        sketch_labels: Labels | None = None,
        image_labels: Labels | None = None,
        sketch_curriculum: Curriculum | None = None,
        image_curriculum: Curriculum | None = None,
        links: Any = None,
        *,
        start: CPRL | None = None,
        callback: Callable[[Round], object] | None = None,
        resume_from: Mapping[str, Any] | None = None,
    ) -> Self:
        """Learn both dictionaries.

        Parameters
        ----------
        sketch_features, image_features : (K, m_s) and (L, m_i) array_like
            One sample a row, real and finite. float32 and float64 are kept (the wider of the
            two). A row without direction (equal to the training mean, or zero where not centred)
            counts as a sample whose code is zero.
        sketch_labels, image_labels : sequences of K and L hashables, optional
            A sketch and an image of equal label are linked: labels are names of classes, of
            instances (one of its own for every sketch-image pair) or numbers of clusters. A
            label that occurs in one modality alone links nothing. Where `links` are given they
            only say which samples make up a group for regulariser A, and may be left out.
        sketch_curriculum, image_curriculum : Curriculum, optional
            Pairs (harder, easier) of row numbers into either matrix.
        links : (K, L) sparse matrix or array_like, optional
            Non-negative affinities that replace the links by label.
        start : CPRL, optional
            Fitted on features of the same widths, with the same `n_atoms` and options of
            preparation; its dictionaries replace the initialisation.
        callback : callable, optional
            Called with a `cppcl.learning.rounds.Round` after each round; what it raises ends
            training.
        resume_from : dict of str to array, optional
            What `Round.to_arrays` returned during a training with the same data and options:
            training goes on from there and ends with the bytes of one that was not interrupted.

        Raises
        ------
        InputError
            For what `cppcl.learning.training_data.TrainingData` refuses, rows that are all alike,
            no link at all, a `start` that does not fit, or the state of another training.
        """
        data = TrainingData.checked(
            (sketch_features, image_features),
            (sketch_labels, image_labels),
            (sketch_curriculum, image_curriculum),
            links,
        )
        self._learned = learn(self, data, start=start, callback=callback, resume_from=resume_from)
        self.history_ = dict(self._learned.history)
        return self

    def encode_sketches(self, features: NDArray[Any]) -> NDArray[np.float32]:
        """Codes of sketches (n, m_s) by the sketch dictionary alone, (n, n_atoms) float32."""
        return self._encode(features, "sketch")

    def encode_images(self, features: NDArray[Any]) -> NDArray[np.float32]:
        """Codes of images (n, m_i) by the image dictionary alone, (n, n_atoms) float32."""
        return self._encode(features, "image")

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return what `fit` learned, by name."""
        return self._learned.to_arrays()

    def from_arrays(self, arrays: dict[str, NDArray[Any]]) -> Self:
        """Restore what `to_arrays` returned, on a model constructed with the same options."""
        learned = Learned.from_arrays(arrays, self.make_preparation)
        n_atoms = len(learned["sketch_dictionary"])
        if n_atoms != self.n_atoms:
            raise InputError(
                f"the arrays hold {n_atoms} atoms but the model was made with "
                f"n_atoms={self.n_atoms}; construct it with the options it was trained with"
            )
        self._learned, self.history_ = learned, dict(learned.history)
        return self

    @property
    def sketch_dictionary_(self) -> NDArray[Any]:
        """Sketch atoms (n_atoms, m_s), in the space of the prepared features."""
        return self._learned["sketch_dictionary"]

    @property
    def image_dictionary_(self) -> NDArray[Any]:
        """Image atoms (n_atoms, m_i), in the space of the prepared features."""
        return self._learned["image_dictionary"]

    @property
    def sketch_pacing_(self) -> NDArray[Any]:
        """Pacing variables of the training sketches, (K,)."""
        return self._learned["sketch_pacing"]

    @property
    def image_pacing_(self) -> NDArray[Any]:
        """Pacing variables of the training images, (L,)."""
        return self._learned["image_pacing"]

    @property
    def sketch_pacing_rounds_(self) -> NDArray[np.float32]:
        """Pacing variables of the training sketches after each round, (rounds, K)."""
        return self._learned["sketch_pacing_rounds"]

    @property
    def image_pacing_rounds_(self) -> NDArray[np.float32]:
        """Pacing variables of the training images after each round, (rounds, L)."""
        return self._learned["image_pacing_rounds"]

    def _encode(self, features: NDArray[Any], side: str) -> NDArray[np.float32]:
        _ = self._learned[f"{side}_dictionary"]  # which says so where nothing was learned
        preparation = self._learned.preparations[side]
        prepared = preparation.transform(features, name=f"{side}_features")
        codes = code_samples(self, prepared, side, self._learned)
        if self.center_codes:
            codes = codes - self._learned[f"{side}_code_mean"]
        return codes.astype(np.float32, copy=False)
