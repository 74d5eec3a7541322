"""Turn scores into partial curricula over the training samples of a split."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cppcl.curriculum import pairs_from_scores
from cppcl.datasets.splits import Split
from cppcl.datasets.table import Modality, SampleTable
from cppcl.errors import InputError
from storage import Recipe, Reference, Writer
from tasks.extract import usable_rows
from tasks.fetch import open_pictures
from tasks.split import open_split
from tasks.stage import Mode, StageResult, produce, stage_task
from tasks.workspace import Workspace

VERSION = "1"
Target = Literal["groups", "labels"]


def training_rows(split: Split, modality: Modality) -> NDArray[np.int64]:
    """Training rows of one modality."""
    return split.train_sketches if modality == "sketch" else split.train_images


def test_rows(split: Split, modality: Modality) -> NDArray[np.int64]:
    """Test rows of one modality."""
    return split.test_sketches if modality == "sketch" else split.test_images


def targets(
    table: SampleTable, modality: Modality, target: Target, rows: NDArray[np.int64]
) -> NDArray[np.str_]:
    """Which class, or which instance, each of these rows belongs to."""
    return np.array(table.column(target, modality), dtype=str)[rows]


def curricula_of_split(
    *,
    workspace: Workspace,
    table: Reference,
    split: Reference,
    sketch_scores: Reference,
    image_scores: Reference,
    target: Target,
    options: dict[str, Any],
    what: str = "",
    mode: Mode = "reuse",
) -> StageResult:
    """Publish the pairs (harder, easier) of both modalities.

    Pairs hold row numbers into that modality's training rows, in the order of the split.
    """
    store = workspace.store
    recipe = Recipe(
        "curricula",
        VERSION,
        {"target": target, **options},
        {
            "table": table,
            "split": split,
            "sketch_scores": sketch_scores,
            "image_scores": image_scores,
        },
    )

    def create(writer: Writer) -> None:
        samples = open_pictures(store, table).table
        rows_of = open_split(store, split)
        scores: dict[Modality, Reference] = {"sketch": sketch_scores, "image": image_scores}
        for modality, reference in scores.items():
            artifact = store.open(reference)
            if (dimension := artifact.shape("features")[1]) != 1:
                raise InputError(
                    f"curriculum.{modality}: {artifact.parameters['extractor']!r} gives "
                    f"{dimension} values a picture, but a score is one value; use 'edgeness', "
                    "'colour_contrast', or 'precomputed' on a matrix with one column"
                )
            values = artifact.array("features")[:, 0].astype(np.float64)
            values[~usable_rows(artifact)] = np.nan
            rows = training_rows(rows_of, modality)
            curriculum = pairs_from_scores(
                values[rows], targets(samples, modality, target, rows), **options
            )
            writer.put_array(f"{modality}_pairs", curriculum.pairs)

    return produce(store, recipe, create, mode=mode, what=what or "pairs")


build_curricula = stage_task(curricula_of_split)
