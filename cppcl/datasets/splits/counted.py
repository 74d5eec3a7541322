"""Splits by numbers of samples a class, and by classes, as the publications state them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cppcl.datasets.splits.seeded import Split, share_of, shuffled
from cppcl.datasets.table import SampleTable
from cppcl.errors import InputError
from cppcl.modality import MODALITIES, Modality

Order = Literal["random", "name"]
SampleCount = int | float | None
_ORDERS = ("random", "name")


def counted_split(
    table: SampleTable,
    *,
    seed: int,
    train_sketches: SampleCount = None,
    train_images: SampleCount = None,
    test_sketches: SampleCount = None,
    test_images: SampleCount = None,
    sketch_order: Order = "random",
) -> Split:
    """Take so many samples of every class for training and for the test.

    A class takes part when both modalities have samples of it. A training sample with the same
    content as a test sample is left out, so that the two never share a picture.

    Parameters
    ----------
    table : SampleTable
        The samples; groups are not looked at.
    seed : int
        Same seed and samples, same split, on any machine.
    train_sketches, train_images, test_sketches, test_images : int, float or None
        Samples of each class: a number, 0 included, a share of them in (0, 1), or None for the
        rest. One of training and test must be given for either modality.
    sketch_order : {'random', 'name'}
        Whether test sketches are drawn, or are the last ones by name.

    Raises
    ------
    InputError
        A number is out of range, a class has fewer samples than asked for, or nothing is left
        for the test.
    """
    if sketch_order not in _ORDERS:
        raise InputError(f"sketch_order is {sketch_order!r}; it must be one of {_ORDERS}")
    wanted: dict[Modality, tuple[SampleCount, SampleCount]] = {
        "sketch": (train_sketches, test_sketches),
        "image": (train_images, test_images),
    }
    for modality, numbers in wanted.items():
        _check_numbers(modality, numbers)
    labels = _labels_of_both(table)
    train: dict[Modality, list[str]] = {m: [] for m in MODALITIES}
    test: dict[Modality, list[str]] = {m: [] for m in MODALITIES}
    for modality in MODALITIES:
        by_label = defaultdict(list)
        for sample, label in zip(
            table.column("ids", modality), table.column("labels", modality), strict=True
        ):
            by_label[label].append(sample)
        for label in labels:
            samples = by_label[label]
            if modality == "sketch" and sketch_order == "name":
                ordered = sorted(samples)
            else:
                ordered = shuffled(samples, seed)
            n_train, n_test = _numbers(wanted[modality], len(ordered), f"{modality} of {label!r}")
            train[modality] += ordered[:n_train]
            test[modality] += ordered[len(ordered) - n_test :]
    return split_of(table, train, test)


def unseen_split(
    table: SampleTable,
    *,
    seed: int,
    n_labels: int | float = 0.2,
    minimum_images: int = 1,
    labels: Sequence[str] = (),
    seen_images: float = 0.0,
) -> Split:
    """Keep whole classes for the test, which training never sees (zero-shot retrieval).

    A training sample with the same content as a test sample is left out.

    Parameters
    ----------
    table : SampleTable
        The samples.
    seed : int
        Same seed and labels, same split, on any machine.
    n_labels : int or float
        Test classes, drawn where `labels` is empty: a number, or below 1 a share of the classes
        that may be drawn (at least one). Publications draw 30 classes of at least 400 images.
    minimum_images : int
        Only classes with at least so many images are drawn.
    labels : sequence of str
        The test classes, if they are published.
    seen_images : float
        Share of the images of each training class that do not train but are in the gallery of the
        test, in [0, 1): above 0 that is a generalised gallery, of seen and unseen classes. Queries
        are of unseen classes all the same.

    Raises
    ------
    InputError
        There are too few such classes, `labels` names one that is not there, or `seen_images` is
        out of range.
    """
    if not 0 <= seen_images < 1:
        raise InputError(f"seen_images is {seen_images}; it must lie in [0, 1)")
    both = _labels_of_both(table)
    if labels:
        if unknown := sorted(set(labels) - set(both)):
            raise InputError(
                f"labels: {', '.join(map(repr, unknown))} are no classes of both modalities here"
            )
        test_labels = set(labels)
    else:
        counts = dict.fromkeys(both, 0)
        for label in table.column("labels", "image"):
            if label in counts:
                counts[label] += 1
        large = [label for label, count in counts.items() if count >= minimum_images]
        if isinstance(n_labels, float) and 0 < n_labels < 1:
            n_labels = max(1, round(n_labels * len(large)))
        if not 0 < n_labels <= len(large):
            raise InputError(
                f"n_labels is {n_labels}, but {len(large)} classes have {minimum_images} images "
                "or more; lower n_labels or minimum_images"
            )
        test_labels = set(shuffled(large, seed)[: int(n_labels)])
    if test_labels == set(both):
        raise InputError(f"all {len(both)} classes are test classes; none is left for training")
    parts: dict[bool, dict[Modality, list[str]]] = {
        tested: {
            modality: [
                sample
                for sample, label in zip(
                    table.column("ids", modality), table.column("labels", modality), strict=True
                )
                if label in both and (label in test_labels) == tested
            ]
            for modality in MODALITIES
        }
        for tested in (False, True)
    }
    if seen_images:
        by_label = defaultdict(list)
        ids, names = table.column("ids", "image"), table.column("labels", "image")
        label_of = dict(zip(ids, names, strict=True))
        for sample in parts[False]["image"]:
            by_label[label_of[sample]].append(sample)
        moved = {
            sample
            for of_label in by_label.values()
            for sample in shuffled(of_label, seed)[: share_of(seen_images, len(of_label))]
        }
        parts[True]["image"] += sorted(moved)
        parts[False]["image"] = [s for s in parts[False]["image"] if s not in moved]
    return split_of(table, parts[False], parts[True])


def split_of(
    table: SampleTable,
    train: dict[Modality, list[str]],
    test: dict[Modality, list[str]],
) -> Split:
    """Split by sample ids, without training samples whose content a test sample has."""
    rows: dict[tuple[str, Modality], NDArray[np.int64]] = {}
    for modality in MODALITIES:
        numbers = {name: row for row, name in enumerate(table.column("ids", modality))}
        content = table.column("sha256", modality)
        tested = [numbers[name] for name in test[modality]]
        seen = {content[row] for row in tested}
        kept = [numbers[n] for n in train[modality] if content[numbers[n]] not in seen]
        rows["train", modality] = np.array(sorted(kept), dtype=np.int64)
        rows["test", modality] = np.array(sorted(tested), dtype=np.int64)
        if not tested:
            raise InputError(f"no {modality} is left for the test")
    return Split(
        train_sketches=rows["train", "sketch"],
        train_images=rows["train", "image"],
        test_sketches=rows["test", "sketch"],
        test_images=rows["test", "image"],
    )


def _labels_of_both(table: SampleTable) -> list[str]:
    sketch_labels, image_labels = (set(table.column("labels", m)) for m in MODALITIES)
    if not (both := sketch_labels & image_labels):
        raise InputError("no class has both sketches and images; a split needs some")
    return sorted(both)


def _check_numbers(modality: Modality, numbers: tuple[SampleCount, SampleCount]) -> None:
    plural = "sketches" if modality == "sketch" else "images"
    if numbers == (None, None):
        raise InputError(f"give train_{plural} or test_{plural}; the other may be the rest")
    for part, number in zip(("train", "test"), numbers, strict=True):
        if isinstance(number, float) and not 0 < number < 1:
            raise InputError(f"{part}_{plural} is {number}; a share must lie between 0 and 1")
        if number is not None and number < 0:
            raise InputError(f"{part}_{plural} is {number}; it must not be negative")


def _numbers(numbers: tuple[SampleCount, SampleCount], n: int, what: str) -> tuple[int, int]:
    """Training and test samples of one class of n samples."""
    train, test = (share_of(x, n) if isinstance(x, float) else x for x in numbers)
    train = n - (test or 0) if train is None else train
    test = n - train if test is None else test
    if min(train, test) < 0 or train + test > n:
        wanted = " and ".join("the rest" if x is None else str(x) for x in numbers)
        raise InputError(f"there are {n} {what}; training and test ask for {wanted}")
    return train, test
