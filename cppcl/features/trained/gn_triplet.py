"""Two networks that share no weights, for sketches and colour photographs, by triplets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from cppcl.features.trained.architectures import FULL, SKETCH_A_NET, sketch_a_net
from cppcl.features.trained.inputs import SeenAs
from cppcl.features.trained.network import TrainedNetwork
from cppcl.features.training.sampling import Rows
from cppcl.modality import MODALITIES, Modality

if TYPE_CHECKING:
    from torch import Tensor, nn

    from cppcl.features.training.lesson import Lesson

CLASSES = "classes"
GOOGLENET_SIDE, POOL5 = 224, 1024
MARGIN = 15.0
CLASSES_WEIGHT = 10.0
AUXILIARY_WEIGHT = 0.3


@dataclass(frozen=True, kw_only=True)
class GoogLeNetTriplet(TrainedNetwork):
    r"""Two GoogLeNets that share no weights, triplet and class losses; pool5, 1024 values.

    Photographs go in as they are. A triplet of codes costs
    :math:`\max(0, 15 + |s - p|^2 - |s - n|^2)`; added are ten times the cross-entropy of the
    classes of sketch s and photograph p, by one classifier for both, and 0.3 times the triplets on
    each of GoogLeNet's auxiliary heads. Size 'small' has two Sketch-a-Nets of the reduced size, of
    128 values, in place of GoogLeNets.

    After Sangkloy, Burnell, Ham and Hays, "The Sketchy database", SIGGRAPH 2016; layers, losses
    and weights are those of the public training files. Our reading: the triplet on pool5 itself,
    as the publication compares these values, where the files have a full layer of 2 outputs;
    negatives of other classes throughout; batch normalisation (torchvision's GoogLeNet), AdamW,
    and no first weights of another training.
    """

    name: ClassVar[str] = "gn_triplet"
    version: ClassVar[int] = 1
    sees: ClassVar[dict[Modality, SeenAs]] = {"sketch": "strokes", "image": "colours"}
    tied: ClassVar[bool] = False

    @property
    def side(self) -> int:
        """Side of the input, pixels: 224 or 96."""
        return GOOGLENET_SIDE if self.size == "paper" else SKETCH_A_NET[self.size][0]

    @property
    def dimension(self) -> int:
        """1024 or 128."""
        return POOL5 if self.size == "paper" else FULL[self.size]

    def build_branch(self, channels: int) -> nn.Module:
        """GoogLeNet as far as pool5, with its auxiliary heads as far as their 1024 values."""
        if self.size == "small":
            return sketch_a_net(self.size, self.dimension).build(channels)
        from torch import nn
        from torchvision.models import GoogLeNet

        network = GoogLeNet(num_classes=1, aux_logits=True, init_weights=False)
        first = network.conv1.conv
        if channels != first.in_channels:
            network.conv1.conv = nn.Conv2d(channels, 64, 7, stride=2, padding=3, bias=False)
        network.fc = nn.Identity()
        for head in (network.aux1, network.aux2):
            head.fc2 = nn.Identity()
        branch: nn.Module = network
        return branch

    def build_heads(self, n_classes: int) -> dict[str, nn.Module]:
        """The classifier that both branches share."""
        from torch import nn

        return {CLASSES: nn.Linear(self.dimension, n_classes)}

    def loss(self, network: nn.ModuleDict, lesson: Lesson, rows: Rows) -> Tensor:
        """Triplet losses and cross-entropy, each with its weight."""
        import torch
        from torch.nn.functional import cross_entropy

        from cppcl.features.training.losses import in_full, triplet_loss

        n = len(rows)
        seen = {
            "sketch": lesson.pictures("sketch", rows[:, 0]),
            "image": lesson.pictures("image", rows[:, 1:].T.ravel()),
        }
        sketches, images = (outputs(network[m](seen[m])) for m in MODALITIES)
        triplets = [
            triplet_loss(in_full(s), in_full(both[:n]), in_full(both[n:]), MARGIN)
            for s, both in zip(sketches, images, strict=True)
        ]
        scores = in_full(network[CLASSES](torch.cat([sketches[0], images[0][:n]])))
        classes = torch.cat(
            [lesson.classes("sketch", rows[:, 0]), lesson.classes("image", rows[:, 1])]
        )
        auxiliary = sum(triplets[1:], start=torch.zeros((), device=lesson.device))
        return (
            triplets[0]
            + AUXILIARY_WEIGHT * auxiliary
            + CLASSES_WEIGHT * cross_entropy(scores, classes)
        )


def outputs(found: Tensor | tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Output of a branch, followed by those of its auxiliary heads while GoogLeNet trains."""
    return found if isinstance(found, tuple) else (found,)
