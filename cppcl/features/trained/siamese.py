"""A network with tied weights for sketches and edges of photographs, by pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from cppcl.features.trained.architectures import FULL, SKETCH_A_NET, sketch_a_net
from cppcl.features.trained.network import TrainedNetwork
from cppcl.features.training.sampling import Rows
from cppcl.modality import Modality

if TYPE_CHECKING:
    from torch import Tensor, nn

    from cppcl.features.training.lesson import Lesson

DIMENSION = 64
MARGIN = 1.0


@dataclass(frozen=True, kw_only=True)
class Siamese(TrainedNetwork):
    r"""Siamese network on sketches and edge maps, contrastive loss, unit codes of 64 values.

    Both modalities go through one network; with D the distance of two codes, a pair costs
    :math:`D^2 / 2` if it is of one class and :math:`\max(0, 1 - D)^2 / 2` if not. Each pass has
    for every sketch one image of its class and one of another.

    After Qi, Song, Zhang and Liu, "Sketch-based image retrieval via Siamese convolutional neural
    network", ICIP 2016, of which 64 values and the tied weights are sure. Our reading: the
    convolutions of Sketch-a-Net (`cppcl.features.trained.san`), a full layer, and one of 64 values
    scaled to unit length; margin 1; batch normalisation and AdamW.
    """

    name: ClassVar[str] = "siamese"
    version: ClassVar[int] = 1

    epochs: int = 30
    learning_rate: float = 2e-3

    @property
    def side(self) -> int:
        """Side of the input, pixels: 225 or 96."""
        return SKETCH_A_NET[self.size][0]

    @property
    def dimension(self) -> int:
        """64."""
        return DIMENSION

    def build_branch(self, channels: int) -> nn.Module:
        """Sketch-a-Net's convolutions and two full layers, the last of 64 values."""
        widths = FULL[self.size], DIMENSION
        return sketch_a_net(self.size, *widths, linear=True).build(channels)

    def codes(self, network: nn.ModuleDict, modality: Modality, pictures: Tensor) -> Tensor:
        """Unit codes of pictures, (n, 64)."""
        from torch.nn.functional import normalize

        return normalize(super().codes(network, modality, pictures), dim=1)

    def loss(self, network: nn.ModuleDict, lesson: Lesson, rows: Rows) -> Tensor:
        """Contrastive loss of as many pairs of one class as of two."""
        from cppcl.features.training.losses import contrastive_loss_of_pairs, squared_distance

        sketches, same, other = self.triplet_codes(network, lesson, rows)
        return contrastive_loss_of_pairs(
            squared_distance(sketches, same), squared_distance(sketches, other), MARGIN
        )
