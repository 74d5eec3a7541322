"""What a report shows of pacing: the first paced method of a protocol, on its first split."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.datasets.table import Modality
from cppcl.report.pacing import MethodPacing, ModalityPacing
from storage import Reference, Store
from tasks.lineage import Lineage, by_modality, first_curricula
from tasks.reporting.curricula import Reader
from tasks.samples import open_pictures, training_samples
from tasks.stages.build_curricula import scores_of

ROUNDS = "model.{}_pacing_rounds"
"""Array of a `train` artifact, of a modality; those of older versions lack it."""


def paced_method(store: Store, methods: dict[str, list[Reference]]) -> tuple[str, Lineage] | None:
    """First method that paces, and what it learned on the first split, if there is any.

    Parameters
    ----------
    store : Store
        Where artifacts are.
    methods : dict
        Evaluations of each split, by method.
    """
    for method, (first, *_) in methods.items():
        lineage = Lineage.of_evaluation(store, first)
        parameters: Any = lineage.training.parameters
        if (
            parameters["method"] == "cprl"
            and parameters["options"].get("regularizer", "B") != "none"
        ):
            return method, lineage
    return None


def pacing_kept(store: Store, methods: dict[str, list[Reference]]) -> bool | None:
    """True if the pacing of the method that is shown was kept; None where no method paces."""
    found = paced_method(store, methods)
    return None if found is None else ROUNDS.format("sketch") in found[1].training.names


def pacing_result(
    store: Store,
    methods: dict[str, list[Reference]],
    reader: Callable[[Modality], Reader],
) -> MethodPacing | None:
    """Pacing variables of every round, easiness and pictures of the training samples.

    Parameters
    ----------
    store, methods
        As in `paced_method`.
    reader : callable
        From a modality to a function that reads its pictures.

    Returns
    -------
    MethodPacing or None
        Without modalities where the method was trained by a version that did not keep its pacing;
        None where no method paces.
    """
    if (found := paced_method(store, methods)) is None:
        return None
    method, lineage = found
    model = lineage.training
    if ROUNDS.format("sketch") not in model.names:
        return MethodPacing(method)
    options: Any = model.parameters["options"]
    target: Any = model.parameters["target"]
    samples = training_samples(
        store,
        table=lineage.table,
        split=lineage.split,
        features=lineage.features,
        target=target,
    )
    table = open_pictures(store, lineage.table).table
    # Scores are known as well where this method was trained without its curricula.
    curricula = lineage.curricula or first_curricula(
        store, [first for first, *_ in methods.values()]
    )
    used = {} if curricula is None else by_modality(store.open(curricula), "scores")
    modalities = []
    for part in samples:
        modality, rows = part.modality, part.rows
        name, easiness = "", np.full(len(rows), np.nan)
        if modality in used:
            name = str(store.open(used[modality]).parameters["extractor"])
            easiness = scores_of(store, used[modality], modality)[rows]
        ids = table.column("ids", modality)
        paced = ModalityPacing(
            modality,
            model.array(ROUNDS.format(modality)),
            ids=[ids[row] for row in rows],
            labels=part.labels.tolist(),
            easiness=easiness,
            score=name,
        )
        pictures = pictures_of(paced, rows, reader(modality))
        modalities.append(replace(paced, pictures=pictures))
    took_part = [
        part.modality
        for part in samples
        if lineage.curricula and options.get("curricula", "both") in ("both", part.modality)
    ]
    return MethodPacing(method, modalities, took_part)


def pictures_of(paced: ModalityPacing, rows: NDArray[np.int64], read: Reader) -> dict[int, Any]:
    """Pictures of the samples that are shown; none where samples are no pictures."""
    found: dict[int, Any] = {}
    for k in (k for entries in paced.entries for k in entries.shown.tolist()):
        found[k], _ = read(int(rows[k]))
        if found[k].ndim != 3:
            return {}
    return found
