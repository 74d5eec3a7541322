"""A vision transformer that is tuned a little: LayerNorm and prompts, the rest frozen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from cppcl.features.base import MIB, Memory, Picture
from cppcl.features.networks.encoder_extractors import TimmEncoder
from cppcl.features.networks.encoders import Pooling
from cppcl.features.networks.input import Framing, Preprocessing, prepare
from cppcl.features.networks.loading import NetworkNode, build, load_network
from cppcl.features.training.comparisons import LearnedByComparison
from cppcl.features.training.passes import COPIES_OF_WEIGHTS
from cppcl.modality import Modality
from cppcl.validation import check_number

if TYPE_CHECKING:
    from torch import Tensor, nn

    from cppcl.features.training.lesson import Lesson, Views
    from cppcl.features.training.sampling import Rows

ENCODER = "encoder"
BYTES_OF_A_TOKEN = 2 * 40 * 4
"""What a training step holds for each token, block and value: forty numbers, and as many again."""


@dataclass(frozen=True, kw_only=True)
class TunedTransformer(LearnedByComparison):
    """A vision transformer of timm, of which LayerNorms and prompts are learned.

    One encoder for both modalities. Gains and shifts of all LayerNorms are trained, and tokens
    that are put beside those of each picture; a thousandth of the weights. Each pass mirrors every
    other picture. Options that are not named are those of `LearnedByComparison` and
    `LearnedByPasses`.

    Parameters
    ----------
    network, weights, framing, pooling, side
        As of `timm`.
    prompts : int
        Tokens beside those of the picture, 0 for LayerNorms alone.

    Notes
    -----
    Prompts: Jia et al., "Visual prompt tuning", ECCV 2022 (there "shallow"). Prompts and
    LayerNorm for sketches: Sain et al., "CLIP for all things zero-shot sketch-based image
    retrieval", CVPR 2023; there a set of prompts and norms for each modality, and CLIP.
    """

    name: ClassVar[str] = "tuned_transformer"
    version: ClassVar[int] = 1

    network: str = "vit_small_patch14_dinov2.lvd142m"
    weights: str | None = None
    framing: Framing = "crop"
    pooling: Pooling = "model"
    side: int | None = None
    prompts: int = 3
    epochs: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("option prompts", self.prompts, least=0, whole=True)
        _ = self._frozen  # checks its options

    @property
    def _frozen(self) -> TimmEncoder:
        return TimmEncoder(
            network=self.network,
            weights=self.weights,
            framing=self.framing,
            pooling=self.pooling,
            side=self.side,
        )

    @property
    def dimension(self) -> int:
        """That of the encoder."""
        return self._frozen.dimension

    def parameters(self) -> dict[str, Any]:
        """Every option with its value; weights are named by their content."""
        return super().parameters() | {"weights": self._frozen.parameters()["weights"]}

    def networks(self) -> nn.ModuleDict:
        """The part of the encoder that is learned, around the frozen one."""
        from torch import nn

        from cppcl.features.trained.tokens import TunedTokens

        frozen = self._frozen
        loaded = load_network(frozen._target, frozen._weights_path)
        tokens = TunedTokens(loaded.module, loaded.preprocessing, self.prompts, self.pooling)
        return nn.ModuleDict({ENCODER: tokens})

    def n_weights(self) -> int:
        """Numbers of LayerNorms and prompts."""
        return _n_weights(self._frozen._target, self.prompts)

    def lesson(self, views: Mapping[Modality, Views], n_classes: int, device: str) -> Lesson:
        """Training pictures, every other one mirrored."""
        from cppcl.features.trained.tokens import MirroredLesson

        return MirroredLesson(views, n_classes, device)

    def seen(self, modality: Modality, pictures: Sequence[Picture]) -> NDArray[np.uint8]:
        """Pictures as the encoder takes them, but for means and deviations, (n, 3, side, side)."""
        form = replace(_preprocessing(self._frozen._target), mean=(0.0,) * 3, std=(1.0,) * 3)
        return np.stack(
            [np.rint(255 * prepare(p, form, self.framing)).astype(np.uint8) for p in pictures]
        )

    def codes(self, network: nn.ModuleDict, modality: Modality, pictures: Tensor) -> Tensor:
        """Codes of pictures, (n, dimension)."""
        from cppcl.features.training.losses import in_full

        return in_full(network[ENCODER](pictures))

    def loss(self, network: nn.ModuleDict, lesson: Lesson, rows: Rows) -> Tensor:
        """Mean loss of a batch of triplets, or of its pairs."""
        codes = [self.codes(network, m, lesson.pictures(m, r)) for m, r in self.drawn(rows)]
        return self.compared(codes, lesson, rows)

    def memory(self, longest_side: int) -> Memory:
        """What the frozen encoder needs."""
        return self._frozen.memory(longest_side)

    def memory_of_learning(self, n_pictures: int) -> int:
        """Bytes of pictures, of the encoder, and of a batch that remembers every block."""
        module, form = build(self._frozen._target)
        model = cast("Any", module)
        tokens = len(getattr(model, "blocks", ())) * (form.size // 14 + 1) ** 2
        batch = 3 * self.batch_size * tokens * self.dimension * BYTES_OF_A_TOKEN
        pictures = 3 * n_pictures * 3 * form.size**2
        weights = COPIES_OF_WEIGHTS * 4 * self.n_weights()
        return self.memory(512).model + pictures + weights + batch + 64 * MIB


@lru_cache
def _preprocessing(target: NetworkNode) -> Preprocessing:
    return build(target)[1]


@lru_cache
def _n_weights(target: NetworkNode, prompts: int) -> int:
    from cppcl.features.trained.tokens import TunedTokens
    from cppcl.features.training.loop import floating

    module, preprocessing = build(target)
    tuned = TunedTokens(module, preprocessing, prompts, target.pooling)
    return sum(tensor.numel() for tensor in floating(tuned))
