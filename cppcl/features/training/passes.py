"""What the extractors that learn by passes over labelled pictures have in common."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import InputError
from cppcl.features.base import MIB, Drawing, Labelled, Picture, SilentClass
from cppcl.features.learning import CrossModalExtractor
from cppcl.features.stateless import check_picture
from cppcl.features.training.sampling import Partners, Rows, held_out_rows, in_batches
from cppcl.learning.resuming import digest_of
from cppcl.modality import MODALITIES, Modality
from cppcl.validation import check_number

if TYPE_CHECKING:
    from torch import Tensor, nn

    from cppcl.features.training.lesson import Lesson, Views

MICRO_BATCH = {"cpu": 1, "cuda": 32}
"""Pictures that are described together: each sees the same kernels, however many come with it."""
COPIES_OF_WEIGHTS = 8
"""Weights, gradient, two moments, the best ones so far, a checkpoint, and room for a step."""


@dataclass(frozen=True, kw_only=True)
class LearnedByPasses(CrossModalExtractor, ABC):
    """Base of what is trained on the labelled pictures of a split, by batches of comparisons.

    A subclass has weights, a loss and what it sees of pictures; the loop and what is kept are
    here.

    Parameters
    ----------
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
        best pass is chosen; 0 takes the last one. Pseudo-sketches are never queries then.
    patience : int
        Passes without a better one after which training stops.
    seed : int
        Of first weights, batches, changes of pictures and dropout.
    """

    name: ClassVar[str]
    version: ClassVar[int]
    device: ClassVar[Literal["cpu", "gpu"]] = "gpu"
    libraries: ClassVar[int] = 704 * MIB  # with PyTorch

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

    @abstractmethod
    def networks(self) -> nn.ModuleDict:
        """Modules with new weights, which are what is learned."""

    @abstractmethod
    def n_weights(self) -> int:
        """Numbers that are learned, found without computing."""

    @abstractmethod
    def codes(self, network: nn.ModuleDict, modality: Modality, pictures: Tensor) -> Tensor:
        """Codes of pictures as the network takes them, (n, dimension)."""

    @abstractmethod
    def loss(self, network: nn.ModuleDict, lesson: Lesson, rows: Rows) -> Tensor:
        """Mean loss of a batch."""

    @abstractmethod
    def seen(self, modality: Modality, pictures: Sequence[Picture]) -> NDArray[Any]:
        """What is seen of pictures, one row each."""

    def as_input(self, seen: NDArray[Any], device: str) -> Tensor:
        """What is seen, as the network takes it."""
        from cppcl.features.training.lesson import as_input

        return as_input(seen, device)

    def lesson(self, views: Mapping[Modality, Views], n_classes: int, device: str) -> Lesson:
        """Training pictures, by batches."""
        from cppcl.features.training.lesson import Lesson

        return Lesson(views, n_classes, device)

    def build_heads(self, n_classes: int) -> dict[str, nn.Module]:
        """Layers that only training needs; here none."""
        return {}

    def prepare(self, network: nn.ModuleDict, views: Mapping[Modality, Views]) -> None:
        """Set what new weights take from the training pictures; here nothing."""

    def batches(self, lesson: Lesson, rng: np.random.Generator) -> list[Rows]:
        """Rows of each batch of a pass; here triplets of a sketch and two images."""
        targets = [lesson.views[modality].targets for modality in MODALITIES]
        return in_batches(Partners(*targets).triplets(rng), self.batch_size)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Weights, and loss and held-out score of each pass, NaN where there was none."""
        return {"weights": (self.n_weights(),), "history": (self.epochs, 2)}

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

        from cppcl.features.training.loop import NetworkTraining, Schedule, flat, seeded

        device = "cuda" if torch.cuda.is_available() else "cpu"
        views = {
            modality: self._views(modality, pictures)
            for modality, pictures in zip(MODALITIES, (sketches, images), strict=True)
        }
        n_classes = 1 + max(int(found.targets.max()) for found in views.values())
        parts = divided(views, self.held_out, self.seed)
        lesson = self.lesson(parts[0], n_classes, device)
        with seeded(self.seed, device):
            network = self.networks()
            for name, head in self.build_heads(n_classes).items():
                network[name] = head
        self.prepare(network, parts[0])
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

        device = "cuda" if torch.cuda.is_available() else "cpu"
        network, size = self._loaded(weights, device), MICRO_BATCH[device]
        checked = [check_picture(picture, number) for number, picture in enumerate(pictures)]
        maps = self.seen(self._modality, checked)
        with torch.inference_mode():
            for first in range(0, len(maps), size):
                batch = maps[first : first + size]
                filled = np.resize(batch, (size, *batch.shape[1:]))
                codes = self.codes(network, self._modality, self.as_input(filled, device))
                rows[first : first + size] = codes[: len(batch)].cpu().numpy()
        return rows

    def remarks(self) -> list[str]:
        """How long it trained, and how good it was at pictures that did not train it."""
        history = self.learned("history")
        done = int(np.isfinite(history[:, 0]).sum())
        text = f"{done} of {self.epochs} passes, loss {history[done - 1, 0]:.3g}"
        if np.isfinite(history[:, 1]).any():
            best = int(np.nanargmax(history[:, 1]))
            reached = f"mAP {100 * history[best, 1]:.1f} per cent"
            text += f"; pass {best + 1} is kept, with {reached} on pictures that were held out"
        return [text]

    def drawing(self) -> Drawing | None:
        """Loss and held-out score of each pass."""
        from cppcl.features.training.curve import curve_of

        return curve_of(self.learned("history"))

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_built": {}}

    def _loaded(self, weights: NDArray[Any], device: str) -> nn.ModuleDict:
        from cppcl.features.training.loop import fill

        if device not in self._built:
            network = self.networks()
            fill(network, weights)
            self._built[device] = network.to(device).eval().requires_grad_(False)
        loaded: nn.ModuleDict = self._built[device]
        return loaded

    def _views(self, modality: Modality, pictures: Iterable[Labelled]) -> Views:
        """Training pictures as the network sees them."""
        from cppcl.features.training.lesson import Views

        maps, targets, asks = [], [], []
        for number, (picture, target) in enumerate(pictures):
            maps.append(self.seen(modality, [check_picture(picture, number)])[0])
            targets.append(int(target))
            asks.append(not isinstance(target, SilentClass))
        self.check_seen(modality, maps)
        return Views(
            np.stack(maps),
            np.array(targets, dtype=np.int64),
            self.are_drawn(modality),
            None if all(asks) else np.array(asks, dtype=np.bool_),
        )

    def check_seen(self, modality: Modality, seen: Sequence[NDArray[Any]]) -> None:
        """Raise `InputError` if what is seen of the training pictures can teach nothing."""
        if not any(found.any() for found in seen):
            raise InputError(
                f"none of the {len(seen)} training pictures of the modality {modality!r} shows "
                "anything that a network could see; give pictures with lines"
            )

    def are_drawn(self, modality: Modality) -> bool:
        """True if what is seen are strokes that can be told apart; here never."""
        return False

    def _score(
        self, network: nn.ModuleDict, held: Mapping[Modality, Views] | None, device: str
    ) -> float:
        """Mean average precision of held-out images for held-out sketches."""
        if held is None:
            return float("nan")
        from cppcl.retrieval.metrics import evaluate

        codes = [
            np.concatenate(
                [
                    self.codes(network, modality, self.as_input(part, device)).cpu().numpy()
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
            if found.asks is not None:
                parts.append(found.asks.tobytes())
        return digest_of(*parts)


def divided(
    views: Mapping[Modality, Views], share: float, seed: int
) -> tuple[dict[Modality, Views], dict[Modality, Views] | None]:
    """Pictures that train, and those that are held out and may be asked with, if any are."""
    from cppcl.features.training.lesson import Views

    sketches, images = (views[modality] for modality in MODALITIES)
    rng = np.random.default_rng(seed)
    held = held_out_rows(sketches.targets, images.targets, share, rng, sketches.asks)
    if held is None:
        return dict(views), None

    def some(*chosen: NDArray[np.bool_]) -> dict[Modality, Views]:
        return {
            modality: Views(found.maps[rows], found.targets[rows], found.drawn)
            for (modality, found), rows in zip(views.items(), chosen, strict=True)
        }

    asking = held[0] if sketches.asks is None else held[0] & sketches.asks
    return some(~held[0], ~held[1]), some(asking, held[1])
