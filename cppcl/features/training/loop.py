"""The one training loop: epochs of batches, the best weights by held-out pictures, resumable."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from cppcl.errors import CppclError, InputError, ResumeError
from cppcl.features.training.lesson import Lesson

COLUMNS = ("loss", "score")
"""Columns of a history."""


@dataclass(frozen=True)
class Schedule:
    """How long and how fast a network learns.

    Attributes
    ----------
    epochs : int
        Passes over the training pictures, at most.
    minutes : float or None
        Time after which no epoch is begun.
    learning_rate, weight_decay : float
        Of AdamW; the rate falls to zero along a cosine.
    patience : int
        Epochs without a better score after which training stops.
    seed : int
        Of batches, changes of pictures and dropout.
    """

    epochs: int
    minutes: float | None
    learning_rate: float
    weight_decay: float
    patience: int
    seed: int


@dataclass(frozen=True)
class Epoch:
    """What `train` reports after each epoch; only valid in the callback.

    Attributes
    ----------
    number, n_rounds : int
        Which epoch, from 1, and how many at most.
    loss, score : float
        Mean loss of the epoch, and the score of held-out pictures, NaN where there are none.
    seconds : float
        Time since training began, of earlier calls too.
    """

    number: int
    n_rounds: int
    loss: float
    score: float
    seconds: float
    state: Callable[[], dict[str, NDArray[Any]]]

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """All that training needs to go on from here: arrays of numbers only."""
        return self.state()

    @property
    def seconds_to_go(self) -> float:
        """Time that the remaining epochs will take, if none of them is the last one."""
        return self.seconds / self.number * (self.n_rounds - self.number)


class NetworkTraining:
    """A network while it learns.

    Parameters
    ----------
    network : Module
        All weights, with those that only training needs.
    lesson : Lesson
        Gives pictures.
    batches : callable
        From a generator to the rows of every batch of an epoch.
    loss : callable
        From the rows of a batch to their mean loss.
    score : callable
        How good the network is at pictures that do not train it; NaN where there are none.
    schedule : Schedule
        How long and how fast.
    fingerprint : bytes
        Of the pictures and options; a state with another one is refused.
    """

    def __init__(
        self,
        network: nn.Module,
        lesson: Lesson,
        *,
        batches: Callable[[np.random.Generator], list[NDArray[np.int64]]],
        loss: Callable[[NDArray[np.int64]], Tensor],
        score: Callable[[], float],
        schedule: Schedule,
        fingerprint: bytes,
    ) -> None:
        self.network, self.lesson, self.schedule = network, lesson, schedule
        self._batches, self._loss, self._score = batches, loss, score
        self._fingerprint = fingerprint
        self._optimizer = torch.optim.AdamW(
            network.parameters(), lr=schedule.learning_rate, weight_decay=schedule.weight_decay
        )
        self.history = np.zeros((0, len(COLUMNS)))
        self._best = flat(network)
        self._seconds = 0.0

    def run(
        self,
        callback: Callable[[Epoch], object] | None = None,
        resume_from: Mapping[str, Any] | None = None,
    ) -> None:
        """Train; the network has the best weights afterwards.

        Raises
        ------
        InputError
            Training diverged.
        CppclError
            The GPU has no memory for a batch.
        ResumeError
            `resume_from` is not what an epoch of this training returned.
        """
        if resume_from is not None:
            self._restore(resume_from)
        schedule, before, started = self.schedule, self._seconds, time.monotonic()
        while not self._is_over():
            loss = self._epoch(len(self.history))
            if not np.isfinite(loss):
                raise InputError(
                    f"training diverged in epoch {len(self.history) + 1} with "
                    f"learning_rate={schedule.learning_rate!r}; use a smaller one"
                )
            score = self._scored()
            if not score <= np.max(self.history[:, 1], initial=-np.inf):  # NaN: the last counts
                self._best = flat(self.network)
            self.history = np.vstack([self.history, (loss, score)])
            self._seconds = before + time.monotonic() - started
            if callback is not None:
                number = len(self.history)
                state = self._state
                callback(Epoch(number, schedule.epochs, loss, score, self._seconds, state))
        fill(self.network, self._best)

    def _is_over(self) -> bool:
        schedule, done = self.schedule, len(self.history)
        if done >= schedule.epochs:
            return True
        if done and schedule.minutes is not None and self._seconds >= 60 * schedule.minutes:
            return True
        scores = self.history[:, 1]
        if not done or np.isnan(scores).all():
            return False
        return bool(done - 1 - int(np.nanargmax(scores)) >= schedule.patience)

    def _epoch(self, number: int) -> float:
        """Pass over the training pictures once; returns the mean loss."""
        seed = (self.schedule.seed, number)
        rng = np.random.default_rng(seed)
        self.lesson.begin(rng)
        batches = self._batches(rng)
        total, device = 0.0, self.lesson.device
        self.network.train()
        with seeded(int(rng.integers(2**62)), device), explained(device):
            for at, rows in enumerate(batches):
                progress = (number + at / len(batches)) / self.schedule.epochs
                rate = self.schedule.learning_rate * (1 + np.cos(np.pi * progress)) / 2
                self._optimizer.param_groups[0]["lr"] = rate
                with torch.autocast("cuda", torch.bfloat16, enabled=has_bfloat16(device)):
                    loss = self._loss(rows)
                self._optimizer.zero_grad()
                torch.autograd.backward(loss)
                self._optimizer.step()
                total += float(loss.detach()) * len(rows)
        return total / sum(map(len, batches))

    def _scored(self) -> float:
        self.network.eval()
        with torch.inference_mode(), explained(self.lesson.device):
            return self._score()

    def _state(self) -> dict[str, NDArray[Any]]:
        moments = [self._optimizer.state[weight] for weight in self.network.parameters()]
        first, second = (
            np.concatenate([moment[name].cpu().numpy().ravel() for moment in moments])
            for name in ("exp_avg", "exp_avg_sq")
        )
        return {
            "fingerprint": np.frombuffer(self._fingerprint, dtype=np.uint8),
            "weights": flat(self.network),
            "best": self._best,
            "first_moments": first,
            "second_moments": second,
            "steps": np.array([float(moment["step"]) for moment in moments]),
            "history": self.history,
            "seconds": np.array(self._seconds),
        }

    def _restore(self, arrays: Mapping[str, Any]) -> None:
        state = {name: np.asarray(array) for name, array in arrays.items()}
        if state.get("fingerprint", np.zeros(0)).tobytes() != self._fingerprint:
            raise ResumeError(
                "resume_from is of a training with other pictures or options, or of none; give "
                "the same ones, or start anew"
            )
        fill(self.network, state["weights"])
        self._best, self.history = state["best"], state["history"]
        self._seconds = float(state["seconds"])
        at = 0
        for weight, step in zip(self.network.parameters(), state["steps"], strict=True):
            part, shape = slice(at, at + weight.numel()), weight.shape
            self._optimizer.state[weight] = {
                "step": torch.tensor(step, dtype=torch.float32),
                "exp_avg": as_weight(state["first_moments"][part], shape, weight),
                "exp_avg_sq": as_weight(state["second_moments"][part], shape, weight),
            }
            at += weight.numel()


def as_weight(values: NDArray[Any], shape: Any, like: Tensor) -> Tensor:
    """Values as a tensor of the type and on the device of another one."""
    return torch.from_numpy(values.copy()).reshape(shape).to(like.device, like.dtype)


def floating(network: nn.Module) -> Iterator[Tensor]:
    """Weights and running means of a network, in the order in which it declares them."""
    for tensor in network.state_dict().values():
        if tensor.is_floating_point():
            yield tensor


def flat(network: nn.Module) -> NDArray[np.floating]:
    """Weights and running means of a network, one after the other, (n,)."""
    return np.concatenate([tensor.cpu().numpy().ravel() for tensor in floating(network)])


def fill(network: nn.Module, values: NDArray[np.floating]) -> None:
    """Set what `flat` returned."""
    at = 0
    with torch.no_grad():
        for tensor in floating(network):
            part = values[at : at + tensor.numel()]
            tensor.copy_(as_weight(part, tensor.shape, tensor))
            at += tensor.numel()


def has_bfloat16(device: str) -> bool:
    """True on a GPU with instructions for bfloat16, in which convolutions are computed there."""
    return device != "cpu" and torch.cuda.is_bf16_supported(including_emulation=False)


@contextmanager
def seeded(seed: int, device: str) -> Iterator[None]:
    """Context in which torch draws by a seed; what it drew by before is as it was afterwards."""
    devices = [] if device == "cpu" else [torch.cuda.current_device()]
    with torch.random.fork_rng(devices):
        torch.manual_seed(seed)
        yield


@contextmanager
def explained(device: str) -> Iterator[None]:
    """Context in which a GPU computes the same every time, and its lack of memory is explained."""
    flags = {"enabled": True, "benchmark": False, "deterministic": True, "allow_tf32": False}
    try:
        with torch.backends.cudnn.flags(**flags):
            yield
    except torch.OutOfMemoryError as error:
        raise CppclError(
            f"device {device!r} has no memory for a batch ({str(error).splitlines()[0]}); lower "
            "batch_size, or use size: small"
        ) from error
