"""What the networks that are trained here have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from cppcl.features.base import MIB, Memory, Picture
from cppcl.features.contours.detection import check_contours
from cppcl.features.layers import Layer, Seen
from cppcl.features.trained.inputs import SeenAs, seen_by_network
from cppcl.features.training.passes import COPIES_OF_WEIGHTS, LearnedByPasses
from cppcl.features.training.sampling import Rows
from cppcl.modality import MODALITIES, Modality
from cppcl.validation import check_choice, check_number

if TYPE_CHECKING:
    from torch import Tensor, nn

    from cppcl.features.training.lesson import Lesson

Size = Literal["small", "paper"]
SHARED = "shared"
"""Name of the branch of a network with one set of weights."""
EDGES = ("canny", "colour_canny")
"""What finds edges of photographs without a network."""


@dataclass(frozen=True, kw_only=True)
class TrainedNetwork(LearnedByPasses, ABC):
    """Base of the networks that learn from the labelled pictures of a split.

    A subclass has layers, a loss and what a batch is made of; the pictures are here. Options that
    are not named are those of `LearnedByPasses`.

    Parameters
    ----------
    size : {'small', 'paper'}
        'paper' has the layers of the publication and wants a GPU; 'small' trains in minutes on a
        core.
    contours : str
        What finds edges of photographs: 'colour_canny', edges of its colours; 'canny', edges of
        its grey values; or the path of a network, as of `hog`.
    threshold : float
        Value of the network's map, in (0, 1], from which on a pixel is an edge.
    """

    sees: ClassVar[dict[Modality, SeenAs]] = {"sketch": "strokes", "image": "edges"}
    """What it sees of the pictures of a modality."""
    tied: ClassVar[bool] = True
    """True if both modalities go through one set of weights."""

    size: Size = "small"
    contours: str = "colour_canny"
    threshold: float = 0.5

    def __post_init__(self) -> None:
        check_choice("option size", self.size, Size)
        check_contours(self.contours, EDGES)
        check_number("option threshold", self.threshold, above=0, most=1)
        super().__post_init__()

    @property
    @abstractmethod
    def side(self) -> int:
        """Side of what a branch sees, pixels."""

    @abstractmethod
    def build_branch(self, channels: int) -> nn.Module:
        """Network of one modality, from (n, channels, side, side), with new weights."""

    def codes(self, network: nn.ModuleDict, modality: Modality, pictures: Tensor) -> Tensor:
        """Codes of pictures, (n, dimension)."""
        from cppcl.features.training.losses import in_full

        return in_full(network[SHARED if self.tied else modality](pictures))

    def triplet_codes(
        self, network: nn.ModuleDict, lesson: Lesson, rows: Rows
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Codes of the sketches of triplets, and of their images of the same and another class."""
        import torch

        sketches = lesson.pictures("sketch", rows[:, 0])
        images = lesson.pictures("image", rows[:, 1:].T.ravel())
        if self.tied:
            # One batch, so that normalisation sees both modalities, as it does afterwards.
            codes = self.codes(network, "sketch", torch.cat([sketches, images]))
        else:
            codes = torch.cat(
                [self.codes(network, "sketch", sketches), self.codes(network, "image", images)]
            )
        first, same, other = codes.chunk(3)
        return first, same, other

    def networks(self) -> nn.ModuleDict:
        """Branches with new weights."""
        from torch import nn

        if self.tied:
            return nn.ModuleDict({SHARED: self.build_branch(1)})
        channels = {m: 3 if self.sees[m] == "colours" else 1 for m in MODALITIES}
        return nn.ModuleDict({m: self.build_branch(channels[m]) for m in MODALITIES})

    def n_weights(self) -> int:
        """Numbers of the branches."""
        return _n_weights(type(self), self.size)

    def parameters(self) -> dict[str, Any]:
        """Every option with its value; a network of contours is named by its content."""
        options = super().parameters()
        if self.contours not in EDGES:
            from pathlib import Path

            from cppcl.features.contours.network import network_identity

            options["contours"] = network_identity(Path(self.contours))
        return options

    def explain(self, picture: Picture) -> list[Layer]:
        """Show what the network sees."""
        seen = self._seen(self._modality, picture)
        shown = 1 - seen[0] / 255 if len(seen) == 1 else 255 - seen.transpose(1, 2, 0)
        return [Seen(f"input, {self.side} x {self.side}", shown)]

    def memory(self, longest_side: int) -> Memory:
        """Libraries and weights, and what a network holds of a picture."""
        usual = super().memory(longest_side)
        n = {"small": 2, "paper": 64}[self.size] * MIB
        return Memory(usual.model + 4 * n, usual.working + 2 * n)

    def memory_of_learning(self, n_pictures: int) -> int:
        """Bytes of pictures, of weights with what the optimiser keeps, and of a batch."""
        weights = COPIES_OF_WEIGHTS * 4 * self.shapes["weights"][0]
        layers = {"small": 4, "paper": 32}[self.size] * MIB  # of a picture, with gradients
        pictures = 3 * n_pictures * self.side**2 * 2
        return self.libraries + weights + pictures + 4 * self.batch_size * layers

    def seen(self, modality: Modality, pictures: Sequence[Picture]) -> NDArray[np.uint8]:
        """Lines or colours of pictures, (n, c, side, side)."""
        return np.stack([self._seen(modality, picture) for picture in pictures])

    def are_drawn(self, modality: Modality) -> bool:
        """True for strokes of sketches."""
        return self.sees[modality] == "strokes"

    def _seen(self, modality: Modality, picture: Picture) -> NDArray[np.uint8]:
        return seen_by_network(
            picture,
            self.sees[modality],
            self.side,
            contours=self.contours,
            threshold=self.threshold,
        )


@lru_cache
def _n_weights(network: type[TrainedNetwork], size: Size) -> int:
    """Numbers that a network learns, found without computing."""
    import torch

    from cppcl.features.training.loop import floating

    with torch.device("meta"):
        return sum(tensor.numel() for tensor in floating(network(size=size).networks()))
