"""Train one method on one split."""

from __future__ import annotations

from typing import Any

from cppcl.errors import InputError
from cppcl.methods import make_method
from storage import Recipe, Reference, Store, Writer
from tasks.build_curricula import Target
from tasks.checkpoint import fit_with_checkpoints
from tasks.progress import saying_convergence
from tasks.stage import Mode, StageResult, produce, stage_task
from tasks.training_samples import training_samples
from tasks.workspace import Workspace

VERSION = "1"
LEARNS_NOTHING = frozenset({"raw_cosine"})
"""Methods that may have no training rows, as where all samples are queries or gallery."""


def train_method(
    *,
    workspace: Workspace,
    table: Reference,
    split: Reference,
    sketch_features: Reference,
    image_features: Reference,
    curricula: Reference | None,
    method: str,
    options: dict[str, Any],
    target: Target,
    tuning: Reference | None = None,
    what: str = "",
    mode: Mode = "reuse",
) -> StageResult:
    """Publish what a method learned from the training rows of a split.

    Pictures that could not be used take no part. A training in rounds that is killed goes on
    from one of the last when it is asked for again. `tuning` names the `tune` artifact that
    options come from, if any.
    """
    store = workspace.store
    inputs = {
        "table": table,
        "split": split,
        "sketch_features": sketch_features,
        "image_features": image_features,
    }
    if curricula is not None:
        inputs["curricula"] = curricula
    if tuning is not None:
        inputs["tuning"] = tuning
    made = make_method(method, **options)
    recipe = Recipe(
        "train",
        f"{VERSION}.{made.version}",
        {"method": method, "options": options, "target": target},
        inputs,
    )

    def create(writer: Writer) -> None:
        samples = training_samples(
            store,
            table=table,
            split=split,
            features={"sketch": sketch_features, "image": image_features},
            target=target,
            at_least_one=method in LEARNS_NOTHING,
        )
        arguments = (
            *(s.features(store, inputs[f"{s.modality}_features"]) for s in samples),
            *(s.labels for s in samples),
            *(s.curriculum(store, curricula) for s in samples),
        )
        with saying_convergence(what or method):
            try:
                model = fit_with_checkpoints(
                    made, arguments, writer, stage=recipe.stage, what=what or method
                )
            except InputError as error:
                raise InputError(f"{what or method}: {error}") from error
        for name, values in model.to_arrays().items():
            writer.put_array(f"model.{name}", values)
        for name, values in model.history_.items():
            writer.put_array(f"history.{name}", values)

    return produce(store, recipe, create, mode=mode, what=what or method)


train = stage_task(train_method)


def open_method(store: Store, reference: Reference) -> Any:
    """Method as it was trained, ready to encode."""
    artifact = store.open(reference)
    prefix = "model."
    arrays = {
        name.removeprefix(prefix): artifact.array(name)
        for name in artifact.names
        if name.startswith(prefix)
    }
    parameters = artifact.parameters
    return make_method(parameters["method"], **parameters["options"]).from_arrays(arrays)
