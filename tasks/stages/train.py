"""Train methods on splits: one here, or several on the cluster, ahead of their stage."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from prefect import task

from cppcl.methods import Method, make_method
from storage import Artifact, Recipe, Reference, Store, Writer
from tasks.cluster.jobs import hearing, run_jobs
from tasks.cluster.session import current_cluster
from tasks.prefect_progress import prefect_progress
from tasks.progress import Progress, log, tell
from tasks.samples import Target, training_samples
from tasks.stages.contract import PREFECT_OPTIONS, Mode, StageResult, produce, stage_task
from tasks.workers.training import TOPIC, Training, fit_stored, in_rounds
from tasks.workspace import Workspace

VERSION = "1"
HINT = "raise compute.memory_per_worker (what is done is kept)"


def training_recipe(
    *,
    table: Reference,
    split: Reference,
    sketch_features: Reference,
    image_features: Reference,
    curricula: Reference | None,
    method: str,
    options: dict[str, Any],
    target: Target,
    tuning: Reference | None = None,
    only_right: bool = False,
) -> Recipe:
    """What a trained method is made from.

    Parameters
    ----------
    table, split : Reference
        Samples, and which of them train: no other row is read.
    sketch_features, image_features : Reference
        `extract` artifacts.
    curricula : Reference or None
        Pairs, left out where the method does not use them.
    method, options : str, dict
        What learns.
    target : {'groups', 'labels'}
        What relevance goes by.
    tuning : Reference or None
        The `tune` artifact that options come from, if any.
    only_right : bool
        Train on samples that are right alone; see `tasks.samples.training_samples`.
    """
    inputs = {
        "table": table,
        "split": split,
        "sketch_features": sketch_features,
        "image_features": image_features,
    }
    made = make_method(method, **options)
    if curricula is not None and made.uses_curricula:
        inputs["curricula"] = curricula
    if tuning is not None:
        inputs["tuning"] = tuning
    parameters = {"method": method, "options": options, "target": target}
    if only_right:
        parameters["only_right"] = True
    return Recipe("train", f"{VERSION}.{made.version}", parameters, inputs)


def train_method(
    *,
    workspace: Workspace,
    recipe: Recipe,
    seconds: float | None = None,
    label: str = "",
    mode: Mode = "reuse",
) -> StageResult:
    """Publish what a method learned from the training rows of a split.

    Pictures that could not be used take no part. A training in rounds that is killed goes on
    from one of the last when it is asked for again.

    Parameters
    ----------
    workspace : Workspace
        Where artifacts are.
    recipe : Recipe
        A `training_recipe`.
    seconds : float or None
        How long it took where `train_ahead` just did it.
    label : str
        Which piece of the stage this is, for progress.
    mode : {'reuse', 'force', 'require'}
        What to do with a stored training.
    """
    if seconds is not None:
        return StageResult(recipe.reference, cached=False, seconds=seconds)
    store, label = workspace.store, label or method_of(recipe)

    def create(writer: Writer) -> None:
        with prefect_progress(f"train {label}") as show:
            training_of(store, recipe, label).fit(store, writer, show)

    return produce(store, recipe, create, mode=mode, label=label)


train = stage_task(train_method)


def train_several(
    *, workspace: Workspace, recipes: Sequence[tuple[Recipe, str]], mode: Mode = "reuse"
) -> dict[Reference, float]:
    """Train on the cluster what is not stored, if that is faster than one after another.

    Left to the stage itself are methods on a GPU and those that need more memory than a worker
    has; and all of them unless several learn in rounds: closed forms alone are sooner done there.

    Parameters
    ----------
    workspace : Workspace
        Where artifacts are.
    recipes : sequence of (Recipe, str)
        Each training, and which piece of the stage it is.
    mode : {'reuse', 'force', 'require'}
        What to do with a stored training.

    Returns
    -------
    dict of Reference to float
        What was trained, and the seconds that each took.
    """
    store = workspace.store
    pending: list[Training] = []
    for recipe, label in recipes if mode != "require" else ():
        method = constructed(recipe)
        if (
            (mode == "force" or store.find(recipe.reference) is None)
            and not method.uses_gpu
            and method.learns
        ):
            pending.append(training_of(store, recipe, label))
    memory = current_cluster().memory_of_a_worker() if pending else 0
    pending = [training for training in pending if training.memory(store) <= memory]
    if sum(in_rounds(training.method()) for training in pending) < 2:
        return {}
    seconds: dict[Reference, float] = {}
    finished: set[str] = set()

    def hear(event: dict[str, Any]) -> None:
        if event["label"] not in finished:
            tell(Progress(**event))

    work = functools.partial(fit_stored, store=str(store.root), force=mode == "force")
    with (
        prefect_progress("train") as show,
        hearing(TOPIC, hear),
    ):
        for number, trained in run_jobs(work, pending, device="cpu", name="train", hint=HINT):
            recipe, label = pending[number].recipe, pending[number].label
            finished.add(label)
            for remark in trained.remarks:
                log(remark)
            tell(Progress("train", label, 1, 1, seconds=trained.seconds))
            seconds[recipe.reference] = trained.seconds
            show(len(seconds) / len(pending))
    return seconds


train_ahead = task(train_several, name="train_ahead", **PREFECT_OPTIONS)


def training_of(store: Store, recipe: Recipe, label: str) -> Training:
    """What is to be learned by a recipe, and from which samples."""
    parameters: Any = recipe.parameters
    samples = training_samples(
        store,
        table=recipe.inputs["table"],
        split=recipe.inputs["split"],
        features={
            "sketch": recipe.inputs["sketch_features"],
            "image": recipe.inputs["image_features"],
        },
        target=parameters["target"],
        at_least_one=not constructed(recipe).learns,
        only_right=bool(parameters.get("only_right")),
    )
    return Training(recipe, samples, label)


def method_of(recipe: Recipe) -> str:
    """Registered name of the method that a recipe trains."""
    return str(recipe.parameters["method"])


def constructed(recipe: Recipe) -> Method:
    """Method of a `training_recipe`, not fitted."""
    options: Any = recipe.parameters["options"]
    return make_method(method_of(recipe), **options)


def trained_method(artifact: Artifact) -> Method:
    """Method of a `train` artifact, as it was constructed."""
    parameters: Any = artifact.parameters
    return make_method(parameters["method"], **parameters["options"])


def open_method(store: Store, reference: Reference) -> Method:
    """Method as it was trained, ready to encode."""
    artifact = store.open(reference)
    prefix = "model."
    arrays = {
        name.removeprefix(prefix): artifact.array(name)
        for name in artifact.names
        if name.startswith(prefix)
    }
    return trained_method(artifact).from_arrays(arrays)
