"""Two-layer heads whose unit codes CPRL represents and paces, in turns with their training."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cppcl.baselines.heads import HeadTraining
from cppcl.baselines.infonce import InfoNCEHeads
from cppcl.baselines.links import class_links, given_links
from cppcl.errors import InputError
from cppcl.learning.agreement import Agreement, agreement_memory
from cppcl.learning.cprl import CPRL
from cppcl.learning.learner import training_memory
from cppcl.learning.preparation import Preparation, unit_rows
from cppcl.learning.resuming import Round
from cppcl.learning.training_data import TrainingData
from cppcl.modality import MODALITIES, Modality
from cppcl.optim.devices import check_device
from cppcl.validation import Floating, Labels, check_number

AS_THEY_ARE = Preparation(center=False, unit_norm=False)
"""What is done to unit codes: nothing."""
CPRL_PREFIX = "cprl_"
"""Of the arrays that the last CPRL learned."""


@dataclass(kw_only=True, eq=False, repr=False)
class PacedHeads(InfoNCEHeads):
    r"""Heads of two layers and CPRL's dictionaries at their end, learned in turns.

    Starts from the heads of `cppcl.baselines.infonce.InfoNCEHeads`, whose unit codes are z. Then
    `n_alternations` times:

    1. `cppcl.CPRL` on z, from the dictionaries of the time before, gives codes c, dictionaries D
       and pacing variables v.
    2. The heads take gradient steps for `alternation_epochs`. A pair of sketch p and image q
       weighs ``v_p v_q`` in InfoNCE's loss, and ``reconstruction * v_p^2 |z_p - c_p D|^2``, with c
       and D fixed, is added for every sample (`cppcl.baselines.heads.head_loss`).

    At the end CPRL learns once more. A new sample has the code that CPRL gives to its unit code.

    Without the contrastive term all z equal would be an optimum, which one atom represents
    without error: reconstruction alone must not train heads. The steps of CPRL lower its
    objective and those of the heads lower theirs; the two share the term of reconstruction, and
    are not one objective, as CPRL does not see InfoNCE's loss.

    Parameters
    ----------
    n_alternations : int, default 2
        How many times CPRL and training of the heads follow the start; 0 leaves InfoNCE's heads
        as they are, with CPRL at their end.
    alternation_epochs : int, default 20
        Passes over the pairs each time; the learning rate starts anew. `epochs` are of the start.
    reconstruction : float, default 0.1
        Weight of the distance of unit codes from what CPRL makes of them.
    cprl : CPRL
        Options of CPRL, such as ``cprl={"n_atoms": 60, "pacing": {"loss": "agreement"}}``. With
        'agreement' models that have seen the features, not the heads, judge samples, once. Its
        preparation leaves unit codes as they are, and may not be another.

    Attributes
    ----------
    cprl_ : CPRL
        The last one, fitted.
    head_losses_ : (epochs + n_alternations * alternation_epochs,) array
        Mean loss of the heads in every epoch.
    history_ : dict of (rounds,) arrays
        What `cppcl.CPRL` records of each round, of all times one after another; gamma starts
        anew each time.

    Raises
    ------
    InputError
        For an option out of range, or a preparation of the unit codes.

    Notes
    -----
    Other options are those of `cppcl.baselines.infonce.InfoNCEHeads`.
    """

    version: ClassVar[int] = 1 + InfoNCEHeads.version + CPRL.version
    zero_codes_hint: ClassVar[str] = "a smaller cprl.alpha leaves fewer"

    n_alternations: int = 2
    alternation_epochs: int = 20
    reconstruction: float = 0.1
    cprl: CPRL = field(default_factory=partial(CPRL, preparation=AS_THEY_ARE))

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("n_alternations", self.n_alternations, least=0, whole=True)
        check_number("alternation_epochs", self.alternation_epochs, least=1, whole=True)
        check_number("reconstruction", self.reconstruction, least=0)
        if self.cprl.preparation.options() != AS_THEY_ARE.options():
            raise InputError(
                f"cprl.preparation={self.cprl.preparation!r}, but the unit codes of heads are "
                "taken as they are; leave it out, or set preparation, which is that of the "
                "features"
            )

    @property
    def uses_curricula(self) -> bool:
        """True if CPRL uses curricula."""
        return self.cprl.uses_curricula

    @property
    def curriculum_modalities(self) -> tuple[str, ...]:
        """Modalities whose curricula CPRL uses."""
        return self.cprl.curriculum_modalities

    @property
    def uses_agreement(self) -> bool:
        """True if pacing goes by agreement."""
        return self.cprl.uses_agreement

    @property
    def paces(self) -> bool:
        """True if CPRL paces, and so weighs the pairs that heads are trained on."""
        return self.cprl.paces

    @property
    def uses_gpu(self) -> bool:
        """True if the heads are trained, or codes and dictionaries are learned, on a GPU."""
        return super().uses_gpu or self.cprl.uses_gpu

    def memory(self, n_sketches: int, n_images: int, dimensions: tuple[int, int]) -> int:
        """Bytes that `fit` needs at most: the heads, their codes and targets, and CPRL."""
        codes = self.dimension, self.dimension
        needed = super().memory(n_sketches, n_images, dimensions)
        needed += training_memory(2 * (n_sketches + n_images) * self.dimension)
        needed += self.cprl.memory(n_sketches, n_images, codes)
        if self.uses_agreement:
            needed += agreement_memory(n_sketches, n_images, dimensions)
        return needed

    def fit(
        self,
        sketch_features: NDArray[Any],
        image_features: NDArray[Any],
        sketch_labels: Labels,
        image_labels: Labels,
        sketch_curriculum: Any = None,
        image_curriculum: Any = None,
        links: Any = None,
        *,
        agreement: Agreement | None = None,
    ) -> Self:
        """Learn heads and dictionaries.

        Parameters
        ----------
        sketch_features, image_features : (K, m_s) and (L, m_i) array_like
            One sample a row, real and finite.
        sketch_labels, image_labels : sequences of K and L hashables
            Equal labels link a sketch with an image.
        sketch_curriculum, image_curriculum : Curriculum, optional
            Pairs (harder, easier) of row numbers into either matrix.
        links : (K, L) sparse matrix or array_like, optional
            Non-negative affinities that replace the links by label.
        agreement : Agreement, optional
            How well the samples agree, for pacing by it; judged here from the features if None.

        Raises
        ------
        InputError
            For what `cppcl.learning.training_data.TrainingData` or `cppcl.CPRL.fit` refuses, a
            device that is not here, or a training that diverges.
        """
        check_device(self.device)
        labels, curricula = (
            (sketch_labels, image_labels),
            (sketch_curriculum, image_curriculum),
        )
        data = TrainingData.checked((sketch_features, image_features), labels, curricula, links)
        linked = (
            class_links(*labels, class_weight=self.class_weight)
            if links is None
            else given_links(links, *map(len, data.features))
        )
        judged = None
        if self.uses_agreement:
            option = "cprl.pacing.loss='agreement'"
            judged = data.agreement(agreement, option=option, seed=self.seed)
        preparations = {modality: self._new_preparation() for modality in MODALITIES}
        sketches, images = (
            preparations[modality].fit_transform(F, name=f"{modality}_features")
            for modality, F in zip(MODALITIES, data.features, strict=True)
        )
        training = HeadTraining(self, (sketches, images), linked)
        training.run(self.epochs)
        fits: list[CPRL] = []
        state: dict[str, NDArray[Any]] = {}

        def keep(done: Round) -> None:
            state.update(done.to_arrays())

        for alternation in range(self.n_alternations + 1):
            self._arrays = training.learned()
            codes = self._unit_codes("sketch", sketches), self._unit_codes("image", images)
            previous = fits[-1] if fits else None
            fits.append(
                CPRL(**self.cprl.get_params(deep=False)).fit(
                    *codes,
                    *labels,
                    *curricula,
                    links,
                    start=previous,
                    callback=keep,
                    agreement=judged,
                )
            )
            if alternation < self.n_alternations:
                C, cprl = state["codes"], fits[-1]
                training.run(
                    self.alternation_epochs,
                    weights=(cprl.sketch_pacing_, cprl.image_pacing_),
                    targets=(
                        C[: len(sketches)] @ cprl.sketch_dictionary_,
                        C[len(sketches) :] @ cprl.image_dictionary_,
                    ),
                    reconstruction=self.reconstruction,
                )
        arrays = self._arrays | {"head_losses": np.array(training.losses)}
        if self.paces:
            for name in ("sketch_pacing_rounds", "image_pacing_rounds"):
                arrays[name] = np.concatenate([getattr(cprl, f"{name}_") for cprl in fits])
        arrays |= {f"{CPRL_PREFIX}{name}": array for name, array in fits[-1].to_arrays().items()}
        history = {
            name: np.concatenate([cprl.history_[name] for cprl in fits])
            for name in fits[-1].history_
        }
        self._keep(arrays, preparations, history)
        return self

    @property
    def cprl_(self) -> CPRL:
        """CPRL on the unit codes of the heads, as it was fitted last."""
        return CPRL(**self.cprl.get_params(deep=False)).from_arrays(dict(self._of_cprl()))

    @property
    def head_losses_(self) -> NDArray[np.float64]:
        """Mean loss of the heads in every epoch."""
        return self._fitted("head_losses")

    def _of_cprl(self) -> Iterator[tuple[str, NDArray[Any]]]:
        for name, array in self._arrays.items():
            if name.startswith(CPRL_PREFIX):
                yield name.removeprefix(CPRL_PREFIX), array

    def _unit_codes(self, modality: Modality, prepared: Floating) -> Floating:
        return unit_rows(super()._code(modality, prepared))

    def _code(self, modality: Modality, prepared: Floating) -> Floating:
        codes, cprl = self._unit_codes(modality, prepared), self.cprl_
        return cprl.encode_sketches(codes) if modality == "sketch" else cprl.encode_images(codes)
