"""Deep sketch hashing on fixed features: binary codes learned from labels, also paced."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from cppcl.baselines.base import SampleWeights, linear_codes
from cppcl.baselines.links import numbered_classes
from cppcl.curriculum.base import Curriculum
from cppcl.errors import InputError
from cppcl.hashing.alternation import HashAlternation
from cppcl.hashing.functions import Anchors, BitRegression, HashFunctions
from cppcl.learning.agreement import Agreement, agreement_memory
from cppcl.learning.learner import Learner, training_memory
from cppcl.learning.preparation import Preparation
from cppcl.learning.training_data import TrainingData
from cppcl.modality import MODALITIES, Modality
from cppcl.optim.pacing.options import Pacing
from cppcl.validation import Floating, Labels, check_choice, check_number

Dissimilarity = Literal["attainable", "opposite"]
"""What products of codes of different classes should be."""


@dataclass(kw_only=True, eq=False, repr=False)
class DSH(Learner):
    r"""Binary codes of sketches and images whose Hamming distance tells classes apart.

    Learns codes of the training samples, a map from codes to classes, and hash functions from
    features to bits, in turns, each step exact; see `cppcl.hashing.objective.HashObjective`. The
    publication trains deep networks as hash functions; here features are fixed, and hash
    functions are ridge regressions on them.

    Parameters
    ----------
    bits : int, default 64
        Length m of a code.
    dissimilarity : {'attainable', 'opposite'}, default 'attainable'
        Product of two codes of different classes, over m, that is aimed at. 'opposite', as
        published, is -1, which more than two classes cannot have at once; a bit that only tells
        sketches from images then lowers the objective. 'attainable' is ``-1 / (G - 1)``, the
        least that G classes can have.
    label_weight : float, default 1
        Lambda, the weight of telling classes from codes.
    function_weight : float, default 0.1
        Gamma, the weight of the hash functions in the choice of codes. Classes of which training
        has few samples each, and instances above all, want codes that features tell: 3 to 10.
    functions : HashFunctions
        How bits follow from features; see `cppcl.hashing.functions.HashFunctions`.
    n_rounds : int, default 12
        Most rounds; fewer where no bit changes any more.
    sample_weights : {'none', 'agreement'}, default 'none'
        What training samples weigh: all the same, or the probability that they are right, as
        `cppcl.learning.agreement` judges them.
    pacing : Pacing
        How samples are taken up; here none by default. See
        `cppcl.optim.pacing.options.Pacing`. Codes are not compared by a graph, as the products of
        codes tie the modalities: `coupling` is 'none'.
    preparation : Preparation
        What is done to features first; see `cppcl.learning.preparation.Preparation`.
    seed : int, default 0
        Seed of the codes that training starts from, and of the anchors.

    Attributes
    ----------
    history_ : dict of (rounds,) arrays
        For each round: `objective` and `changed_bits`, a share; where paced, `gamma` and what
        `cppcl.CPRL` records of pacing.

    Raises
    ------
    InputError
        For an option out of range, or options that contradict each other.

    Notes
    -----
    L. Liu, F. Shen, Y. Shen, X. Liu, L. Shao: Deep Sketch Hashing, CVPR 2017. The form of the
    objective is our reading. Its weights there, 0.01 and 1e-5 beside sums over all pairs, are
    next to nothing in the units used here, in which each part is a mean of order 1. Class vectors
    are one-hot: orthonormal ones, such as random ones, give the same codes.
    """

    version: ClassVar[int] = 1

    bits: int = 64
    dissimilarity: Dissimilarity = "attainable"
    label_weight: float = 1.0
    function_weight: float = 0.1
    functions: HashFunctions = field(default_factory=HashFunctions)
    n_rounds: int = 12
    sample_weights: SampleWeights = "none"
    pacing: Pacing = field(
        default_factory=partial(Pacing, regularizer="none", eta=2.0, coupling="none")
    )
    preparation: Preparation = field(default_factory=partial(Preparation, power="auto"))
    seed: int = 0
    history_: dict[str, NDArray[Any]] = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("bits", self.bits, least=1, whole=True)
        check_choice("dissimilarity", self.dissimilarity, Dissimilarity)
        check_number("label_weight", self.label_weight, least=0)
        check_number("function_weight", self.function_weight, least=0)
        check_number("n_rounds", self.n_rounds, least=1, whole=True)
        check_choice("sample_weights", self.sample_weights, SampleWeights)
        check_number("seed", self.seed, least=0, whole=True)
        if self.pacing.coupling != "none":
            raise InputError(
                f"pacing.coupling={self.pacing.coupling!r} is of a graph, which hashing does not "
                "have; use 'none'"
            )
        if self.paces and self.sample_weights != "none":
            raise InputError(
                f"sample_weights={self.sample_weights!r} are fixed, and pacing.regularizer="
                f"{self.pacing.regularizer!r} learns them; use one of both (pacing.loss="
                "'agreement' goes by the same agreement)"
            )

    @property
    def code_bits(self) -> int:
        """Bits of a code."""
        return self.bits

    @property
    def uses_curricula(self) -> bool:
        """True if samples are paced and curricula have any weight."""
        return self.paces and self.pacing.mu > 0

    @property
    def curriculum_modalities(self) -> tuple[str, ...]:
        """Modalities whose curricula are used."""
        chosen = self.pacing.curricula
        return tuple(m for m in super().curriculum_modalities if chosen in ("both", m))

    @property
    def uses_agreement(self) -> bool:
        """True if samples are weighed by agreement, or pacing goes by it."""
        return self.sample_weights == "agreement" or self.pacing.loss == "agreement"

    @property
    def paces(self) -> bool:
        """True if a regulariser weighs the samples."""
        return self.pacing.regularizer != "none"

    def memory(self, n_sketches: int, n_images: int, dimensions: tuple[int, int]) -> int:
        """Bytes that `fit` needs at most, for features, joint rows, their products and codes."""
        n = n_sketches + n_images
        n_columns = sum(dimensions)
        if self.functions.kind == "kernel":
            n_columns = max(n_columns, 2 * self.functions.n_anchors)
        needed = training_memory(n * (n_columns + 2 * self.bits) + 2 * n_columns**2)
        if self.uses_agreement:
            needed += agreement_memory(n_sketches, n_images, dimensions)
        return needed

    def fit(
        self,
        sketch_features: NDArray[Any],
        image_features: NDArray[Any],
        sketch_labels: Labels,
        image_labels: Labels,
        sketch_curriculum: Curriculum | None = None,
        image_curriculum: Curriculum | None = None,
        links: Any = None,
        *,
        agreement: Agreement | None = None,
    ) -> Self:
        """Learn hash functions.

        Parameters
        ----------
        sketch_features, image_features : (K, m_s) and (L, m_i) array_like
            One sample a row, real and finite.
        sketch_labels, image_labels : sequences of K and L hashables
            Equal labels are one class.
        sketch_curriculum, image_curriculum : Curriculum, optional
            Pairs (harder, easier) of row numbers, where samples are paced.
        links : (K, L) sparse matrix or array_like, optional
            Samples that they connect, directly or through others, are a class in place of those
            of equal label; others take no part.
        agreement : Agreement, optional
            How well the samples agree, for what goes by it; judged here if None.

        Raises
        ------
        InputError
            For what `cppcl.learning.training_data.TrainingData` refuses, classes that the
            modalities do not share, a single class; links with agreement; links that leave out
            samples, where these are paced.
        """
        data = TrainingData.checked(
            (sketch_features, image_features),
            (sketch_labels, image_labels),
            (sketch_curriculum, image_curriculum),
            links,
        )
        classes = numbered_classes(sketch_labels, image_labels, data.links)
        known = [of >= 0 for of in classes]
        if self.paces and not all(of.all() for of in known):
            raise InputError(
                "links leave out samples, which pacing cannot take up; link all samples, or use "
                "pacing.regularizer='none'"
            )
        judged = None
        if self.uses_agreement:
            option = "sample_weights" if self.pacing.loss != "agreement" else "pacing.loss"
            judged = data.agreement(agreement, option=f"{option}='agreement'")
        preparations = {modality: self._new_preparation() for modality in MODALITIES}
        prepared = [
            preparations[modality].fit_transform(F, name=f"{modality}_features")[taking_part]
            for modality, F, taking_part in zip(MODALITIES, data.features, known, strict=True)
        ]
        features = prepared[0], prepared[1]
        comparable = features[0].shape[1] == features[1].shape[1] and not self.preparation.projects
        rng = np.random.default_rng(self.seed)
        anchors = self.functions.anchors(features, comparable, rng)
        if anchors is not None:
            features = anchors[0].of(features[0]), anchors[1].of(features[1])
        weights = np.ones(sum(map(len, features)))
        if judged is not None and not self.paces:
            weights = np.concatenate(judged.probabilities)
        alternation = HashAlternation(
            (classes[0][known[0]], classes[1][known[1]]),
            BitRegression(
                features,
                weights,
                ridge=self.functions.ridge,
                sharing=self.functions.sharing if comparable else 0.0,
            ),
            self.bits,
            self._unlike(1 + int(max(of.max() for of in classes))),
            self.label_weight,
            self.function_weight,
            weights,
            self.pacing,
            data.right_curricula(self.pacing.curricula, judged),
            odds=None
            if judged is None or not self.paces
            else 1 / np.concatenate(judged.probabilities) - 1,
            right_share=1.0 if judged is None else judged.right_share,
        )
        alternation.start(rng)
        alternation.run(self.n_rounds)
        arrays = alternation.regression.to_arrays()
        for modality, of_modality in zip(MODALITIES, anchors or (), strict=False):
            arrays |= {f"{modality}_anchor_{n}": a for n, a in of_modality.to_arrays().items()}
        if self.paces:
            rounds = np.array(alternation.pacing_rounds)
            n_sketches = len(classes[0])
            arrays["sketch_pacing_rounds"] = rounds[:, :n_sketches]
            arrays["image_pacing_rounds"] = rounds[:, n_sketches:]
        if judged is not None:
            arrays["right_share"] = np.array([judged.right_share])
        self._keep(arrays, preparations, alternation.columns())
        return self

    def _unlike(self, n_classes: int) -> float:
        return 1.0 if self.dissimilarity == "opposite" else 1 / (n_classes - 1)

    def _code(self, modality: Modality, prepared: Floating) -> Floating:
        rows = prepared
        if self.functions.kind == "kernel":
            prefix = f"{modality}_anchor_"
            names = ("rows", "width", "means")
            rows = Anchors(*(self._fitted(prefix + name) for name in names)).of(prepared)
        coefficients = self._fitted(f"{modality}_coefficients")
        values = linear_codes(rows, np.zeros(len(coefficients)), coefficients)
        values += self._fitted("intercept").astype(values.dtype, copy=False)
        return np.where(values >= 0, 1, -1).astype(values.dtype)
