"""What a report shows of pacing: the first paced method of a protocol, on its first split."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.datasets.table import Modality
from cppcl.report.pacing.data import PacedSide, PacingResult
from storage import Artifact, Reference, Store
from tasks.reporting.curricula import Reader, curricula_behind
from tasks.samples import training_samples
from tasks.stages.build_curricula import scores_of
from tasks.stages.fetch import open_pictures

ROUNDS = "model.{}_pacing_rounds"
"""Array of a `train` artifact, of a modality; those of older versions lack it."""


def paced_model(store: Store, methods: dict[str, list[Reference]]) -> tuple[str, Artifact] | None:
    """First method that paces, and what it learned on the first split, if there is any.

    Parameters
    ----------
    store : Store
        Where artifacts are.
    methods : dict
        Evaluations of each split, by method.
    """
    for method, (first, *_) in methods.items():
        model = store.open(store.open(store.open(first).inputs["codes"]).inputs["model"])
        parameters: Any = model.parameters
        if (
            parameters["method"] == "cprl"
            and parameters["options"].get("regularizer", "B") != "none"
        ):
            return method, model
    return None


def pacing_kept(store: Store, methods: dict[str, list[Reference]]) -> bool | None:
    """Whether pacing of the method that is shown was kept; None where no method paces."""
    found = paced_model(store, methods)
    return None if found is None else ROUNDS.format("sketch") in found[1].names


def pacing_result(
    store: Store,
    methods: dict[str, list[Reference]],
    reader: Callable[[Modality], Reader],
) -> PacingResult | None:
    """Pacing variables of every round, easiness and pictures of the training samples.

    Parameters
    ----------
    store, methods
        As in `paced_model`.
    reader : callable
        From a modality to a function that reads its pictures.

    Returns
    -------
    PacingResult or None
        Without sides where the method was trained by a version that did not keep its pacing; None
        where no method paces.
    """
    if (found := paced_model(store, methods)) is None:
        return None
    method, model = found
    if ROUNDS.format("sketch") not in model.names:
        return PacingResult(method)
    inputs, parameters = model.inputs, model.parameters
    options: Any = parameters["options"]
    target: Any = parameters["target"]
    samples = training_samples(
        store,
        table=inputs["table"],
        split=inputs["split"],
        features={"sketch": inputs["sketch_features"], "image": inputs["image_features"]},
        target=target,
    )
    table = open_pictures(store, inputs["table"]).table
    # Scores are known as well where this method was trained without its curricula.
    curricula = inputs.get("curricula") or curricula_behind(
        store, [references[0] for references in methods.values()]
    )
    sides = []
    for side in samples:
        name, easiness = "", np.full(len(side.rows), np.nan)
        if curricula is not None:
            scores = store.open(curricula).inputs[f"{side.modality}_scores"]
            name = str(store.open(scores).parameters["extractor"])
            easiness = scores_of(store, scores, side.modality)[side.rows]
        ids = table.column("ids", side.modality)
        paced = PacedSide(
            side.modality,
            model.array(ROUNDS.format(side.modality)),
            ids=[ids[row] for row in side.rows],
            labels=side.labels.tolist(),
            easiness=easiness,
            score=name,
        )
        sides.append(replace(paced, pictures=pictures_of(paced, side.rows, reader(side.modality))))
    took_part = [
        side.modality
        for side in samples
        if "curricula" in inputs and options.get("curricula", "both") in ("both", side.modality)
    ]
    return PacingResult(method, sides, took_part)


def pictures_of(side: PacedSide, rows: NDArray[np.int64], read: Reader) -> dict[int, Any]:
    """Pictures of the samples that are shown; none where samples are no pictures."""
    found: dict[int, Any] = {}
    for k in (k for entries in side.entries for k in entries.shown.tolist()):
        found[k], _ = read(int(rows[k]))
        if found[k].ndim != 3:
            return {}
    return found
