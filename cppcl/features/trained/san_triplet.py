"""Sketch-a-Net's layers for sketches and edges of photographs, by triplets."""

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

DIMENSION = {"paper": 256, "small": 64}
MARGIN = 0.3


@dataclass(frozen=True, kw_only=True)
class SketchANetTriplet(TrainedNetwork):
    r"""Sketch-a-Net's layers, one set of weights, triplet loss: unit codes of 256 or 64 values.

    A sketch a, the edges p of an image of its class and the edges n of one of another class cost
    :math:`\max(0, 0.3 + |a - p|^2 - |a - n|^2)`. Each pass has one triplet for every sketch.

    Layers, margin and loss of size 'paper' are those of the public training file of Yu, Liu, Song,
    Xiang, Hospedales and Loy, "Sketch me that shoe", CVPR 2016, whose photographs go in as edge
    maps too. There three of four negatives come from people's answers; ours are drawn. Our
    reading besides: as of `cppcl.features.trained.san`.
    """

    name: ClassVar[str] = "san_triplet"
    version: ClassVar[int] = 1

    @property
    def side(self) -> int:
        """Side of the input, pixels: 225 or 96."""
        return SKETCH_A_NET[self.size][0]

    @property
    def dimension(self) -> int:
        """256 or 64."""
        return DIMENSION[self.size]

    def build_branch(self, channels: int) -> nn.Module:
        """Layers 1 to 6, and a full layer."""
        widths = FULL[self.size], self.dimension
        return sketch_a_net(self.size, *widths, linear=True).build(channels)

    def codes(self, network: nn.ModuleDict, modality: Modality, pictures: Tensor) -> Tensor:
        """Unit codes of pictures, (n, dimension)."""
        from torch.nn.functional import normalize

        return normalize(super().codes(network, modality, pictures), dim=1)

    def loss(self, network: nn.ModuleDict, lesson: Lesson, rows: Rows) -> Tensor:
        """Triplet loss."""
        from cppcl.features.training.losses import triplet_loss

        return triplet_loss(*self.triplet_codes(network, lesson, rows), MARGIN)
