"""Division of training samples into folds, each held out once."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import InputError
from cppcl.modality import MODALITIES
from cppcl.validation import Labels

HeldOut = Literal["classes", "samples"]
Rows = NDArray[np.int64]


def fold_numbers(
    sketch_labels: Labels,
    image_labels: Labels,
    *,
    sketch_groups: Labels | None = None,
    image_groups: Labels | None = None,
    held_out: HeldOut = "classes",
    n_folds: int = 3,
    seed: int = 0,
) -> tuple[Rows, Rows]:
    """Fold that holds out each sketch (K,) and each image (L,).

    Parameters are those of `cppcl.selection.grid_search.grid_search`. Folds differ by at most one
    in classes ('classes'), or in groups ('samples'), where each label also spreads as evenly as
    its size allows.
    """
    if n_folds < 2:
        raise InputError(f"n_folds={n_folds} must be at least 2")
    if held_out not in get_args(HeldOut):
        raise InputError(f"held_out={held_out!r} is not one of {get_args(HeldOut)}")
    if (sketch_groups is None) != (image_groups is None):
        raise InputError("give both of sketch_groups and image_groups, or neither")
    rng = np.random.default_rng(seed)
    labels = np.asarray(sketch_labels), np.asarray(image_labels)
    K = len(labels[0])
    if held_out == "classes":
        units = np.unique(np.concatenate(labels), return_inverse=True)[1]
        both = np.intersect1d(units[:K], units[K:])
        folds = np.full(units.max() + 1, -1)
        folds[both] = _deal(np.zeros(len(both), dtype=np.int64), n_folds, rng, "classes")
        only_one_side = np.flatnonzero(folds < 0)
        folds[only_one_side] = np.arange(len(only_one_side)) % n_folds
        return folds[units[:K]], folds[units[K:]]
    if sketch_groups is None or image_groups is None:
        numbers = [np.unique(of_modality, return_inverse=True)[1] for of_modality in labels]
        sketches, images = (_deal(of_modality, n_folds, rng, "samples") for of_modality in numbers)
        return sketches, images
    groups = np.asarray(sketch_groups), np.asarray(image_groups)
    for modality, of_modality, own in zip(MODALITIES, groups, labels, strict=True):
        if len(of_modality) != len(own):
            raise InputError(
                f"{modality}_groups has {len(of_modality)} entries for {len(own)} labels"
            )
    _, first, units = np.unique(np.concatenate(groups), return_index=True, return_inverse=True)
    label_of_unit = np.unique(np.concatenate(labels), return_inverse=True)[1][first]
    folds = _deal(label_of_unit, n_folds, rng, "groups")
    return folds[units[:K]], folds[units[K:]]


def repeated_folds(
    sketch_labels: Labels,
    image_labels: Labels,
    *,
    n_repeats: int = 1,
    seed: int = 0,
    **options: Any,
) -> tuple[Rows, Rows]:
    """Folds of several divisions, (n_repeats, K) and (n_repeats, L); see `fold_numbers`."""
    if n_repeats < 1:
        raise InputError(f"n_repeats={n_repeats} must be at least 1")
    divisions = [
        fold_numbers(sketch_labels, image_labels, seed=seed + number, **options)
        for number in range(n_repeats)
    ]
    sketches, images = (np.stack(of_modality) for of_modality in zip(*divisions, strict=True))
    return sketches, images


def fewer_rows(
    sketch_labels: Labels,
    image_labels: Labels,
    sketch_groups: Labels,
    image_groups: Labels,
    *,
    held_out: HeldOut,
    most_rows: int,
    seed: int = 0,
) -> tuple[Rows, Rows]:
    """Rows of a part of the samples, about `most_rows` of the larger modality, in order.

    Whole classes are drawn where folds hold out classes, and else whole groups, as large a share
    of each class (at least 3 groups of it, where it has so many).
    """
    labels = np.asarray(sketch_labels), np.asarray(image_labels)
    units = (
        labels if held_out == "classes" else (np.asarray(sketch_groups), np.asarray(image_groups))
    )
    n = [len(of_modality) for of_modality in labels]
    if max(n) <= most_rows:
        return np.arange(n[0]), np.arange(n[1])
    rng = np.random.default_rng(seed)
    _, first, numbers = np.unique(np.concatenate(units), return_index=True, return_inverse=True)
    order = rng.permutation(len(first))
    kept = np.zeros(len(first), dtype=bool)
    share = most_rows / max(n)
    if held_out == "classes":
        kept[order[: max(1, round(share * len(first)))]] = True
    else:
        strata = np.unique(np.concatenate(labels), return_inverse=True)[1][first]
        for label in range(strata.max() + 1):
            members = order[strata[order] == label]
            kept[members[: max(3, round(share * len(members)))]] = True
    rows = kept[numbers]
    return np.flatnonzero(rows[: n[0]]), np.flatnonzero(rows[n[0] :])


def _deal(strata: Rows, n_folds: int, rng: np.random.Generator, what: str) -> Rows:
    """Shuffle units, then deal them out in turn, stratum after stratum."""
    if len(strata) < n_folds:
        raise InputError(f"n_folds={n_folds}, but there are {len(strata)} {what} to hold out")
    shuffled = rng.permutation(len(strata))
    order = shuffled[np.argsort(strata[shuffled], kind="stable")]
    folds = np.empty(len(strata), dtype=np.int64)
    folds[order] = np.arange(len(strata)) % n_folds
    return folds
