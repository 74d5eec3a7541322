"""Two-layer heads, one a modality, trained with InfoNCE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.baselines.base import LinkedBaseline, linear_codes
from cppcl.baselines.heads import HeadTraining
from cppcl.baselines.links import Labels
from cppcl.errors import InputError
from cppcl.learning.learner import training_memory
from cppcl.learning.preparation import Floating
from cppcl.modality import Modality
from cppcl.optim.devices import check_device, check_device_name
from cppcl.validation import check_number

COPIES_OF_WEIGHTS = 6
"""Weights, gradient, two moments of Adam, and room for a step."""


@dataclass(kw_only=True, eq=False, repr=False)
class InfoNCEHeads(LinkedBaseline):
    r"""Heads of two layers, trained so that linked samples are closer than all others.

    A sample's code is ``max(0, x U + u) W``, with weights of its modality. In a batch of b pairs,
    with unit codes s and i, the loss is

    ``-1/(2b) sum_p sum_q (P_pq log softmax_q(s_p . i_q / temperature)
    + Q_pq log softmax_p(s_p . i_q / temperature))``,

    where P are the links of the pairs' sketches with the pairs' images over their sums by row,
    and Q over those by column: a sample has as many positives as samples of the batch that it is
    linked with. Each epoch draws pairs anew, at least one for each linked sample. Where the
    modalities have as many features, their heads start equal, and so from the cosine of features.

    Parameters
    ----------
    width : int
        Hidden units of a head.
    dimension : int
        Length of the codes.
    temperature : float
        The smaller, the more the nearest of the other samples count.
    learning_rate : float
        Of Adam at the start; it falls to zero along a cosine.
    epochs : int
        Passes over the pairs.
    batch_size : int
        Pairs of a batch, at most: those of an epoch are divided evenly.
    weight_decay : float
        What a step takes of the weights, relative to the learning rate.
    dropout : float
        Share of the hidden units that a batch leaves out, below 1.
    device : str
        Where training runs, such as 'cpu' or 'cuda'. Codes are always computed on the processor.
    seed : int
        Seed of first weights, pairs, batches and dropout: the same one gives the same bytes on
        the processor.

    Raises
    ------
    InputError
        By `fit`, for a device that is not here, or a training that diverges.

    Notes
    -----
    van den Oord, Li, Vinyals, "Representation learning with contrastive predictive coding", 2018;
    symmetric as in Radford et al., "Learning transferable visual models from natural language
    supervision", ICML 2021; with several positives as in Khosla et al., "Supervised contrastive
    learning", NeurIPS 2020 (``L_out``). `history_` holds the mean loss of every epoch.
    """

    width: int = 512
    dimension: int = 256
    temperature: float = 0.2
    learning_rate: float = 1e-3
    epochs: int = 50
    batch_size: int = 256
    weight_decay: float = 1e-2
    dropout: float = 0.2
    device: str = "cpu"
    seed: int = 0

    def __post_init__(self) -> None:
        check_number("width", self.width, least=1, whole=True)
        check_number("dimension", self.dimension, least=1, whole=True)
        check_number("temperature", self.temperature, above=0)
        check_number("learning_rate", self.learning_rate, above=0)
        check_number("epochs", self.epochs, least=1, whole=True)
        check_number("batch_size", self.batch_size, least=2, whole=True)
        check_number("weight_decay", self.weight_decay, least=0)
        check_number("dropout", self.dropout, least=0)
        if self.dropout >= 1:
            raise InputError(f"dropout={self.dropout!r} must be a number of at least 0, below 1")
        check_device_name(self.device)
        check_number("seed", self.seed, least=0, whole=True)
        super().__post_init__()

    @property
    def uses_gpu(self) -> bool:
        """True if the heads are trained on a GPU."""
        return self.device != "cpu"

    def memory(self, n_sketches: int, n_images: int, dimensions: tuple[int, int]) -> int:
        """Bytes that `fit` needs at most, for features, weights and a batch."""
        sketch, image = dimensions
        values = n_sketches * sketch + n_images * image
        weights = self.width * (sum(dimensions) + 2 * self.dimension + 2)
        batch = self.batch_size * (sum(dimensions) + 8 * self.width + 8 * self.batch_size)
        return training_memory(2 * values + COPIES_OF_WEIGHTS * weights + batch)

    def _learn(
        self,
        sketches: Floating,
        images: Floating,
        sketch_labels: Labels,
        image_labels: Labels,
        links: Any,
    ) -> dict[str, NDArray[Any]]:
        check_device(self.device)
        linked = self._links(sketch_labels, image_labels, links)
        training = HeadTraining(self, (sketches, images), linked)
        training.run(self.epochs)
        self.history_ = {"loss": np.array(training.losses)}
        return training.learned()

    def _code(self, modality: Modality, prepared: Floating) -> Floating:
        U, u, W = (self._fitted(f"{modality}_{name}") for name in ("hidden", "bias", "output"))
        hidden = linear_codes(prepared, np.zeros(len(U)), U) + u.astype(prepared.dtype, copy=False)
        return linear_codes(np.maximum(hidden, 0), np.zeros(len(W)), W)
