"""Division of training samples into folds, each held out once."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import InputError
from cppcl.learning.graph import sorted_labels
from cppcl.modality import MODALITIES
from cppcl.validation import Labels, check_choice, check_labels, check_number

HeldOut = Literal["classes", "samples"]
Rows = NDArray[np.int64]

MOST_REPEATS = 1000
"""Divisions into folds; each trains every combination anew."""


def fold_numbers(
    sketch_labels: Labels,
    image_labels: Labels,
    *,
    sketch_groups: Labels | None = None,
    image_groups: Labels | None = None,
    held_out: HeldOut = "classes",
    n_folds: int = 3,
    seed: int = 0,
    sketch_asks: NDArray[np.bool_] | None = None,
) -> tuple[Rows, Rows]:
    """Fold that holds out each sketch (K,) and each image (L,).

    Parameters are those of `cppcl.selection.grid_search.grid_search`. Folds differ by at most one
    in classes ('classes'), or in groups ('samples'), where each label also spreads as evenly as
    its size allows. Groups with a sketch that asks are spread first, and the others after them.
    Where samples are so few that a fold would hold out no sketch with an image of its label, and
    no group has both, the sketches and the images of each label are dealt to the same folds.
    """
    check_number("n_folds", n_folds, least=2, whole=True)
    check_choice("held_out", held_out, HeldOut)
    check_number("seed", seed, least=0, whole=True)
    if (sketch_groups is None) != (image_groups is None):
        raise InputError("give both of sketch_groups and image_groups, or neither")
    rng = np.random.default_rng(seed)
    labels = _numbers("labels", sketch_labels, image_labels)
    K = len(labels[0])
    asks = _asking(sketch_asks, K)
    if held_out == "classes":
        units = np.unique(np.concatenate(labels), return_inverse=True)[1]
        both = np.intersect1d(units[:K], units[K:])
        folds = np.full(units.max() + 1, -1)
        silent = np.isin(both, units[:K][asks], invert=True)
        folds[both] = _deal(silent.astype(np.int64), n_folds, rng, "classes")
        only_one_side = np.flatnonzero(folds < 0)
        folds[only_one_side] = np.arange(len(only_one_side)) % n_folds
        return folds[units[:K]], folds[units[K:]]
    if sketch_groups is None or image_groups is None:
        numbers = [np.unique(of_modality, return_inverse=True)[1] for of_modality in labels]
        numbers[0] = np.where(asks, numbers[0], numbers[0] + 1 + numbers[0].max())
        sketches, images = (_deal(of_modality, n_folds, rng, "samples") for of_modality in numbers)
        return sketches, images
    groups = _numbers("groups", sketch_groups, image_groups)
    for modality, of_modality, own in zip(MODALITIES, groups, labels, strict=True):
        if len(of_modality) != len(own):
            raise InputError(
                f"{modality}_groups has {len(of_modality)} entries for {len(own)} labels"
            )
    _, first, units = np.unique(np.concatenate(groups), return_index=True, return_inverse=True)
    label_of_unit = np.unique(np.concatenate(labels), return_inverse=True)[1][first]
    folds = _deal(_asking_first(label_of_unit, units, asks), n_folds, rng, "groups")
    dealt = folds[units[:K]], folds[units[K:]]
    if asks.all() and not _all_ask(dealt, labels, n_folds):
        apart = _deal_apart(units[:K], units[K:], label_of_unit, n_folds, rng)
        if apart is not None and _all_ask(apart, labels, n_folds):
            return apart
    return dealt


def repeated_folds(
    sketch_labels: Labels,
    image_labels: Labels,
    *,
    n_repeats: int = 1,
    seed: int = 0,
    **options: Any,
) -> tuple[Rows, Rows]:
    """Folds of several divisions, (n_repeats, K) and (n_repeats, L); see `fold_numbers`."""
    check_number("n_repeats", n_repeats, least=1, most=MOST_REPEATS, whole=True)
    check_number("seed", seed, least=0, whole=True)
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
    sketch_asks: NDArray[np.bool_] | None = None,
) -> tuple[Rows, Rows]:
    """Rows of a part of the samples, about `most_rows` of the larger modality, in order.

    Whole classes are drawn where folds hold out classes, and else whole groups, as large a share
    of each class (at least 3 groups of it, where it has so many), and of its groups with a sketch
    that asks.
    """
    check_choice("held_out", held_out, HeldOut)
    check_number("most_rows", most_rows, least=1, whole=True)
    check_number("seed", seed, least=0, whole=True)
    labels = _numbers("labels", sketch_labels, image_labels)
    groups = _numbers("groups", sketch_groups, image_groups)
    units = labels if held_out == "classes" else groups
    for modality, of_modality, own in zip(MODALITIES, groups, labels, strict=True):
        if len(of_modality) != len(own):
            raise InputError(
                f"{modality}_groups has {len(of_modality)} entries for {len(own)} labels"
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
        strata = _asking_first(strata, numbers, _asking(sketch_asks, n[0]))
        for label in range(strata.max() + 1):
            members = order[strata[order] == label]
            kept[members[: max(3, round(share * len(members)))]] = True
    rows = kept[numbers]
    return np.flatnonzero(rows[: n[0]]), np.flatnonzero(rows[n[0] :])


def _asking(sketch_asks: NDArray[np.bool_] | None, n_sketches: int) -> NDArray[np.bool_]:
    """Which sketches are queries of the fold that holds them out."""
    if sketch_asks is None:
        return np.full(n_sketches, True)
    asks = np.asarray(sketch_asks)
    if asks.shape != (n_sketches,) or asks.dtype != np.bool_:
        raise InputError(
            f"sketch_asks is {asks.dtype} of shape {asks.shape}; give True or False for each of "
            f"{n_sketches} sketches"
        )
    return asks


def _asking_first(strata: Rows, units: Rows, asks: NDArray[np.bool_]) -> Rows:
    """Divide strata of units by whether a sketch of theirs asks, those that do first.

    `units` has the unit of every sketch, and then of every image. All remain as they are where
    every sketch asks.
    """
    if asks.all():
        return strata
    silent = np.isin(np.arange(len(strata)), units[: len(asks)][asks], invert=True)
    divided: Rows = strata + silent * (1 + strata.max())
    return divided


def _numbers(what: str, sketches: Labels, images: Labels) -> tuple[Rows, Rows]:
    """Labels or groups of both modalities as numbers, in their order."""
    of_sketches, of_images = sorted_labels(
        check_labels(sketches, None, f"sketch_{what}"), check_labels(images, None, f"image_{what}")
    )
    if not len(of_sketches) or not len(of_images):
        raise InputError(f"sketch_{what} or image_{what} is empty; give one of each sample")
    return of_sketches, of_images


def _deal(strata: Rows, n_folds: int, rng: np.random.Generator, what: str) -> Rows:
    """Shuffle units, then deal them out in turn, stratum after stratum."""
    if len(strata) < n_folds:
        raise InputError(
            f"n_folds={n_folds}, but there are {len(strata)} {what} to hold out in sketch_labels "
            "and image_labels"
        )
    shuffled = rng.permutation(len(strata))
    order = shuffled[np.argsort(strata[shuffled], kind="stable")]
    folds = np.empty(len(strata), dtype=np.int64)
    folds[order] = np.arange(len(strata)) % n_folds
    return folds


def _all_ask(folds: tuple[Rows, Rows], labels: tuple[Rows, Rows], n_folds: int) -> bool:
    """True if every fold holds out a sketch and an image of the same label."""
    sketches, images = (
        [set(own[of_modality == fold].tolist()) for fold in range(n_folds)]
        for own, of_modality in zip(labels, folds, strict=True)
    )
    return not any(map(set.isdisjoint, sketches, images))


def _deal_apart(
    sketches: Rows, images: Rows, labels: Rows, n_folds: int, rng: np.random.Generator
) -> tuple[Rows, Rows] | None:
    """Deal the units of each modality, those of a label from the same fold on.

    Parameters are the unit of each sample, and the label of each unit. None where a unit has
    samples of both modalities.
    """
    units = np.unique(sketches), np.unique(images)
    if np.isin(*units).any():
        return None
    folds = np.empty(len(labels), dtype=np.int64)
    first = 0
    for label in range(labels.max() + 1):
        members = [rng.permutation(own[labels[own] == label]) for own in units]
        for own in members:
            folds[own] = (first + np.arange(len(own))) % n_folds
        first += min(map(len, members))
    return folds[sketches], folds[images]
