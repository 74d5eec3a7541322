"""Seeded splits of a sample table."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cppcl.datasets.table import SampleTable
from cppcl.errors import InputError
from cppcl.modality import MODALITIES, Modality
from cppcl.validation import counted

OfLabel = dict[Modality, set[str]]
"""Groups of a label with samples of each modality."""


@dataclass(frozen=True, eq=False)
class Split:
    """Training and test samples of both modalities.

    Parameters
    ----------
    train_sketches, train_images, test_sketches, test_images : (n,) int64
        Row numbers within the modality, sorted.
    """

    train_sketches: NDArray[np.int64]
    train_images: NDArray[np.int64]
    test_sketches: NDArray[np.int64]
    test_images: NDArray[np.int64]


def instance_split(table: SampleTable, *, seed: int, n_train: int | float) -> Split:
    """Split the groups that have both a sketch and an image; whole groups go to training or test.

    Samples of other groups are left out.

    Parameters
    ----------
    table : SampleTable
        The samples.
    seed : int
        Same seed and groups, same split, on any machine.
    n_train : int or float
        Number of training groups, or their share in (0, 1).
    """
    sketch_groups, image_groups = (set(table.column("groups", m)) for m in MODALITIES)
    groups = sketch_groups & image_groups
    if len(groups) < 2:
        raise InputError(
            f"{len(groups)} groups have both a sketch and an image; an instance split needs two"
        )
    if isinstance(n_train, float):
        if not 0 < n_train < 1:
            raise InputError(f"n_train is {n_train}; a share must lie between 0 and 1")
        n_train = share_of(n_train, len(groups))
    if not 0 < n_train < len(groups):
        raise InputError(
            f"n_train is {n_train}, but {len(groups)} groups have both a sketch and an image: "
            f"it must lie between 1 and {len(groups) - 1}"
        )
    return split_of_groups(table, set(shuffled(groups, seed)[:n_train]), groups)


def category_split(
    table: SampleTable, *, seed: int, train_share: float = 0.5, minimum_groups: int = 10
) -> Split:
    """Split within every label; whole groups go to training or test.

    A label takes part when each modality has at least `minimum_groups` groups of it. Every such
    label then has samples of both modalities in training and test. Groups with both modalities,
    with a sketch only and with an image only are divided separately.

    Parameters
    ----------
    table : SampleTable
        The samples. No group may have two labels.
    seed : int
        Same seed and groups, same split, on any machine.
    train_share : float
        Share of the groups of a label that train, in (0, 1).
    minimum_groups : int
        At least 2.
    """
    if not 0 < train_share < 1:
        raise InputError(f"train_share is {train_share}; it must lie between 0 and 1")
    if minimum_groups < 2:
        raise InputError(f"minimum_groups is {minimum_groups}; it must be at least 2")
    groups = groups_of_labels(table)
    used = {
        label: of_label
        for label, of_label in groups.items()
        if min(len(of_label[m]) for m in MODALITIES) >= minimum_groups
    }
    if not used:
        most = max((min(len(s[m]) for m in MODALITIES) for s in groups.values()), default=0)
        mend = f"or set minimum_groups={most}" if most > 1 else "two of each at least"
        raise InputError(
            f"no class has {minimum_groups} sketches and {minimum_groups} images (the fullest has "
            f"{most} of either); add some, {mend}"
        )
    train: set[str] = set()
    for of_label in used.values():
        train |= drawn(of_label, train_share, seed)
    taking_part = {g for of_label in used.values() for m in MODALITIES for g in of_label[m]}
    return split_of_groups(table, train, taking_part)


def category_findings(table: SampleTable, *, minimum_groups: int = 10) -> list[str]:
    """Sentences on the labels that `category_split` leaves out."""
    found = []
    small = []
    for label, of_label in sorted(groups_of_labels(table).items()):
        counts = {m: len(of_label[m]) for m in MODALITIES}
        if not min(counts.values()):
            only = "sketches" if counts["sketch"] else "images"
            found.append(f"label {label!r} has {only} only and is left out of the split.")
        elif min(counts.values()) < minimum_groups:
            small.append(label)
    if small:
        found.append(
            f"{counted(len(small), 'label')} with fewer than {minimum_groups} groups in a "
            f"modality left out of the split: {', '.join(small)}."
        )
    return found


def drawn(of_label: OfLabel, share: float, seed: int) -> set[str]:
    """Draw a share of the groups of one label.

    Groups with both modalities, with a sketch only and with an image only are drawn separately.
    A share between 0 and 1 leaves one at least where there are two.
    """
    if share in (0, 1):
        return set().union(*of_label.values()) if share else set()
    both = of_label["sketch"] & of_label["image"]
    n_both = share_of(share, len(both))
    chosen = set(shuffled(both, seed)[:n_both])
    for modality in MODALITIES:
        alone = of_label[modality] - both
        n_alone = share_of(share, len(of_label[modality])) - n_both
        chosen.update(shuffled(alone, seed)[: max(0, n_alone)])
    return chosen


def share_of(share: float, n: int) -> int:
    """Round half up, and leave at least one for training and for the test if n > 1."""
    count = int(share * n + 0.5)
    return min(max(count, 1), n - 1) if n > 1 else count


def shuffled(names: Collection[str], seed: int) -> list[str]:
    """Order by a hash: independent of any library's random generator and of other names."""
    return sorted(names, key=lambda n: (hashlib.sha256(f"{seed}\0{n}".encode()).digest(), n))


def groups_of_labels(table: SampleTable) -> dict[str, OfLabel]:
    """Groups of every label; `InputError` where a group has two labels."""
    label_of: dict[str, str] = {}
    groups: dict[str, OfLabel] = defaultdict(lambda: {m: set() for m in MODALITIES})
    for modality, label, group in zip(table.modality, table.labels, table.groups, strict=True):
        if label_of.setdefault(group, label) != label:
            raise InputError(
                f"group {group!r} has the labels {label_of[group]!r} and {label!r}; "
                "a split by class needs one label a group"
            )
        groups[label][modality].add(group)
    return groups


def split_of_groups(table: SampleTable, train: set[str], taking_part: set[str]) -> Split:
    """Split by groups: some of those that take part train, the others are the test."""
    rows: dict[tuple[str, Modality], NDArray[np.int64]] = {}
    for modality in MODALITIES:
        groups = table.column("groups", modality)
        for part, chosen in (("train", train), ("test", taking_part - train)):
            inside = [row for row, group in enumerate(groups) if group in chosen]
            rows[part, modality] = np.array(inside, dtype=np.int64)
    return Split(
        train_sketches=rows["train", "sketch"],
        train_images=rows["train", "image"],
        test_sketches=rows["test", "sketch"],
        test_images=rows["test", "image"],
    )
