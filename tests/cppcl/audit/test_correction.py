"""Splits after an audit: what is left out, what gets another label, what is left aside."""

from __future__ import annotations

import numpy as np

from cppcl.audit.correction import corrected
from cppcl.audit.verdicts import Verdict
from cppcl.datasets.splits import Split
from cppcl.datasets.table import SampleTable

GROUPS = {"sketch": ["1", "2", "3", "3", "6"], "image": ["1", "2", "3", "4", "4", "6"]}
LABELS = {
    "sketch": ["cat", "cat", "dog", "dog", "cow"],
    "image": ["cat", "cat", "dog", "cow", "cow", "cow"],
}
ROWS = [(m, k, group) for m, found in GROUPS.items() for k, group in enumerate(found)]
IDS = tuple(f"{m}/{k}" for m, k, _ in ROWS)
TABLE = SampleTable(
    ids=IDS,
    sha256=IDS,
    paths=IDS,
    modality=tuple(m for m, _, _ in ROWS),
    labels=tuple(LABELS[m][k] for m, k, _ in ROWS),
    groups=tuple(group for _, _, group in ROWS),
)
SPLIT = Split(np.array([0, 2, 3, 4]), np.array([0, 2, 5]), np.array([1]), np.array([1, 3, 4]))


def test_wrong_pairs_are_left_out_of_training_alone():
    verdicts = [
        Verdict("sketch/0", "image/0", "1", "wrong"),
        Verdict("sketch/1", "image/1", "2", "wrong"),  # of the test
        Verdict("sketch/3", "image/2", "3", "wrong"),  # one of two sketches
        Verdict("sketch/4", "image/5", "9", "wrong"),  # no longer of that group
        Verdict("", "image/5", "cow", "wrong", "dog"),  # a label
    ]
    found = corrected(SPLIT, TABLE, verdicts, target="groups")
    assert found.split.train_sketches.tolist() == [2, 4]
    assert found.split.train_images.tolist() == [2, 5]
    assert found.split.test_sketches is SPLIT.test_sketches
    assert found.split.test_images is SPLIT.test_images
    assert (found.n_left_out, found.n_relabelled, found.n_aside) == (3, 0, 3)
    assert found.given == {}


def test_pairs_are_those_that_training_was_given():
    given = {"image_groups": np.array([5, 2, 0])}
    verdicts = [
        Verdict("sketch/0", "image/5", "1", "wrong"),
        Verdict("sketch/4", "image/5", "6", "wrong"),  # right, but not what is given
    ]
    found = corrected(SPLIT, TABLE, verdicts, target="groups", given=given)
    assert found.split.train_sketches.tolist() == [2, 3, 4]
    assert found.split.train_images.tolist() == [0, 2]
    assert found.given["image_groups"].tolist() == [5, 2]
    assert found.n_aside == 1


def test_wrong_labels_are_replaced_or_left_out():
    given = {"sketch_labels": np.array([4, 2, 3, 0])}  # cow dog dog cat
    verdicts = [
        Verdict("sketch/0", "", "cow", "wrong", "cat"),
        Verdict("sketch/2", "", "dog", "wrong"),
        Verdict("sketch/4", "", "cat", "wrong", "no such label"),
        Verdict("", "image/0", "cat", "wrong", "dog"),
        Verdict("", "image/5", "dog", "wrong", "cat"),  # not what is given
    ]
    found = corrected(SPLIT, TABLE, verdicts, target="labels", given=given)
    assert found.split.train_sketches.tolist() == [0, 3]
    assert [LABELS["sketch"][k] for k in found.given["sketch_labels"]] == ["cat", "dog"]
    assert found.split.train_images.tolist() == [0, 2, 5]
    assert [LABELS["image"][k] for k in found.given["image_labels"]] == ["dog", "dog", "cow"]
    assert (found.n_left_out, found.n_relabelled, found.n_aside) == (2, 2, 1)
