"""Samples of a split: their pictures, which rows train and which test, and what they belong to.

The one place that reads a sample table, a split and the rows that could be used. Workers import it
too, so it imports no Prefect.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cppcl.curriculum import Curriculum
from cppcl.curriculum.union import curriculum_from_arrays
from cppcl.datasets.pseudo import real_rows
from cppcl.datasets.splits import (
    Split,
)
from cppcl.datasets.table import SampleTable
from cppcl.datasets.transfer import answering
from cppcl.modality import MODALITIES, Modality
from storage import Artifact, Reference, Store

Target = Literal["groups", "labels"]
PARTS = "parts.json"
"""Parts of the features of an `extract` artifact, in order: the name and width of each."""
GIVEN = "given_"
"""Prefix of arrays of a noisy `split` artifact; see `cppcl.datasets.splits.noise`."""
SPLIT_PARTS = ("train_sketches", "train_images", "test_sketches", "test_images")


@dataclass(frozen=True)
class Pictures:
    """A sample table with the folder that its paths are relative to."""

    table: SampleTable
    root: Path
    licence: str
    findings: tuple[str, ...]


def open_pictures(store: Store, reference: Reference) -> Pictures:
    """Read what `fetch` stored."""
    artifact = store.open(reference)
    about = artifact.json("about.json")
    return Pictures(
        table=SampleTable.from_csv(artifact.text("samples.csv")),
        root=pictures_root(artifact),
        licence=about["licence"],
        findings=tuple(about["findings"]),
    )


def pictures_root(artifact: Artifact) -> Path:
    """Folder that paths of a sample table are relative to."""
    return Path(artifact.run["notes"]["root"])


def open_split(store: Store, reference: Reference) -> Split:
    """Read what `split` stored."""
    artifact = store.open(reference)
    return Split(**{part: artifact.array(part).astype(np.int64) for part in SPLIT_PARTS})


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


def given_targets(
    store: Store,
    split: Reference,
    table: SampleTable,
    modality: Modality,
    target: Target,
    rows: NDArray[np.int64],
) -> NDArray[np.str_]:
    """Which class, or which instance, training rows are said to belong to.

    That is what they belong to, but where the split has noise.
    """
    artifact, name = store.open(split), f"{GIVEN}{modality}_{target}"
    if name in artifact.names:
        said = np.arange(len(table.rows(modality)))
        said[training_rows(open_split(store, split), modality)] = artifact.array(name)
        rows = said[rows]
    return targets(table, modality, target, rows)


def usable_rows(artifact: Artifact) -> NDArray[np.bool_]:
    """Which rows of an `extract` artifact hold features."""
    return artifact.array("ok").astype(bool)


def part_widths(artifact: Artifact) -> tuple[int, ...]:
    """Number of columns of each part of the features of an `extract` artifact, in order.

    The features of one extractor are a single part; those of a combination have one for each of
    its extractors.
    """
    return tuple(part["width"] for part in artifact.json(PARTS))


def gallery_rows(artifact: Artifact, table: SampleTable) -> NDArray[np.int64]:
    """Rows of an `extract` artifact of images that a search may answer with."""
    return np.flatnonzero(usable_rows(artifact) & answering(table)).astype(np.int64)


def seen_in_training(table: SampleTable, split: Split, target: Target) -> bool:
    """True if most test sketches are of a class that training sketches have."""
    known, asked = (
        targets(table, "sketch", target, rows)
        for rows in (split.train_sketches, split.test_sketches)
    )
    return bool(np.isin(asked, known).mean() >= 0.5) if len(asked) else True


@dataclass(frozen=True)
class TrainingSamples:
    """Training samples of one modality.

    Attributes
    ----------
    modality : {'sketch', 'image'}
        Which.
    rows : (n,) int64
        Rows of the modality, in the sample table and in its features.
    kept : (m,) bool
        Which of the m training rows of the split these are.
    labels, groups : (n,) str
        What relevance goes by, and the instance of each, as they are given: wrong ones included
        where the split has noise.
    right : (n,) bool
        Whether the given label is the true one; methods must not know.
    asks : (n,) bool
        False for pseudo-sketches, which train and are never queries.
    """

    modality: Modality
    rows: NDArray[np.int64]
    kept: NDArray[np.bool_]
    labels: NDArray[np.str_]
    groups: NDArray[np.str_]
    right: NDArray[np.bool_]
    asks: NDArray[np.bool_]

    def only(self, positions: NDArray[np.int64]) -> TrainingSamples:
        """Some of these samples, by their positions."""
        kept = np.zeros_like(self.kept)
        kept[np.flatnonzero(self.kept)[positions]] = True
        return TrainingSamples(
            self.modality,
            self.rows[positions],
            kept,
            self.labels[positions],
            self.groups[positions],
            self.right[positions],
            self.asks[positions],
        )

    def features(self, store: Store, reference: Reference) -> NDArray[np.floating]:
        """Their rows of an `extract` artifact, (n, m)."""
        return store.open(reference).rows("features", self.rows)

    def curriculum(self, store: Store, reference: Reference | None) -> Curriculum | None:
        """Their pairs of a `curricula` artifact."""
        if reference is None:
            return None
        return open_curriculum(store, reference, self.modality, self.kept)


def open_curriculum(
    store: Store, reference: Reference, modality: Modality, kept: NDArray[np.bool_]
) -> Curriculum:
    """Read the curriculum of one modality, restricted to training samples that are kept.

    Parameters
    ----------
    store : Store
        Where the artifact is.
    reference : Reference
        A `curricula` artifact.
    modality : {'sketch', 'image'}
        Whose pairs.
    kept : (n,) bool
        Which training samples have features; pairs refer to those alone afterwards.
    """
    artifact, prefix = store.open(reference), f"{modality}_"
    names = [name for name in artifact.names if name.startswith(prefix)]
    arrays = {name.removeprefix(prefix): artifact.array(name) for name in names}
    if len(arrays) > 1 and not len(arrays["pairs"]):
        del arrays["pairs"]
    return curriculum_from_arrays(arrays, len(kept)).restrict(np.flatnonzero(kept))


def training_samples(
    store: Store,
    *,
    table: Reference,
    split: Reference,
    features: dict[Modality, Reference],
    target: Target,
    at_least_one: bool = False,
    only_right: bool = False,
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
    only_right : bool
        Leave out samples that are given a wrong label or partner, which nobody can know.
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
        labels, groups = (
            given_targets(store, split, samples, modality, t, rows) for t in (target, "groups")
        )
        # Without noise nobody knows better than what is given.
        right = np.full(len(rows), True)
        if "noise" in store.open(split).parameters:
            right = labels == targets(samples, modality, target, rows)
        asks = real_rows(samples)[samples.rows(modality)[rows]]
        found.append(TrainingSamples(modality, rows, kept, labels, groups, right, asks))
    return [_right_ones(found, samples) for samples in found] if only_right else found


def _right_ones(both: list[TrainingSamples], samples: TrainingSamples) -> TrainingSamples:
    """Samples that are right; of pairs, a sketch is wrong whose image is."""
    right = samples.right.copy()
    for other in both:
        # Where a group has one wrong member and no right one, what it is paired with is wrong.
        lost = np.setdiff1d(other.labels[~other.right], other.labels[other.right])
        right &= ~np.isin(samples.labels, lost)
    return samples.only(np.flatnonzero(right))
