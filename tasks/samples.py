"""What a method may learn from: the training rows of a split whose pictures could be used."""

from __future__ import annotations

import numpy as np

from cppcl.datasets.table import MODALITIES, Modality
from storage import Reference, Store
from tasks.stages.build_curricula import Target, targets, training_rows
from tasks.stages.extract import usable_rows
from tasks.stages.fetch import open_pictures
from tasks.stages.split import open_split
from tasks.workers.reading import TrainingSamples


def training_samples(
    store: Store,
    *,
    table: Reference,
    split: Reference,
    features: dict[Modality, Reference],
    target: Target,
    at_least_one: bool = False,
) -> list[TrainingSamples]:
    """Training samples of both modalities, sketches first.

    Parameters
    ----------
    store : Store
        Where artifacts are.
    table, split : Reference
        Samples, and which of them train.
    features : dict
        `extract` artifacts, which say whose pictures could be used.
    target : {'groups', 'labels'}
        What relevance goes by.
    at_least_one : bool
        Where no row trains, take one that could: for the length of a row alone.
    """
    samples = open_pictures(store, table).table
    rows_of = open_split(store, split)
    found = []
    for modality in MODALITIES:
        usable = usable_rows(store.open(features[modality]))
        rows = training_rows(rows_of, modality)
        if not len(rows) and at_least_one:
            rows = np.flatnonzero(usable)[:1]
        kept = usable[rows]
        rows = rows[kept]
        labels, groups = (targets(samples, modality, t, rows) for t in (target, "groups"))
        found.append(TrainingSamples(modality, rows, kept, labels, groups))
    return found
