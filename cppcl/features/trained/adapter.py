"""A small residual head on the frozen features of any extractor."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import InputError
from cppcl.features.base import Extractor, Memory, Picture
from cppcl.features.combination import WEIGHTS, CombinedExtractor
from cppcl.features.layers import Layer, Numbers, Tiles
from cppcl.features.trained.kept_rows import MOST_BYTES, KeptRows
from cppcl.features.training.comparisons import LearnedByComparison
from cppcl.features.training.passes import COPIES_OF_WEIGHTS
from cppcl.features.training.sampling import Rows
from cppcl.modality import MODALITIES, Modality
from cppcl.validation import check_flag, check_number

if TYPE_CHECKING:
    from torch import Tensor, nn

    from cppcl.features.training.lesson import Lesson, Views

HEAD = "head"
ROWS = KeptRows()
"""Frozen features of this process."""


@dataclass(frozen=True, kw_only=True)
class Adapter(LearnedByComparison):
    r"""Frozen features, and what a small residual head adds to them.

    With x the features of a picture, signed powers of their values, of unit length, less the mean
    of the training features of its modality, and again of unit length, the code is

    .. math:: x + W \max(0, U x + u),

    where U, u and W are learned and W begins at zero: training begins at the frozen features.
    While it learns, shares of x and of the hidden units are left out at random.

    Parameters
    ----------
    features : str
        Extractor whose features are adapted, or a combination (``cnn+cnn_lite1+hog``); one that
        learns nothing. Vectors of the parts are treated each for itself.
    options : mapping or None
        Its options, where they are not the usual ones.
    image_options : mapping or None
        Those for images, where they differ, such as contours of `line_hog`. Parts have the same
        numbers of values and the same weights.
    power : float
        Exponent of the values of the features, whose signs stay.
    shared : bool
        True for one head, false for one a modality; these begin equal.
    separate : bool
        True for a head for each part of a combination, which learns on that part alone. Codes of
        the parts are then spaces of their own, as ``composition.spaces`` takes them.
    n_components : int or None
        Most principal axes of the training features, of both modalities together, that a head
        sees and moves codes along; all values if None. Dropout then leaves out axes, which few
        samples of many values are learned by heart without.
    width : int
        Hidden units of a head.
    dropout : float
        Share of the features, and half as large a share of the hidden units, that a step leaves
        out, below 1.
    keep : float
        Weight of the squared length of what the head adds: large values stay near the frozen
        features, which is what classes that were never seen want.

    Notes
    -----
    Residual heads on frozen features: Gao et al., "CLIP-Adapter", IJCV 2024; there the share of
    the head is fixed, here `keep` bounds it. Options that are not named are those of
    `LearnedByComparison` and `LearnedByPasses`.
    """

    name: ClassVar[str] = "adapter"
    version: ClassVar[int] = 1
    make: ClassVar[Callable[[str, Mapping[str, Any]], Extractor]]
    """Makes an extractor by its name and options; the registry says how."""

    features: str = "cnn"
    options: Mapping[str, Any] | None = None
    image_options: Mapping[str, Any] | None = None
    power: float = 0.5
    shared: bool = True
    separate: bool = False
    n_components: int | None = None
    width: int = 256
    dropout: float = 0.5
    keep: float = 0.0
    epochs: int = 30
    batch_size: int = 128

    def __post_init__(self) -> None:
        for option in ("options", "image_options"):
            given = getattr(self, option)
            if not isinstance(given, Mapping | None):
                raise InputError(f"option {option}={given!r} must be options by name")
        check_number("option power", self.power, above=0, most=1)
        check_flag("option shared", self.shared)
        check_flag("option separate", self.separate)
        if self.n_components is not None:
            check_number("option n_components", self.n_components, least=1, whole=True)
        check_number("option width", self.width, least=1, whole=True)
        check_number("option dropout", self.dropout, least=0, most=0.9)
        check_number("option keep", self.keep, least=0)
        super().__post_init__()
        for modality in MODALITIES:
            base = self._make_base(modality)
            if base.learns or not base.takes_pictures:
                raise InputError(
                    f"option features={self.features!r} "
                    + ("learns from pictures itself" if base.learns else "takes no pictures")
                    + "; adapt an extractor of pictures that learns nothing, such as 'cnn'"
                )

    def _make_base(self, modality: Modality) -> Extractor:
        is_own = modality == "image" and self.image_options is not None
        option = "image_options" if is_own else "options"
        try:
            return type(self).make(self.features, getattr(self, option) or {})
        except InputError as error:
            raise InputError(
                f"options features={self.features!r:.80} and {option}: {error}"
            ) from error

    def _base(self, modality: Modality) -> Extractor:
        if modality not in self._built:
            self._built[modality] = self._make_base(modality)
        return cast("Extractor", self._built[modality])

    @property
    def dimension(self) -> int:
        """That of the frozen features."""
        return self._base("sketch").dimension

    def n_weights(self) -> int:
        """Numbers of the heads and means."""
        most, total = self.n_components, 2 * self.dimension
        for d in self.spaces.values():
            n = d if most is None else min(most, d)
            axes = 0 if most is None else d * n
            total += (1 if self.shared else 2) * (axes + (2 * n + 1) * self.width)
        return total

    @property
    def spaces(self) -> dict[str, int]:
        """Name and width of each part where their heads are separate, or of the whole."""
        if not self.separate:
            return super().spaces
        parts = parts_of(self._base("sketch"))
        return {f"{self.name} of {part.name}": part.dimension for part in parts}

    def parameters(self) -> dict[str, Any]:
        """Every option with its value; frozen features are told by all of theirs."""
        sketch, image = (self._base(m) for m in MODALITIES)
        widths = [[part.dimension for part in parts_of(base)] for base in (sketch, image)]
        weights = [weights_of(base) for base in (sketch, image)]
        for what, of_sketches, of_images in (
            ("numbers of values", *widths),
            ("weights", *weights),
        ):
            if of_sketches != of_images:
                raise InputError(
                    f"option image_options: {what} of the parts are {of_images}, and those of "
                    f"sketches {of_sketches}; give both the same"
                )
        told = {
            option: {**base.parameters(), "version": base.version}
            for option, base in (("options", sketch), ("image_options", image))
        }
        return super().parameters() | told

    def networks(self) -> nn.ModuleDict:
        """What centres the features of each modality, and the heads."""
        from torch import nn

        from cppcl.features.trained.heads import Centring, ResidualHead, SeparateHeads

        base = self._base("sketch")
        weights = weights_of(base)
        widths = [part.dimension for part in parts_of(base)]
        found = nn.ModuleDict({f"{m} mean": Centring(widths, weights) for m in MODALITIES})
        first: nn.Module
        if self.separate:
            first = SeparateHeads(widths, weights, self.width, self.dropout, self.n_components)
        else:
            first = ResidualHead(self.dimension, self.width, self.dropout, self.n_components)
        found[HEAD if self.shared else f"sketch {HEAD}"] = first
        if not self.shared:
            found[f"image {HEAD}"] = copy.deepcopy(first)
        return found

    def prepare(self, network: nn.ModuleDict, views: Mapping[Modality, Views]) -> None:
        """Take the means of the training features, and principal axes where they are wanted."""
        import torch

        centred = []
        for modality in MODALITIES:
            centring, maps = cast("Any", network[f"{modality} mean"]), views[modality].maps
            centring.mean.copy_(torch.from_numpy(maps.mean(axis=0)))
            centred.append(centring(torch.from_numpy(maps)))
        if self.n_components is not None:
            both = torch.cat(centred)
            for name in [HEAD] if self.shared else [f"{m} {HEAD}" for m in MODALITIES]:
                cast("Any", network[name]).look_at(both)

    def lesson(self, views: Mapping[Modality, Views], n_classes: int, device: str) -> Lesson:
        """Training features, by batches."""
        from cppcl.features.trained.heads import FeatureLesson

        return FeatureLesson(views, n_classes, device)

    def seen(self, modality: Modality, pictures: Sequence[Picture]) -> NDArray[np.float32]:
        """Powers of the frozen features of pictures, each block of unit length, (n, d)."""
        base = self._base(modality)
        told = json.dumps([self.features, base.version, base.parameters()], sort_keys=True)
        rows = ROWS.transform(base, told.encode(), pictures)
        powers: NDArray[np.float32] = np.sign(rows) * np.abs(rows) ** np.float32(self.power)
        widths = [part.dimension for part in parts_of(base)]
        for block in np.split(powers, np.cumsum(widths)[:-1], axis=1):  # views of the rows
            norms = np.linalg.norm(block, axis=1, keepdims=True)
            block /= np.where(norms, norms, 1)
        return powers

    def as_input(self, seen: NDArray[Any], device: str) -> Tensor:
        """Features as a tensor."""
        import torch

        return torch.from_numpy(seen).to(device)

    def codes(self, network: nn.ModuleDict, modality: Modality, pictures: Tensor) -> Tensor:
        """Features and what the head adds, (n, dimension)."""
        given, added = self._added(network, modality, pictures)
        return given + added

    def _added(
        self, network: nn.ModuleDict, modality: Modality, rows: Tensor
    ) -> tuple[Tensor, Tensor]:
        centring = cast("Any", network[f"{modality} mean"])
        given = centring(rows)
        return given, network[HEAD if self.shared else f"{modality} {HEAD}"](given)

    def loss(self, network: nn.ModuleDict, lesson: Lesson, rows: Rows) -> Tensor:
        """Mean loss of a batch of triplets, or of its pairs, over the spaces."""
        import torch

        widths = list(self.spaces.values())
        both = [
            self._added(network, m, lesson.pictures(m, chosen)) for m, chosen in self.drawn(rows)
        ]
        codes = [torch.split(given + added, widths, dim=1) for given, added in both]
        losses = [self.compared(list(of_one), lesson, rows) for of_one in zip(*codes, strict=True)]
        loss = torch.stack(losses).mean()
        if self.keep:
            lengths = [added.pow(2).sum(dim=1).mean() for _, added in both]
            loss = loss + self.keep * sum(lengths) / len(lengths)
        return loss

    def explain(self, picture: Picture) -> list[Layer]:
        """What the frozen features see, without their numbers."""
        layers = self._base(self._modality).explain(picture)
        return [layer for layer in layers if not isinstance(layer, Numbers | Tiles)]

    def memory(self, longest_side: int) -> Memory:
        """What the frozen features need, with PyTorch and those that are kept."""
        base = self._base(self._modality).memory(longest_side)
        model = max(self.libraries, base.model) + 4 * self.n_weights() + MOST_BYTES
        return Memory(model, base.working)

    def memory_of_learning(self, n_pictures: int) -> int:
        """Bytes of the frozen features of all pictures, of the heads and of a batch."""
        d = self.dimension
        rows = 3 * n_pictures * d * 4 + 32 * self.batch_size * (d + self.width) * 4
        return self.memory(512).model + COPIES_OF_WEIGHTS * 4 * self.n_weights() + rows


def parts_of(extractor: Extractor) -> tuple[Extractor, ...]:
    """Parts of a combination, or the extractor alone."""
    return extractor.parts if isinstance(extractor, CombinedExtractor) else (extractor,)


def weights_of(extractor: Extractor) -> list[float]:
    """Weight of each part of a combination; 1 of an extractor alone."""
    is_combined = isinstance(extractor, CombinedExtractor)
    return list(extractor.parameters()[WEIGHTS]) if is_combined else [1.0]
