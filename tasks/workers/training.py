"""A training, here or on a Dask worker. Imports the library and storage only."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from cppcl.errors import InputError
from cppcl.methods import make_method
from storage import Recipe, Store, Writer
from tasks.cluster.running import send_event
from tasks.progress import Progress, listening, logging_convergence
from tasks.workers.checkpoint import fit_with_checkpoints
from tasks.workers.reading import TrainingSamples

TOPIC = "cppcl-training"
"""Of the events by which a worker tells progress; each is the fields of a `Progress`."""

MEMORY_FACTOR = 4
"""Peak memory of a training, in its features and codes together (3.5 with 224,000 samples)."""


@dataclass(frozen=True)
class Training:
    """What is to be trained, as it is sent to a worker.

    Attributes
    ----------
    recipe : Recipe
        Of the `train` artifact.
    samples : sequence of TrainingSamples
        Sketches and images to learn from.
    label : str
        Which piece of the stage this is, for progress.
    """

    recipe: Recipe
    samples: Sequence[TrainingSamples]
    label: str

    def memory(self, store: Store) -> int:
        """Bytes that it will need at most, by what was measured."""
        parameters: Any = self.recipe.parameters
        atoms = int(parameters["options"].get("n_atoms", 0))
        total = 0
        for side in self.samples:
            features = store.open(self.recipe.inputs[f"{side.modality}_features"])
            total += len(side.rows) * (features.shape("features")[1] + atoms)
        return MEMORY_FACTOR * 4 * total

    def fit(
        self, store: Store, writer: Writer, show: Callable[[float], None] | None = None
    ) -> None:
        """Fill a writer with what the method learned."""
        recipe, label = self.recipe, self.label
        parameters: Any = recipe.parameters
        curricula = recipe.inputs.get("curricula")
        arguments = (
            *(s.features(store, recipe.inputs[f"{s.modality}_features"]) for s in self.samples),
            *(s.labels for s in self.samples),
            *(s.curriculum(store, curricula) for s in self.samples),
        )
        method = make_method(parameters["method"], **parameters["options"])
        with logging_convergence(label):
            try:
                model = fit_with_checkpoints(
                    method, arguments, writer, stage=recipe.stage, label=label, show=show
                )
            except InputError as error:
                raise InputError(f"{label}: {error}") from error
        for name, values in model.to_arrays().items():
            writer.put_array(f"model.{name}", values)
        for name, values in model.history_.items():
            writer.put_array(f"history.{name}", values)


@dataclass(frozen=True)
class Trained:
    """What a worker returns of a training.

    Attributes
    ----------
    seconds : float
        Wall time on the worker.
    remarks : list of str
        For the user.
    """

    seconds: float
    remarks: list[str]


def fit_stored(training: Training, *, store: str, force: bool) -> Trained:
    """Publish what a training learns, on a worker; progress is sent as events.

    Parameters
    ----------
    training : Training
        What to learn.
    store : str
        Folder of the store.
    force : bool
        Learn it although it is stored.
    """
    started = time.perf_counter()
    place, remarks = Store(store), list[str]()

    def send(progress: Progress) -> None:
        send_event(TOPIC, asdict(progress))

    with listening(send, remarks.append):
        place.get_or_create(training.recipe, partial(training.fit, place), force=force)
    return Trained(time.perf_counter() - started, remarks)
