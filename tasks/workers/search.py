"""Jobs of a search that run on Dask workers. They import the library and storage only.

A job is one artifact: whoever needs its scores, in this search or another, finds them stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from cppcl.errors import InputError
from cppcl.methods import make_method
from cppcl.modality import MODALITIES
from cppcl.selection.grid_search import Job, SearchData, score_by_name, score_job
from storage import Recipe, Reference, Store, Writer
from tasks.samples import open_curriculum, part_widths
from tasks.workers.foreign import call_named

VERSION = "2"
ASKS = "sketch_asks"
"""Which sketches of a `folds` artifact are queries; it lacks where all are."""


def job_recipe(
    method: str,
    job: Job,
    *,
    score: str,
    metric: str,
    folds: Reference,
    features: Mapping[str, Reference],
    curricula: Reference | None,
) -> Recipe:
    """What the scores of a job are made from; every option of the method is in it.

    Parameters
    ----------
    method : str
        Registered name.
    job : Job
        Combinations, each with all options of the method.
    score, metric : str
        What is computed on each fold.
    folds : Reference
        A `folds` artifact: training rows, their labels and which folds hold them out.
    features : dict
        `extract` artifacts by role.
    curricula : Reference or None
        Pairs, left out where no combination uses them.
    """
    inputs = {"folds": folds, **features}
    methods = [make_method(method, **options) for options in job.options]
    if curricula is not None and any(made.uses_curricula for made in methods):
        inputs["curricula"] = curricula
    parameters = {
        "method": method,
        "options": job.options,
        "warm_start": job.warm_start,
        "score": score,
        "metric": metric,
    }
    version = f"{VERSION}.{methods[0].version}"
    return Recipe("fold-scores", version, parameters, inputs)


def score_stored_job(document: dict[str, Any], *, store: str, force: bool) -> None:
    """Publish the scores of a job, unless they are stored.

    Parameters
    ----------
    document : dict
        A `job_recipe` as plain JSON.
    store : str
        Folder of the store.
    force : bool
        Compute them although they are stored.
    """
    place, recipe = Store(store), Recipe.from_document(document)
    parameters: Any = recipe.parameters
    job = Job(tuple(parameters["options"]), parameters["warm_start"])
    scorer = partial(score_by_name, parameters["score"], parameters["metric"])

    def create(writer: Writer) -> None:
        data = open_search_data(place, recipe.inputs)
        make = partial(make_method, parameters["method"])
        what = f"{parameters['method']}: scoring on folds"
        scores = call_named(what, score_job, make, data, scorer, job)
        writer.put_array("scores", np.array(scores, dtype=np.float64))

    place.get_or_create(recipe, create, force=force)


def try_stored_job(document: dict[str, Any], *, store: str) -> None:
    """Publish the scores of a job, unless they are stored or the method refuses the data."""
    with suppress(InputError):
        score_stored_job(document, store=store, force=False)


def open_search_data(store: Store, inputs: Mapping[str, Reference]) -> SearchData:
    """Read training samples and their folds; rows that do not train are not read."""
    folds = store.open(inputs["folds"])
    parts: list[Any] = []
    for modality in MODALITIES:
        features = store.open(inputs[f"{modality}_features"])
        curriculum = None
        if "curricula" in inputs:
            kept = folds.array(f"{modality}_kept")
            curriculum = open_curriculum(store, inputs["curricula"], modality, kept)
        parts.append(
            (
                features.rows("features", folds.array(f"{modality}_rows")),
                folds.array(f"{modality}_labels"),
                folds.array(f"{modality}_folds"),
                curriculum,
                part_widths(features),
            )
        )
    sketches, images = parts
    asks = folds.array(ASKS).astype(bool) if ASKS in folds.names else None
    return SearchData(*zip(sketches, images, strict=True), sketch_asks=asks)
