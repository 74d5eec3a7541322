"""Train one method on one split."""

from __future__ import annotations

from typing import Any

import numpy as np

from cppcl.errors import InputError
from cppcl.methods import make_method
from storage import Recipe, Reference, Store, Writer
from tasks.build_curricula import Target, open_curriculum, targets, training_rows
from tasks.extract import usable_rows
from tasks.fetch import open_pictures
from tasks.progress import saying_convergence
from tasks.split import open_split
from tasks.stage import Mode, StageResult, produce, stage_task
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
    what: str = "",
    mode: Mode = "reuse",
) -> StageResult:
    """Publish what a method learned from the training rows of a split.

    Pictures that could not be used take no part.
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
    made = make_method(method, **options)
    recipe = Recipe(
        "train",
        f"{VERSION}.{made.version}",
        {"method": method, "options": options, "target": target},
        inputs,
    )

    def create(writer: Writer) -> None:
        samples = open_pictures(store, table).table
        rows_of = open_split(store, split)
        features, labels, pairs = [], [], []
        for modality, reference in (("sketch", sketch_features), ("image", image_features)):
            artifact = store.open(reference)
            rows = training_rows(rows_of, modality)
            if not len(rows) and method in LEARNS_NOTHING:
                rows = np.flatnonzero(usable_rows(artifact))[:1]  # for the length of a row alone
            kept = usable_rows(artifact)[rows]
            features.append(artifact.rows("features", rows[kept]))
            labels.append(targets(samples, modality, target, rows[kept]))
            pairs.append(
                None if curricula is None else open_curriculum(store, curricula, modality, kept)
            )
        with saying_convergence(what or method):
            try:
                model = made.fit(*features, *labels, *pairs)
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
