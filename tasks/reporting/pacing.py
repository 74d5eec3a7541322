"""What a report shows of pacing: the first paced method of a protocol, on its first split."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.modality import Modality
from cppcl.report.pacing import MethodPacing, ModalityPacing
from storage import Reference, Store
from tasks.lineage import Lineage, by_modality, first_curricula
from tasks.reporting.curricula import Reader
from tasks.samples import open_pictures, training_samples
from tasks.stages.build_curricula import scores_of
from tasks.stages.train import trained_method

ROUNDS = "model.{}_pacing_rounds"
"""Array of a `train` artifact, of a modality."""


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
        if trained_method(lineage.training).paces:
            return method, lineage
    return None


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
        None where no method paces.
    """
    if (found := paced_method(store, methods)) is None:
        return None
    name, lineage = found
    model = lineage.training
    target: Any = model.parameters["target"]
    samples = training_samples(
        store,
        table=lineage.table,
        split=lineage.split,
        features=lineage.features,
        target=target,
        only_right=bool(model.parameters.get("only_right")),
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
        score, easiness = "", np.full(len(rows), np.nan)
        if modality in used:
            score = str(store.open(used[modality]).parameters["extractor"])
            easiness = scores_of(store, used[modality], modality)[rows]
        ids = table.column("ids", modality)
        paced = ModalityPacing(
            modality,
            model.array(ROUNDS.format(modality)),
            ids=[ids[row] for row in rows],
            labels=part.labels.tolist(),
            easiness=easiness,
            score=score,
        )
        pictures = pictures_of(paced, rows, reader(modality))
        modalities.append(replace(paced, pictures=pictures))
    imposed = trained_method(lineage.training).curriculum_modalities if lineage.curricula else ()
    return MethodPacing(name, modalities, imposed)


def pictures_of(paced: ModalityPacing, rows: NDArray[np.int64], read: Reader) -> dict[int, Any]:
    """Pictures of the samples that are shown; none where samples are no pictures."""
    found: dict[int, Any] = {}
    for k in (k for entries in paced.entries for k in entries.shown.tolist()):
        found[k], _ = read(int(rows[k]))
        if found[k].ndim != 3:
            return {}
    return found
