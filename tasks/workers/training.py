"""A training: it reports its rounds and resumes from one of the last if it was killed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from inspect import signature
from typing import Any

from cppcl.errors import InputError
from cppcl.learning.composed_method import ComposedMethod, Widths
from cppcl.methods import Method, make_method
from storage import Recipe, Store, Writer
from tasks.cluster.jobs import send_event
from tasks.progress import Progress, listening, logging_convergence
from tasks.samples import TrainingSamples, part_widths
from tasks.workers.foreign import call_named
from tasks.workers.rounds import fit_in_rounds

TOPIC = "cppcl-training"
"""Of the events by which a worker tells progress; each is the fields of a `Progress`."""


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
        """Bytes that it will need at most, as the method declares."""
        counts = [len(samples.rows) for samples in self.samples]
        sketch, image = (
            store.open(self.recipe.inputs[f"{samples.modality}_features"]).shape("features")[1]
            for samples in self.samples
        )
        return self.method().memory(*counts, (sketch, image))

    def method(self) -> Method:
        """Construct the method, not fitted."""
        parameters: Any = self.recipe.parameters
        return make_method(parameters["method"], **parameters["options"])

    def fit(
        self, store: Store, writer: Writer, show: Callable[[float], None] | None = None
    ) -> None:
        """Fill a writer with what the method learned."""
        recipe, label = self.recipe, self.label
        curricula = recipe.inputs.get("curricula")
        arguments = (
            *(s.features(store, recipe.inputs[f"{s.modality}_features"]) for s in self.samples),
            *(s.labels for s in self.samples),
            *(s.curriculum(store, curricula) for s in self.samples),
        )
        method = self.method()
        spaces = tuple(
            part_widths(store.open(recipe.inputs[f"{s.modality}_features"])) for s in self.samples
        )
        fit = partial(
            fit_with_checkpoints,
            spaces=(spaces[0], spaces[1]),
            stage=recipe.stage,
            label=label,
            show=show,
        )
        with logging_convergence(label):
            try:
                model = call_named(f"{label}: training", fit, method, arguments, writer)
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


def fit_with_checkpoints(
    method: Method,
    arguments: tuple[Any, ...],
    writer: Writer,
    *,
    spaces: Widths,
    stage: str,
    label: str,
    show: Callable[[float], None] | None = None,
) -> Method:
    """Fit a method, resuming after a killed call; closed forms are just fitted.

    Parameters
    ----------
    method : Method
        Not fitted; its `fit` may take ``callback`` and ``resume_from``.
    arguments : tuple
        Positional arguments of its `fit`.
    writer : Writer
        Of the artifact that is made from it.
    spaces : pair of tuple of int
        Columns of each space of the features, for a composed method.
    stage, label : str
        What progress is told of.
    show : callable
        Told the share of rounds that are done, too.
    """
    if isinstance(method, ComposedMethod):
        return method.fit(*arguments, spaces=spaces)
    if not in_rounds(method):
        return method.fit(*arguments)
    fitted, done = fit_in_rounds(
        partial(method.fit, *arguments), writer, stage=stage, label=label, show=show
    )
    writer.note(rounds_of_this_call=done)
    result: Method = fitted
    return result


def in_rounds(method: Method) -> bool:
    """True if a method, or the one that is composed, learns in rounds and can resume from one."""
    one = method.make() if isinstance(method, ComposedMethod) else method
    return {"callback", "resume_from"} <= signature(one.fit).parameters.keys()
