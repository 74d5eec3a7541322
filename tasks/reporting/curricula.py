"""What a report shows of curricula: scores and pairs of the first split, with pictures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.modality import MODALITIES, Modality
from cppcl.report.curricula import CurriculumResult, ScoredPicture, count_pairs
from storage import Reference, Store
from tasks.lineage import by_modality
from tasks.samples import given_targets, open_pictures, open_split, training_rows
from tasks.stages.build_curricula import options_of, scores_of

N_SHOWN = 6
"""Easiest and hardest pictures of each modality."""

Reader = Callable[[int], tuple[NDArray[Any], str]]
"""From a row of a modality to its picture and label."""


def curriculum_results(
    store: Store, curricula: Reference, reader: Callable[[Modality], Reader]
) -> list[CurriculumResult]:
    """Scores, pairs and pictures of both modalities.

    Parameters
    ----------
    store : Store
        Where artifacts are.
    curricula : Reference
        A `curricula` artifact.
    reader : callable
        From a modality to a function that reads its pictures.
    """
    artifact = store.open(curricula)
    parameters: Any = artifact.parameters
    samples = open_pictures(store, artifact.inputs["table"]).table
    rows_of = open_split(store, artifact.inputs["split"])
    counts = artifact.json("counts.json")
    used = by_modality(artifact, "scores")
    results = []
    for modality in MODALITIES:
        reference = used[modality]
        rows = training_rows(rows_of, modality)
        scores = scores_of(store, reference, modality)[rows]
        labels = given_targets(
            store, artifact.inputs["split"], samples, modality, parameters["target"], rows
        )
        known = np.flatnonzero(~np.isnan(scores))
        order = known[np.argsort(scores[known], kind="stable")]
        read = reader(modality)
        results.append(
            CurriculumResult(
                modality,
                str(store.open(reference).parameters["extractor"]),
                scores,
                counts[modality],
                count_pairs(
                    scores,
                    labels,
                    parameters.get("scope", "auto"),
                    parameters.get("maximum_pairs", 100_000),
                ),
                easiest=scored_pictures(order[::-1], rows, scores, read),
                hardest=scored_pictures(order, rows, scores, read),
                options=options_of(modality, parameters),
            )
        )
    return results


def scored_pictures(
    order: NDArray[np.int64], rows: NDArray[np.int64], scores: NDArray[np.float64], read: Reader
) -> list[ScoredPicture]:
    """Read the first pictures of an order; none where samples are no pictures."""
    found = []
    for k in order[:N_SHOWN]:
        picture, label = read(int(rows[k]))
        if picture.ndim != 3:
            return []
        found.append(ScoredPicture(picture, label, float(scores[k])))
    return found
