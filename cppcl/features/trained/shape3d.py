"""Two Siamese networks, one a modality, with losses within and across."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from cppcl.features.trained.architectures import SHAPE_3D
from cppcl.features.trained.network import TrainedNetwork
from cppcl.features.training.sampling import Partners, Rows, in_batches
from cppcl.modality import MODALITIES, Modality

if TYPE_CHECKING:
    from torch import Tensor, nn

    from cppcl.features.training.lesson import Lesson


@dataclass(frozen=True, kw_only=True)
class Shape3D(TrainedNetwork):
    r"""Two Siamese networks that share no weights, losses within and across: codes of 64 values.

    Of two sketches and two images, :math:`L = l(s_1, s_2) + l(v_1, v_2) + l(s_1, v_1)`. With D the
    L1 distance of two codes, :math:`l = D^2 / C_p` if they are of one class and
    :math:`l = C_n \exp(-2.77 D / C_n)` if not; :math:`C_p = 0.2` and :math:`C_n = 10`.

    After Wang, Kang and Li, "Sketch-based 3D shape retrieval using convolutional neural networks",
    CVPR 2015, where v are line renderings of a shape; here they are edges of photographs. All of
    it is our reading: three convolutions of 5 x 5 with pooling by 4, 2 and 2 on 100 x 100 pixels;
    outputs divided by 64, so that the constants fit first weights; four pictures are all of one
    class, or the two of each pair are of different classes; every sketch comes first once a pass,
    half of them in either kind; batch normalisation and AdamW.
    """

    name: ClassVar[str] = "shape3d"
    version: ClassVar[int] = 1
    tied: ClassVar[bool] = False

    epochs: int = 25

    @property
    def side(self) -> int:
        """Side of the input, 100 pixels."""
        return SHAPE_3D[self.size].side

    @property
    def dimension(self) -> int:
        """64."""
        return SHAPE_3D[self.size].full[-1]

    def build_branch(self, channels: int) -> nn.Module:
        """Three convolutions and a full layer."""
        return SHAPE_3D[self.size].build(channels)

    def codes(self, network: nn.ModuleDict, modality: Modality, pictures: Tensor) -> Tensor:
        """Codes of pictures, (n, 64), so scaled that first distances are about 1."""
        return super().codes(network, modality, pictures) / self.dimension

    def batches(self, lesson: Lesson, rng: np.random.Generator) -> list[Rows]:
        """Rows of two sketches and two images, and 0 where they are of one class, else 1."""
        sketches, images = (lesson.views[modality].targets for modality in MODALITIES)
        across, within = Partners(sketches, images), Partners(sketches, sketches)
        first = rng.permutation(across.sketches)
        differ = np.arange(len(first)) % 2  # as many of either kind
        same, other = across.same(first, rng), across.other(first, rng)
        alike = [first, within.same(first, rng), same, across.same(first, rng), differ]
        apart = [first, within.other(first, rng), other, same, differ]
        chosen = np.where(differ, np.stack(apart), np.stack(alike)).T
        return in_batches(rng.permutation(chosen), self.batch_size)

    def loss(self, network: nn.ModuleDict, lesson: Lesson, rows: Rows) -> Tensor:
        """Losses within sketches, within images and across."""
        import torch

        from cppcl.features.training.losses import exponential_loss

        s1, s2 = self.codes(
            network, "sketch", lesson.pictures("sketch", rows[:, :2].T.ravel())
        ).chunk(2)
        v1, v2 = self.codes(
            network, "image", lesson.pictures("image", rows[:, 2:4].T.ravel())
        ).chunk(2)
        differ = torch.from_numpy(rows[:, 4] > 0).to(lesson.device)
        pairs = (s1, s2), (v1, v2), (s1, v1)
        within, among, across = (exponential_loss(*pair, differ) for pair in pairs)
        return within + among + across
