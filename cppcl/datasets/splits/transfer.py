"""The split of two data sets: one trains, the other is the test."""

from __future__ import annotations

from collections import defaultdict
from typing import Literal

from cppcl.datasets.splits.seeded import OfLabel, Split, drawn, groups_of_labels, split_of_groups
from cppcl.datasets.table import SampleTable
from cppcl.datasets.transfer import ROLES, Role, role_of
from cppcl.errors import InputError
from cppcl.modality import MODALITIES, Modality

Classes = dict[str, OfLabel]
"""Groups of either modality, by class."""


def transfer_split(
    table: SampleTable,
    *,
    seed: int,
    target: Literal["groups", "labels"] = "labels",
    train_share: float = 1.0,
    test_share: float = 1.0,
    shared_train: float = 0.5,
) -> Split:
    """Train on the samples of one data set; those of the other are the test.

    A class takes part where its data set has sketches and images of it; with ``target='groups'``
    an instance does. Pictures that both data sets have either train or are tested.

    Parameters
    ----------
    table : SampleTable
        Samples of both, as `cppcl.datasets.transfer.joined_table` joins them.
    seed : int
        Same seed and samples, same split, on any machine. It matters where a share is below 1, or
        where both have some of the same pictures.
    target : {'groups', 'labels'}
        What relevance goes by.
    train_share, test_share : float
        Share of each class of the training data that trains, and of the test data that is
        tested, in (0, 1]; whole groups are drawn.
    shared_train : float
        Share of the pictures of both that trains, in [0, 1); the rest of them is tested.

    Raises
    ------
    InputError
        The table is that of one data set, a share is out of range, or nothing is left for
        training or the test.
    """
    for name, share in {"train_share": train_share, "test_share": test_share}.items():
        if not 0 < share <= 1:
            raise InputError(f"{name} is {share}; it must lie above 0 and not above 1")
    if not 0 <= shared_train < 1:
        raise InputError(f"shared_train is {shared_train}; it must lie in [0, 1)")
    parts = _parts(table, target)
    train = _of_both("train_on", parts["train_on"], target)
    test = _of_both("test_on", parts["test_on"], target)
    contents = _contents(table)
    of_test = set().union(*(contents[group] for group in _groups(test)))
    for label, of_label in train.items():
        shared: OfLabel = {
            m: {g for g in of_label[m] if contents[g] & of_test} for m in MODALITIES
        }
        kept = drawn(shared, shared_train, seed)
        train[label] = {m: of_label[m] - (shared[m] - kept) for m in MODALITIES}
    of_train = set().union(*(contents[group] for group in _groups(train)))
    test = {
        label: {m: {g for g in of_label[m] if not contents[g] & of_train} for m in MODALITIES}
        for label, of_label in test.items()
    }
    train, test = _of_both("train_on", train, target), _of_both("test_on", test, target)
    trained, tested = (
        {group for of_label in classes.values() for group in drawn(of_label, share, seed)}
        for classes, share in ((train, train_share), (test, test_share))
    )
    return split_of_groups(table, trained, trained | tested)


def _parts(table: SampleTable, target: str) -> dict[Role, Classes]:
    """Groups of each data set by class; all instances are of one class where they are sought."""
    if target == "groups":
        sought = {m: set(table.column("groups", m)) for m in MODALITIES}
        classes = {"": sought}
    else:
        classes = groups_of_labels(table)
    parts: dict[Role, Classes] = {
        role: {
            label: {m: {g for g in of_label[m] if role_of(g) == role} for m in MODALITIES}
            for label, of_label in classes.items()
        }
        for role in ROLES
    }
    if not any(map(_groups, parts.values())):
        raise InputError(
            "the split rule 'transfer' needs two data sets: dataset: {name: transfer, "
            "train_on: ..., test_on: ...}"
        )
    return parts


def _of_both(role: Role, classes: Classes, target: str) -> Classes:
    """Classes, or instances, with sketches and images."""
    found: Classes = {}
    for label, of_label in classes.items():
        if target == "groups":
            both = of_label["sketch"] & of_label["image"]
            of_label = dict.fromkeys(MODALITIES, both)
        if all(of_label.values()):
            found[label] = of_label
    if not found:
        what = "instance" if target == "groups" else "class"
        raise InputError(
            f"{role} has no {what} with both sketches and images that are not in the other data "
            "set, too; give other pictures"
        )
    return found


def _contents(table: SampleTable) -> dict[str, set[tuple[Modality, str]]]:
    """Content of the samples of every group."""
    contents: dict[str, set[tuple[Modality, str]]] = defaultdict(set)
    for group, modality, digest in zip(table.groups, table.modality, table.sha256, strict=True):
        contents[group].add((modality, digest))
    return contents


def _groups(classes: Classes) -> set[str]:
    """Groups of all classes."""
    return set().union(*(of_label[m] for of_label in classes.values() for m in MODALITIES))
