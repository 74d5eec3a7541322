"""Make binary codes of the codes of a trained method."""

from __future__ import annotations

import numpy as np

from cppcl.learning.preparation import unit_rows
from cppcl.modality import MODALITIES
from cppcl.retrieval.hashing import IterativeQuantization
from storage import Recipe, Reference, Writer
from tasks.lineage import by_modality
from tasks.samples import open_split, training_rows, usable_rows
from tasks.stages.contract import Mode, StageResult, produce, stage_task
from tasks.workspace import Workspace

VERSION = "2"


def binary_codes_of(
    *,
    workspace: Workspace,
    codes: Reference,
    split: Reference,
    bits: int,
    seed: int = 0,
    label: str = "",
    mode: Mode = "reuse",
) -> StageResult:
    """Publish binary codes, -1 and 1, of every picture; `evaluate` takes them as any codes.

    Iterative quantisation learns from the training rows of both modalities, scaled to unit norm.
    Codes that are all zero stay so, and are counted where they are ranked.

    Parameters
    ----------
    workspace : Workspace
        Where artifacts are.
    codes : Reference
        An `encode` artifact.
    split : Reference
        Whose training rows are learned from.
    bits : int
        Length of binary codes, at most that of the codes.
    seed : int
        Seed of the first rotation.
    label, mode
        As of every stage.
    """
    store = workspace.store
    exact = store.open(codes)
    features = by_modality(exact, "features")
    recipe = Recipe(
        "binary",
        VERSION,
        {"bits": bits, "seed": seed},
        {
            "codes": codes,
            "split": split,
            **{f"{modality}_features": reference for modality, reference in features.items()},
        },
    )

    def create(writer: Writer) -> None:
        rows_of = open_split(store, split)
        values = {
            modality: unit_rows(exact.array(f"{modality}_codes").astype(np.float64))
            for modality in MODALITIES
        }
        training = []
        for modality in MODALITIES:
            rows = training_rows(rows_of, modality)
            usable = usable_rows(store.open(features[modality]))
            training.append(values[modality][rows[usable[rows]]])
        learned = IterativeQuantization.fit(np.concatenate(training), bits, seed=seed)
        for modality in MODALITIES:
            made = learned.transform(values[modality])
            made[~values[modality].any(axis=1)] = 0
            writer.put_array(f"{modality}_codes", made)
        writer.put_array("errors", learned.errors)

    return produce(store, recipe, create, mode=mode, label=label or f"{bits} bits")


binary_codes = stage_task(binary_codes_of)
