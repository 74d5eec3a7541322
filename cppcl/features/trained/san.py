"""Sketch-a-Net: a classifier of sketches, whose last hidden layer describes pictures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from cppcl.features.trained.architectures import FULL, SKETCH_A_NET, sketch_a_net
from cppcl.features.trained.network import SHARED, TrainedNetwork
from cppcl.features.training.sampling import Rows, in_batches

if TYPE_CHECKING:
    from torch import Tensor, nn

    from cppcl.features.training.lesson import Lesson

CLASSES = "classes"
DROPOUT = {"paper": 0.5, "small": 0.0}
"""Of layers 6 and 7; a few values cannot spare any."""


@dataclass(frozen=True, kw_only=True)
class SketchANet(TrainedNetwork):
    r"""Sketch-a-Net, trained to tell the classes of sketches: layer 7, 512 values or 128.

    It learns from sketches alone, by cross-entropy; photographs go in as edge maps, so that layer
    7 describes both. Where an instance is the class, as in the protocol of instances, each may
    have a single sketch, and the network learns to know it however it is changed.

    After Yu, Yang, Song, Xiang and Hospedales, "Sketch-a-Net that beats humans", BMVC 2015, and
    IJCV 2017: kernels, strides, maps and widths of size 'paper' are those of a public model. Our
    reading: one channel, where the whole method has six by drawing order and five networks that
    are fused; batch normalisation and first weights of He et al., as the published start stays
    where it is; AdamW for SGD; lines cropped to their box for a crop of 225 of 256 pixels.
    """

    name: ClassVar[str] = "san"
    version: ClassVar[int] = 1

    epochs: int = 100

    @property
    def side(self) -> int:
        """Side of the input, pixels: 225 or 96."""
        return SKETCH_A_NET[self.size][0]

    @property
    def dimension(self) -> int:
        """Width of layer 7: 512 or 128."""
        return FULL[self.size]

    def build_branch(self, channels: int) -> nn.Module:
        """Layers 1 to 7."""
        width = FULL[self.size]
        return sketch_a_net(self.size, width, width, dropout=DROPOUT[self.size]).build(channels)

    def build_heads(self, n_classes: int) -> dict[str, nn.Module]:
        """Layer 8, one value a class."""
        from torch import nn

        return {CLASSES: nn.Linear(self.dimension, n_classes)}

    def batches(self, lesson: Lesson, rng: np.random.Generator) -> list[Rows]:
        """Every sketch once."""
        n = len(lesson.views["sketch"].targets)
        return in_batches(rng.permutation(n)[:, None], self.batch_size)

    def loss(self, network: nn.ModuleDict, lesson: Lesson, rows: Rows) -> Tensor:
        """Cross-entropy of the classes of sketches."""
        from torch.nn.functional import cross_entropy

        from cppcl.features.training.losses import in_full

        scores = network[CLASSES](network[SHARED](lesson.pictures("sketch", rows[:, 0])))
        return cross_entropy(in_full(scores), lesson.classes("sketch", rows[:, 0]))
