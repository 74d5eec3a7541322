"""CPRL: cross-modal, self-paced, partially ordered learning of coupled dictionaries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cppcl.curriculum.base import Curriculum
from cppcl.errors import InputError
from cppcl.learning.agreement import Agreement, agreement_memory
from cppcl.learning.departures import TrainedCprl, departures
from cppcl.learning.learner import Learner, training_memory
from cppcl.learning.options import Coding, Graph, Initialization
from cppcl.learning.preparation import CLASS_RIDGE, INSTANCE_RIDGE, Preparation
from cppcl.learning.resuming import Round, digest_of, pass_rounds, resume
from cppcl.learning.training_data import TrainingData
from cppcl.modality import MODALITIES, Modality
from cppcl.optim.alternation import Alternation
from cppcl.optim.codes import check_solver
from cppcl.optim.initialization import initial_dictionaries
from cppcl.optim.pacing.options import Pacing
from cppcl.optim.printed import Printed, read_printed
from cppcl.validation import Auto, Floating, Labels, check_number, check_number_or_auto

if TYPE_CHECKING:
    from cppcl.features import Extractor

MOST_ATOMS = 200
"""Atoms at most where the data settle how many."""


@dataclass(kw_only=True, eq=False, repr=False)
class CPRL(Learner):
    r"""Coupled dictionaries of sketches and images, learned from easy samples to hard ones.

    Minimises, over two dictionaries of N atoms in the unit ball, codes C and pacing variables
    ``0 <= v <= 1``,

    ``sum_p v_p^2 (|f_p - c_p D|^2 + alpha |c_p|_1) + beta Tr((VC)^T L (VC)) + R_gamma(v)
    + mu sum_(i,j) max(0, v_i - v_j)``,

    by alternation, gamma growing each round. L ties sketches to images of the same label. New
    samples are coded by their own modality's dictionary alone, and ranked by the cosine of
    their codes.

    Defaults follow the data: what is 'auto' is settled in `fit`. Options come in groups, each
    given as an object or as a mapping of what differs from its defaults here:
    ``CPRL(alpha=0.01, pacing={"eta": 1.3})``.

    Parameters
    ----------
    n_atoms : int or 'auto', default 'auto'
        Atoms N of either dictionary; may exceed the number of samples. 'auto' is the number of
        classes in both modalities, or, where labels have one image, half of the pairs and at most
        a third of the features, but 16 where there are so many pairs; from 2 to 200.
    alpha : float, default 0.003
        Weight of the L1 norm, for features of unit norm (all codes vanish from 2 on).
    beta : float, default 30
        Weight of the graph.
    n_rounds : int, default 12
        Most rounds; fewer are run once every sample has been selected for a while.
    pacing : Pacing
        How samples are taken up, easy ones first; see `cppcl.optim.pacing.options.Pacing`. Here
        gamma doubles each round by default (`eta` 2).
    graph : Graph
        The graph that ties sketches to images; see `cppcl.learning.options.Graph`.
    initialization : Initialization
        Dictionaries before the first round; see `cppcl.learning.options.Initialization`.
    preparation : Preparation
        What is done to features first; see `cppcl.learning.preparation.Preparation`. Here they
        are whitened by default, with at most 300 components, and `power` and `ridge` are 'auto':
        the ridge is 0.03 where labels are classes, 0.1 where they are of instances.
    coding : Coding
        Codes in training, and of new samples; see `cppcl.learning.options.Coding`.
    printed : sequence of str, default ()
        Forms that the paper prints, to be used in place of ours. 'sign': of regulariser B, with
        which no sample is ever selected. 'group_size': groups weigh by their size in regulariser
        A, not by their size over its mean within the modality. 'pair_weight': each pair of a
        curriculum weighs mu, so that curricula fade as gamma grows. 'l1': pacing does not weigh
        the L1 norm, which zeroes the codes of samples that are not yet selected. 'shadow_loss':
        pacing sees the loss of the code that a sample would have alone and counting fully, as
        with 'l1' that of its own code is largest for what is not yet selected; the steps then
        minimise different objectives. 'coupling': the graph's term in the pacing step, which is
        not convex, and not the term that the codes minimise. 'unscaled_graph': weights of the
        graph as they are. 'dense_graph': Gaussian weights between all samples of a modality,
        by their prepared features: of unit norm, they drown the links between modalities. 'dual':
        the dictionary step by its Lagrange dual, which refuses fewer than 1.2 samples an atom.
    device : str, default 'cpu'
        Where code and dictionary steps run, such as 'cuda', which needs
        ``code_solver='gradient'``.
    seed : int, default 0
        Seed of every draw: the same seed gives the same bytes.

    Attributes
    ----------
    n_atoms_ : int
        Atoms N.
    soft_links_ : float
        Weight of the soft links, as `coding` has it or as settled.
    sketch_dictionary_, image_dictionary_ : (N, m_k) arrays
        Atoms as rows, in the space of the prepared features.
    sketch_pacing_, image_pacing_ : (n_k,) arrays
        Pacing variables after training.
    sketch_pacing_rounds_, image_pacing_rounds_ : (rounds, n_k) float32 arrays
        Pacing variables after each round.
    right_share_ : float
        Estimated share of right samples, with ``pacing.loss`` 'agreement'.
    history_ : dict of (rounds,) arrays
        For each round: `objective` (its own, at its gamma), `reconstruction_objective` (every
        sample counting fully: comparable between settings), `gamma`, and for each modality
        `*_mean_v`, `*_selected` (share above 0.5), `*_sd_v` and `*_unused_atoms`; `pacing_kkt`
        is the residual of the optimality conditions of the round's pacing step.

    Raises
    ------
    InputError
        For an option out of range, or options that contradict each other.
    """

    version: ClassVar[int] = 7
    warm_start_option: ClassVar[str | None] = "alpha"
    zero_codes_hint: ClassVar[str] = "a smaller alpha leaves fewer"

    n_atoms: int | Auto = "auto"
    alpha: float = 0.003
    beta: float = 30.0
    n_rounds: int = 12
    pacing: Pacing = field(default_factory=partial(Pacing, eta=2.0))
    graph: Graph = field(default_factory=Graph)
    initialization: Initialization = field(default_factory=Initialization)
    preparation: Preparation = field(
        default_factory=partial(
            Preparation, n_components=300, whiten=True, ridge="auto", power="auto"
        )
    )
    coding: Coding = field(default_factory=Coding)
    printed: tuple[Printed, ...] = ()
    device: str = "cpu"
    seed: int = 0
    history_: dict[str, NDArray[np.float64]] = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number_or_auto("n_atoms", self.n_atoms, least=1, whole=True)
        check_number("alpha", self.alpha, least=0)
        check_number("beta", self.beta, least=0)
        check_number("n_rounds", self.n_rounds, least=1, whole=True)
        self.printed = read_printed(self.printed)
        self.pacing.check_printed(self.printed)
        self.graph.check_printed(self.printed)
        check_solver(self.coding.code_solver, self.device)
        check_number("seed", self.seed, least=0, whole=True)

    @property
    def uses_curricula(self) -> bool:
        """True if curricula have any weight."""
        return self.pacing.mu > 0

    @property
    def curriculum_modalities(self) -> tuple[str, ...]:
        """Modalities whose curricula are used."""
        if self.pacing.curricula == "both":
            return super().curriculum_modalities
        return (self.pacing.curricula,) if self.uses_curricula else ()

    @property
    def paces(self) -> bool:
        """True if a regulariser weighs the samples."""
        return self.pacing.regularizer != "none"

    @property
    def uses_agreement(self) -> bool:
        """True if pacing goes by agreement."""
        return self.pacing.loss == "agreement"

    @property
    def uses_gpu(self) -> bool:
        """True if codes and dictionaries are learned on a GPU."""
        return self.device != "cpu"

    def departures(
        self, dimensions: tuple[int, int], scores: Mapping[Modality, Extractor]
    ) -> dict[str, str]:
        """What it has otherwise than the paper (`cppcl.learning.departures.departures`)."""
        return departures(TrainedCprl(self.options(), dimensions, scores))

    def memory(self, n_sketches: int, n_images: int, dimensions: tuple[int, int]) -> int:
        """Bytes that `fit` needs at most, for features and codes."""
        n_atoms = self._settled_atoms(min(n_sketches, n_images))
        sketch, image = (m + n_atoms for m in dimensions)
        needed = training_memory(n_sketches * sketch + n_images * image)
        if self.uses_agreement:
            needed += agreement_memory(n_sketches, n_images, dimensions)
        return needed

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
        agreement: Agreement | None = None,
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
            Called with a `cppcl.learning.resuming.Round` after each round; what it raises ends
            training.
        resume_from : dict of str to array, optional
            What `Round.to_arrays` returned during a training with the same data and options:
            training goes on from there and ends with the bytes of one that was not interrupted.
        agreement : Agreement, optional
            How well the samples agree, for ``pacing.loss`` 'agreement'; judged here if None.

        Raises
        ------
        InputError
            For what `cppcl.learning.training_data.TrainingData` refuses, rows that are all alike,
            no link at all, a `start` that does not fit, or the state of another training; for
            given links with ``pacing.loss`` 'agreement', which judges labels.
        """
        data = TrainingData.checked(
            (sketch_features, image_features),
            (sketch_labels, image_labels),
            (sketch_curriculum, image_curriculum),
            links,
        )
        n_atoms = self._settled_atoms(data.n_directions)
        check_atoms_fit(n_atoms, data.dtype)
        coding = self.coding.settled(data)
        coding.check_labels(data)
        preparations = {modality: self._settled_preparation(data) for modality in MODALITIES}
        sketches, images = (
            prepared(preparations[modality], F, f"{modality}_features")
            for modality, F in zip(MODALITIES, data.features, strict=True)
        )
        features = sketches, images
        judged = self._agreement(data, agreement)
        members = None if judged is None else judged.members
        laplacian = self.graph.laplacian(data, features, self.printed)
        start_graph = laplacian
        if members is not None:
            start_graph = self.graph.laplacian(data, features, self.printed, members)
        rng = np.random.default_rng(self.seed)
        weights = None
        if judged is not None:
            of_sketches, of_images = (p.astype(data.dtype) for p in judged.probabilities)
            weights = of_sketches, of_images
        if resume_from is not None:
            dictionaries = [np.zeros((n_atoms, F.shape[1]), dtype=F.dtype) for F in features]
        elif start is not None:
            dictionaries = self._dictionaries_of(start, features, n_atoms)
        else:
            dictionaries = initial_dictionaries(
                features,
                start_graph,
                n_atoms,
                alpha=self.alpha,
                initialization=self.initialization.dictionaries,
                start=self.initialization.settled_start,
                n_rounds=self.initialization.settled_rounds,
                rng=rng,
                code_solver=self.coding.code_solver,
                device=self.device,
                weights=weights if members is None else None,
            )
        training = Alternation(
            features,
            dictionaries,
            laplacian,
            data.group_scale("size" if "group_size" in self.printed else "relative"),
            data.right_curricula(self.pacing.curricula, judged),
            alpha=self.alpha,
            beta=self.beta,
            n_rounds=self.n_rounds,
            pacing_options=self.pacing,
            printed=self.printed,
            code_solver=self.coding.code_solver,
            device=self.device,
            odds=None if weights is None else 1 / np.concatenate(weights) - 1,
            right_share=1.0 if judged is None else judged.right_share,
        )

        @cache
        def fingerprint() -> bytes:
            options = repr((self.version, self.options()))
            first = [] if start is None else [start.sketch_dictionary_, start.image_dictionary_]
            given = [*first, *(weights or ())]
            return digest_of(data.digest(), options.encode(), *(D.tobytes() for D in given))

        if resume_from is not None:
            resume(training, resume_from, fingerprint())
        history = training.run(rng, callback and pass_rounds(callback, fingerprint))
        arrays = training.learned()
        arrays |= coding.learned(
            features, arrays, laplacian, data.labels, self.alpha, weights, members
        )
        if judged is not None:
            arrays |= {
                "sketch_probability": judged.sketch_probability,
                "image_probability": judged.image_probability,
                "right_share": np.array([judged.right_share]),
            }
        self._keep(arrays, preparations, history)
        return self

    def from_arrays(self, arrays: dict[str, NDArray[Any]]) -> Self:
        """Restore what `to_arrays` returned, on a model constructed with the same options."""
        for modality in MODALITIES:
            n_atoms = len(arrays.get(f"{modality}_dictionary", ()))
            if not n_atoms:
                raise self._not_fitted(f"{modality}_dictionary")
            if self.n_atoms not in ("auto", n_atoms):
                raise InputError(
                    f"the arrays hold {n_atoms} atoms but the model was made with "
                    f"n_atoms={self.n_atoms}; construct it with the options it was trained with"
                )
        return super().from_arrays(arrays)

    @property
    def n_atoms_(self) -> int:
        """Atoms N of either dictionary."""
        return len(self.sketch_dictionary_)

    @property
    def soft_links_(self) -> float:
        """Weight of the soft links of new samples."""
        self._fitted("sketch_dictionary")
        return float(self.coding.settled_by(self._arrays).soft_links)

    @property
    def sketch_dictionary_(self) -> NDArray[Any]:
        """Sketch atoms (n_atoms, m_s), in the space of the prepared features."""
        return self._fitted("sketch_dictionary")

    @property
    def image_dictionary_(self) -> NDArray[Any]:
        """Image atoms (n_atoms, m_i), in the space of the prepared features."""
        return self._fitted("image_dictionary")

    @property
    def sketch_pacing_(self) -> NDArray[Any]:
        """Pacing variables of the training sketches, (K,)."""
        return self._fitted("sketch_pacing")

    @property
    def image_pacing_(self) -> NDArray[Any]:
        """Pacing variables of the training images, (L,)."""
        return self._fitted("image_pacing")

    @property
    def sketch_pacing_rounds_(self) -> NDArray[np.float32]:
        """Pacing variables of the training sketches after each round, (rounds, K)."""
        return self._fitted("sketch_pacing_rounds")

    @property
    def image_pacing_rounds_(self) -> NDArray[np.float32]:
        """Pacing variables of the training images after each round, (rounds, L)."""
        return self._fitted("image_pacing_rounds")

    @property
    def right_share_(self) -> float:
        """Estimated share of right samples, with ``pacing.loss`` 'agreement'."""
        return float(self._fitted("right_share")[0])

    def _agreement(self, data: TrainingData, given: Agreement | None) -> Agreement | None:
        if not self.uses_agreement:
            return None
        return data.agreement(given, option="pacing.loss='agreement'", seed=self.seed)

    def _code(self, modality: Modality, prepared: Floating) -> Floating:
        coding = self.coding.settled_by(self._arrays)
        codes = coding.codes(prepared, modality, self._arrays, self.alpha)
        return codes.astype(np.float32, copy=False)

    def _settled_atoms(self, n_directions: int) -> int:
        return max(2, min(n_directions, MOST_ATOMS)) if self.n_atoms == "auto" else self.n_atoms

    def _settled_preparation(self, data: TrainingData) -> Preparation:
        preparation = self._new_preparation()
        if preparation.ridge == "auto":
            preparation.ridge = CLASS_RIDGE if data.has_classes else INSTANCE_RIDGE
        return preparation

    def _dictionaries_of(
        self, start: CPRL, features: tuple[Floating, Floating], n_atoms: int
    ) -> list[NDArray[Any]]:
        """Dictionaries of another model, if they are of the same atoms and features."""
        ours, theirs = (model.preparation.options() for model in (self, start))
        settled = {"n_atoms": (n_atoms, start.n_atoms_)}
        for option, (here, there) in (settled | {o: (ours[o], theirs[o]) for o in ours}).items():
            if here != there:
                raise InputError(f"start has {option}={there!r}, but this model {option}={here!r}")
        dictionaries = [start.sketch_dictionary_, start.image_dictionary_]
        for modality, F, D in zip(MODALITIES, features, dictionaries, strict=True):
            if D.shape[1] != F.shape[1]:
                raise InputError(
                    f"start has {modality} atoms of {D.shape[1]} entries, but the prepared "
                    f"{modality}_features have {F.shape[1]} columns; fit it on the same features"
                )
        return [D.astype(F.dtype) for F, D in zip(features, dictionaries, strict=True)]


def check_atoms_fit(n_atoms: int, dtype: np.dtype[Any]) -> None:
    """Refuse more atoms than memory can compare with each other.

    Raises
    ------
    InputError
        If the matrices of inner products would take more than half of the free memory.
    """
    import psutil

    needed = 3 * n_atoms**2 * dtype.itemsize
    free = psutil.virtual_memory().available
    if needed > free / 2:
        raise InputError(
            f"n_atoms={n_atoms} needs {needed / 1e9:.0f} GB for the inner products of atoms, and "
            f"{free / 1e9:.0f} GB are free; use fewer atoms (the paper takes 50 to 1,500)"
        )


def prepared(preparation: Preparation, features: Floating, name: str) -> Floating:
    """Fit a preparation and apply it; refuse features of which nothing remains."""
    alike = preparation.center and bool((features == features[0]).all())
    matrix = features if alike else preparation.fit_transform(features, name=name)
    if alike or not matrix.any():
        raise InputError(
            f"{name}: all {len(features)} rows are alike, so nothing tells samples apart; give "
            "features that differ"
        )
    return matrix
