"""What the networks that are trained here have in common."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import InputError
from cppcl.features.base import MIB, Drawing, Labelled, Memory, Picture
from cppcl.features.contours.detection import check_contours
from cppcl.features.layers import Layer, Seen
from cppcl.features.learning import CrossModalExtractor
from cppcl.features.stateless import check_picture
from cppcl.features.trained.inputs import SeenAs, seen_by_network
from cppcl.features.trained.sampling import Partners, Rows, held_out_rows, in_batches
from cppcl.learning.resuming import digest_of
from cppcl.modality import MODALITIES, Modality
from cppcl.validation import check_choice, check_number

if TYPE_CHECKING:
    from torch import Tensor, nn

    from cppcl.features.trained.lesson import Lesson, Views

Size = Literal["small", "paper"]
SHARED = "shared"
"""Name of the branch of a network with one set of weights."""
EDGES = ("canny", "colour_canny")
"""What finds edges of photographs without a network."""
MICRO_BATCH = {"cpu": 1, "cuda": 32}
"""Pictures that are described together: each sees the same kernels, however many come with it."""
COPIES_OF_WEIGHTS = 8
"""Weights, gradient, two moments, the best ones so far, a checkpoint, and room for a step."""


@dataclass(frozen=True, kw_only=True)
class TrainedNetwork(CrossModalExtractor, ABC):
    """Base of the networks that learn from the labelled pictures of a split.

    A subclass has layers, a loss and what a batch is made of; the loop, the pictures and what is
    kept are here.

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
    epochs : int
        Passes over the training pictures, at most.
    minutes : float or None
        Time after which no further pass begins. What is learned then depends on how fast the
        machine is; None for no limit.
    batch_size : int
        Sketches of a batch, at most: those of a pass are divided evenly.
    learning_rate : float
        Of AdamW at the start; it falls to zero along a cosine.
    weight_decay : float
        What a step takes of the weights, relative to the learning rate.
    held_out : float
        Share of the training classes, or of the samples of each where these are few, by which the
        best pass is chosen; 0 takes the last one.
    patience : int
        Passes without a better one after which training stops.
    seed : int
        Of first weights, batches, changes of pictures and dropout.
    """

    name: ClassVar[str]
    version: ClassVar[int]
    device: ClassVar[Literal["cpu", "gpu"]] = "gpu"
    libraries: ClassVar[int] = 704 * MIB  # with PyTorch
    sees: ClassVar[dict[Modality, SeenAs]] = {"sketch": "strokes", "image": "edges"}
    """What it sees of the pictures of a modality."""
    tied: ClassVar[bool] = True
    """True if both modalities go through one set of weights."""

    size: Size = "small"
    contours: str = "colour_canny"
    threshold: float = 0.5
    epochs: int = 40
    minutes: float | None = None
    batch_size: int = 16
    learning_rate: float = 1e-3
    weight_decay: float = 1e-2
    held_out: float = 0.1
    patience: int = 20
    seed: int = 0

    _built: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_choice("option size", self.size, Size)
        check_contours(self.contours, EDGES)
        check_number("option threshold", self.threshold, above=0, most=1)
        check_number("option epochs", self.epochs, least=1, whole=True)
        if self.minutes is not None:
            check_number("option minutes", self.minutes, above=0)
        check_number("option batch_size", self.batch_size, least=2, whole=True)
        check_number("option learning_rate", self.learning_rate, above=0)
        check_number("option weight_decay", self.weight_decay, least=0)
        check_number("option held_out", self.held_out, least=0, most=0.5)
        check_number("option patience", self.patience, least=1, whole=True)
        check_number("option seed", self.seed, least=0, whole=True)

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Length of a code."""

    @property
    @abstractmethod
    def side(self) -> int:
        """Side of what a branch sees, pixels."""

    @abstractmethod
    def build_branch(self, channels: int) -> nn.Module:
        """Network of one modality, from (n, channels, side, side), with new weights."""

    def build_heads(self, n_classes: int) -> dict[str, nn.Module]:
        """Layers that only training needs; here none."""
        return {}

    def batches(self, lesson: Lesson, rng: np.random.Generator) -> list[Rows]:
        """Rows of each batch of a pass; here triplets of a sketch and two images."""
        targets = [lesson.views[modality].targets for modality in MODALITIES]
        return in_batches(Partners(*targets).triplets(rng), self.batch_size)

    @abstractmethod
    def loss(self, network: nn.ModuleDict, lesson: Lesson, rows: Rows) -> Tensor:
        """Mean loss of a batch."""

    def codes(self, network: nn.ModuleDict, modality: Modality, pictures: Tensor) -> Tensor:
        """Codes of pictures, (n, dimension)."""
        from cppcl.features.trained.losses import in_full

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

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Weights, and loss and held-out score of each pass, NaN where there was none."""
        return {"weights": (_n_weights(type(self), self.size),), "history": (self.epochs, 2)}

    def parameters(self) -> dict[str, Any]:
        """Every option with its value; a network of contours is named by its content."""
        options = super().parameters()
        if self.contours not in EDGES:
            from pathlib import Path

            from cppcl.features.contours.network import network_identity

            options["contours"] = network_identity(Path(self.contours))
        return options

    def fit_both(
        self,
        sketches: Iterable[Labelled],
        images: Iterable[Labelled],
        *,
        callback: Callable[[Any], object] | None = None,
        resume_from: Mapping[str, Any] | None = None,
    ) -> Self:
        """Train on labelled sketches and images; on a GPU where there is one.

        Raises
        ------
        InputError
            The pictures show nothing, or training diverged.
        CppclError
            The GPU has no memory for a batch.
        ResumeError
            `resume_from` is of another training.
        """
        import torch

        from cppcl.features.trained.lesson import Lesson
        from cppcl.features.trained.training import NetworkTraining, Schedule, flat, seeded

        device = "cuda" if torch.cuda.is_available() else "cpu"
        views = {
            modality: self._views(modality, pictures)
            for modality, pictures in zip(MODALITIES, (sketches, images), strict=True)
        }
        n_classes = 1 + max(int(found.targets.max()) for found in views.values())
        parts = divided(views, self.held_out, self.seed)
        lesson = Lesson(parts[0], n_classes, device)
        with seeded(self.seed, device):
            network = self.networks()
            for name, head in self.build_heads(n_classes).items():
                network[name] = head
        network.to(device)
        training = NetworkTraining(
            network,
            lesson,
            batches=lambda rng: self.batches(lesson, rng),
            loss=lambda rows: self.loss(network, lesson, rows),
            score=lambda: self._score(network, parts[1], device),
            schedule=Schedule(
                self.epochs,
                self.minutes,
                self.learning_rate,
                self.weight_decay,
                self.patience,
                self.seed,
            ),
            fingerprint=self._fingerprint(views),
        )
        training.run(callback, resume_from)
        history = np.full((self.epochs, 2), np.nan)
        history[: len(training.history)] = training.history
        branches = network.__class__({name: network[name] for name in self.networks()})
        return self.from_arrays({"weights": flat(branches), "history": history})

    def from_arrays(self, arrays: dict[str, NDArray[Any]]) -> Self:
        """Restore what `to_arrays` returned, also that of an extractor with other options."""
        super().from_arrays(arrays)
        object.__setattr__(self, "_built", {})
        return self

    def transform(self, pictures: Sequence[Picture]) -> NDArray[np.float32]:
        """Codes of n pictures, (n, dimension) float32; on a GPU where there is one.

        Raises
        ------
        NotFittedError
            Nothing was learned yet.
        """
        weights = self.learned("weights")
        rows = np.empty((len(pictures), self.dimension), dtype=np.float32)
        if not len(pictures):
            return rows
        import torch

        from cppcl.features.trained.lesson import as_input

        device = "cuda" if torch.cuda.is_available() else "cpu"
        network, size = self._loaded(weights, device), MICRO_BATCH[device]
        maps = np.stack(
            [
                self._seen(self._modality, check_picture(picture, number))
                for number, picture in enumerate(pictures)
            ]
        )
        with torch.inference_mode():
            for first in range(0, len(maps), size):
                batch = maps[first : first + size]
                filled = np.resize(batch, (size, *batch.shape[1:]))
                codes = self.codes(network, self._modality, as_input(filled, device))
                rows[first : first + size] = codes[: len(batch)].cpu().numpy()
        return rows

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

    def remarks(self) -> list[str]:
        """How long it trained, and how good it was at pictures that did not train it."""
        history = self.learned("history")
        done = int(np.isfinite(history[:, 0]).sum())
        text = f"{done} of {self.epochs} passes, loss {history[done - 1, 0]:.3g}"
        if np.isfinite(history[:, 1]).any():
            best = int(np.nanargmax(history[:, 1]))
            text += f"; pass {best + 1} is kept, with mAP {100 * history[best, 1]:.1f} held out"
        return [text]

    def drawing(self) -> Drawing | None:
        """Loss and held-out score of each pass."""
        from cppcl.features.trained.curve import curve_of

        return curve_of(self.learned("history"))

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_built": {}}

    def _loaded(self, weights: NDArray[Any], device: str) -> nn.ModuleDict:
        from cppcl.features.trained.training import fill

        if device not in self._built:
            network = self.networks()
            fill(network, weights)
            self._built[device] = network.to(device).eval().requires_grad_(False)
        loaded: nn.ModuleDict = self._built[device]
        return loaded

    def _seen(self, modality: Modality, picture: Picture) -> NDArray[np.uint8]:
        return seen_by_network(
            picture,
            self.sees[modality],
            self.side,
            contours=self.contours,
            threshold=self.threshold,
        )

    def _views(self, modality: Modality, pictures: Iterable[Labelled]) -> Views:
        """Training pictures as the network sees them."""
        from cppcl.features.trained.lesson import Views

        maps, targets = [], []
        for number, (picture, target) in enumerate(pictures):
            maps.append(self._seen(modality, check_picture(picture, number)))
            targets.append(int(target))
        if not any(found.any() for found in maps):
            raise InputError(
                f"none of the {len(maps)} training pictures of the modality {modality!r} shows "
                "anything that a network could see; give pictures with lines"
            )
        drawn = self.sees[modality] == "strokes"
        return Views(np.stack(maps), np.array(targets, dtype=np.int64), drawn)

    def _score(
        self, network: nn.ModuleDict, held: Mapping[Modality, Views] | None, device: str
    ) -> float:
        """Mean average precision of held-out images for held-out sketches."""
        if held is None:
            return float("nan")
        from cppcl.features.trained.lesson import as_input
        from cppcl.retrieval.metrics import evaluate

        codes = [
            np.concatenate(
                [
                    self.codes(network, modality, as_input(part, device)).cpu().numpy()
                    for part in np.array_split(views.maps, -(-len(views.maps) // 64))
                ]
            )
            for modality, views in held.items()
        ]
        targets = [views.targets.tolist() for views in held.values()]
        return evaluate(*codes, *targets, ranks=(1,)).scores["map"]

    def _fingerprint(self, views: Mapping[Modality, Views]) -> bytes:
        options = json.dumps([self.name, self.version, self.parameters()], sort_keys=True)
        parts = [options.encode()]
        for found in views.values():
            parts += [found.maps.tobytes(), found.targets.tobytes()]
        return digest_of(*parts)


def divided(
    views: Mapping[Modality, Views], share: float, seed: int
) -> tuple[dict[Modality, Views], dict[Modality, Views] | None]:
    """Pictures that train, and those that are held out, if any are."""
    from cppcl.features.trained.lesson import Views

    targets = [found.targets for found in views.values()]
    held = held_out_rows(targets[0], targets[1], share, np.random.default_rng(seed))
    if held is None:
        return dict(views), None

    def some(chosen: tuple[NDArray[np.bool_], ...], there: bool) -> dict[Modality, Views]:
        return {
            modality: Views(found.maps[rows == there], found.targets[rows == there], found.drawn)
            for (modality, found), rows in zip(views.items(), chosen, strict=True)
        }

    return some(held, there=False), some(held, there=True)


@lru_cache
def _n_weights(network: type[TrainedNetwork], size: Size) -> int:
    """Numbers that a network learns, found without computing."""
    import torch

    from cppcl.features.trained.training import floating

    with torch.device("meta"):
        return sum(tensor.numel() for tensor in floating(network(size=size).networks()))
