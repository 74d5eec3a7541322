"""The map of a gallery: its pictures in the plane, and beside them sketches that search in it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.report.pacing import entry_rounds
from cppcl.retrieval.exact import Metric, nearest
from cppcl.retrieval.layout import picture_layout, query_layout
from storage import Artifact, Recipe, Reference
from tasks.lineage import Lineage
from tasks.progress import log
from tasks.samples import (
    gallery_rows,
    open_pictures,
    open_split,
    targets,
    training_samples,
    usable_rows,
)
from tasks.stages import encode
from tasks.stages.train import trained_method
from tasks.workspace import Workspace

VERSION = "1"
ROUNDS = "model.{}_pacing_rounds"
MOST = {"sketch": 5000, "image": 20_000}
"""Samples of a modality that are shown; of more, some drawn at random."""
N_NEAREST = 5
UNKNOWN, WRONG, RIGHT = -1, 0, 1
NOT_PACED = -1


@dataclass(frozen=True)
class CollectionMap:
    """Where pictures and sketches stand.

    Attributes
    ----------
    images, sketches : (n,) and (q,) int64
        Rows of the gallery, and of the sketches of the model's own data set.
    image_places, sketch_places : (n, 2) and (q, 2) float32
        Between 0 and 1, as `cppcl.retrieval.layout` gives them.
    nearest : (q,) int64
        Position in `images` of the picture nearest to each sketch, of those that are shown.
    right : (q,) int8
        `RIGHT` or `WRONG`: whether it is of the sketch's class or instance; `UNKNOWN` where the
        gallery holds nothing that is.
    held_out : (q,) bool
        Whether the model did not learn from the sketch.
    image_rounds, sketch_rounds : (n,) and (q,) int64
        Round of the training, from 1, in which each entered; 0 for one that never did, and
        `NOT_PACED` for one that did not train, or where training does not pace.
    """

    images: NDArray[np.int64]
    sketches: NDArray[np.int64]
    image_places: NDArray[np.float32]
    sketch_places: NDArray[np.float32]
    nearest: NDArray[np.int64]
    right: NDArray[np.int8]
    held_out: NDArray[np.bool_]
    image_rounds: NDArray[np.int64]
    sketch_rounds: NDArray[np.int64]


def collection_map_of(workspace: Workspace, codes: Reference) -> CollectionMap:
    """Read the map of a gallery from the store, or lay it out and store it with the gallery.

    A store that cannot be written to is left as it is.

    Parameters
    ----------
    workspace : Workspace
        Where artifacts are.
    codes : Reference
        An `encode` artifact.
    """
    store = workspace.store
    lineage = Lineage.of_codes(store, codes)
    metric: Any = workspace.metric_of(lineage.training.reference)
    home = codes_of_training(workspace, lineage)
    inputs = {"codes": codes} | ({} if home is None else {"sketch_codes": home.reference})
    recipe = Recipe("map", VERSION, {"metric": metric}, inputs)
    if store.find(recipe.reference) is None and not os.access(store.root, os.W_OK):
        return _laid_out(workspace, lineage, home, metric)

    def create(writer: Any) -> None:
        log("laying out the map of the gallery, once: this takes some seconds")
        for name, values in vars(_laid_out(workspace, lineage, home, metric)).items():
            writer.put_array(name, values)

    artifact = store.get_or_create(recipe, create).artifact
    return CollectionMap(**{name: artifact.array(name) for name in CollectionMap.__annotations__})


def codes_of_training(workspace: Workspace, lineage: Lineage) -> Artifact | None:
    """Codes of the sketches and pictures of a model's own data set, if they are stored."""
    if "sketch" in lineage.encoded:
        return lineage.codes
    inputs = {"model": lineage.training.reference} | {
        f"{modality}_features": features for modality, features in lineage.features.items()
    }
    return workspace.store.find(Recipe("encode", encode.VERSION, {}, inputs).reference)


def _laid_out(
    workspace: Workspace, lineage: Lineage, home: Artifact | None, metric: Metric
) -> CollectionMap:
    store = workspace.store
    image_features = store.open(lineage.encoded["image"])
    table = open_pictures(store, image_features.inputs["table"]).table
    rng = np.random.default_rng(0)
    images = _some(gallery_rows(image_features, table), MOST["image"], rng)
    image_codes = lineage.codes.rows("image_codes", images)
    places = picture_layout(image_codes, metric=metric)

    own_table = open_pictures(store, lineage.table).table
    usable = usable_rows(store.open(lineage.features["sketch"]))
    held_out = np.zeros(len(usable), dtype=bool)
    held_out[open_split(store, lineage.split).test_sketches] = True
    rows = np.empty(0, np.int64)
    sketch_codes = np.empty((0, image_codes.shape[1]))
    if home is not None:
        known = np.flatnonzero(usable)
        asked = home.rows("sketch_codes", known)
        drawn = asked.any(axis=1)  # one without a code is near to nothing
        rows = _some(known[drawn], MOST["sketch"], rng)
        sketch_codes = asked[np.isin(known, rows)]
    found = np.empty((0, 1), np.int64)
    right = np.empty(0, np.int8)
    if len(rows):
        found, _ = nearest(sketch_codes, image_codes, N_NEAREST, metric=metric)
        target: Any = lineage.training.parameters["target"]
        wanted = targets(own_table, "sketch", target, rows)
        there = targets(table, "image", target, images)
        right = np.where(there[found[:, 0]] == wanted, RIGHT, WRONG).astype(np.int8)
        right[~np.isin(wanted, there)] = UNKNOWN
    rounds = _rounds(workspace, lineage)
    same_table = image_features.inputs["table"] == lineage.table
    n_images = len(table.rows("image"))
    return CollectionMap(
        images=images,
        sketches=rows,
        image_places=places,
        sketch_places=query_layout(places, found),
        nearest=found[:, 0],
        right=right,
        held_out=held_out[rows],
        image_rounds=(rounds["image"] if same_table else np.full(n_images, NOT_PACED, np.int64))[
            images
        ],
        sketch_rounds=rounds["sketch"][rows],
    )


def _some(rows: NDArray[np.int64], most: int, rng: np.random.Generator) -> NDArray[np.int64]:
    return rows if len(rows) <= most else np.sort(rng.permutation(rows)[:most])


def _rounds(workspace: Workspace, lineage: Lineage) -> dict[str, NDArray[np.int64]]:
    """Round in which each row of a modality entered the training."""
    store, model = workspace.store, lineage.training
    target: Any = model.parameters["target"]
    samples = training_samples(
        store,
        table=lineage.table,
        split=lineage.split,
        features=lineage.features,
        target=target,
        only_right=bool(model.parameters.get("only_right")),
    )
    paces = trained_method(model).paces
    found = {}
    for part in samples:
        n = len(usable_rows(store.open(lineage.features[part.modality])))
        found[part.modality] = np.full(n, NOT_PACED, np.int64)
        if paces and (name := ROUNDS.format(part.modality)) in model.names:
            found[part.modality][part.rows] = entry_rounds(model.array(name))
    return found
