"""Make binary codes of the codes of a trained method."""

from __future__ import annotations

import numpy as np

from cppcl.datasets.table import MODALITIES
from cppcl.learning.preparation import unit_rows
from cppcl.retrieval.hashing import IterativeQuantization
from storage import Recipe, Reference, Writer
from tasks.stages.contract import Mode, StageResult, produce, stage_task
from tasks.stages.extract import usable_rows
from tasks.stages.split import open_split
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
    what, mode
        As of every stage.
    """
    store = workspace.store
    exact = store.open(codes)
    sides = {f"{side}_features": exact.inputs[f"{side}_features"] for side in MODALITIES}
    recipe = Recipe(
        "binary",
        VERSION,
        {"bits": bits, "seed": seed},
        {"codes": codes, "split": split, **sides},
    )

    def create(writer: Writer) -> None:
        rows_of = open_split(store, split)
        values = {
            side: unit_rows(exact.array(f"{side}_codes").astype(np.float64)) for side in MODALITIES
        }
        training = []
        for side, rows in (("sketch", rows_of.train_sketches), ("image", rows_of.train_images)):
            usable = usable_rows(store.open(sides[f"{side}_features"]))
            training.append(values[side][rows[usable[rows]]])
        learned = IterativeQuantization.fit(np.concatenate(training), bits, seed=seed)
        for side in MODALITIES:
            made = learned.transform(values[side])
            made[~values[side].any(axis=1)] = 0
            writer.put_array(f"{side}_codes", made)
        writer.put_array("errors", learned.errors)

    return produce(store, recipe, create, mode=mode, label=label or f"{bits} bits")


binary_codes = stage_task(binary_codes_of)
