"""Tables of verdicts, what most people say, and splits without what is wrong."""

from __future__ import annotations

import numpy as np
import pytest

from cppcl.audit.leaving_out import without_wrong
from cppcl.audit.verdicts import Verdict, read_verdicts, write_verdicts, wrong_items
from cppcl.datasets.splits import Split
from cppcl.datasets.table import SampleTable
from cppcl.errors import InputError

HEAD = "sketch,image,given,verdict,label"


def test_a_table_is_read_as_it_was_written():
    verdicts = [
        Verdict("s/1", "i/1", "1", "right", "", "Ada", 1.5, "2026-01-02T03:04:05"),
        Verdict("s/2", "", "cat", "wrong", 'a "dog", large', "Bo"),
        Verdict("", "i/2", "cat", "skip"),
    ]
    assert read_verdicts(write_verdicts(verdicts)) == verdicts


def test_a_line_without_a_verdict_decides_nothing():
    (one,) = read_verdicts("sketch,image,given,suggested,score,verdict\ns,i,1,,0.5,\n")
    assert one.verdict == "skip"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sketch,image\n", "line 1: the head lacks the columns given, verdict"),
        (f"{HEAD}\n,,cat,wrong,\n", "line 2: sketch='', image=''"),
        (f"{HEAD}\ns,,cat,maybe,\n", "line 2: verdict='maybe' must be one of right, wrong, skip"),
        (f"{HEAD}\ns,,cat,right,dog\n", "line 2: label='dog': only a wrong label"),
        (f'{HEAD}\ns,,cat,"wrong\n', "no CSV"),
    ],
)
def test_a_wrong_line_is_named(text, message):
    with pytest.raises(InputError, match=message):
        read_verdicts(text)


def test_most_people_decide():
    said = {"a": "wrong wrong right", "b": "wrong right", "c": "skip wrong", "d": "right"}
    verdicts = [Verdict(s, "", "cat", v) for s, text in said.items() for v in text.split()]
    assert set(wrong_items(verdicts)) == {("a", "", "cat"), ("c", "", "cat")}
    named = [Verdict("a", "", "cat", "wrong", label) for label in ("dog", "cow", "cow", "")]
    assert wrong_items(named) == {("a", "", "cat"): "cow"}
    assert wrong_items(named[:2]) == {("a", "", "cat"): ""}


def test_wrong_samples_are_left_out_of_training_alone():
    groups = {"sketch": ["1", "2", "3", "3"], "image": ["1", "2", "3", "4", "4", "5"]}
    rows = [(m, k, group) for m, found in groups.items() for k, group in enumerate(found)]
    ids = [f"{m}/{k}" for m, k, _ in rows]
    table = SampleTable(
        ids=tuple(ids),
        sha256=tuple(ids),
        paths=tuple(ids),
        modality=tuple(m for m, _, _ in rows),
        labels=("cat",) * len(ids),
        groups=tuple(group for _, _, group in rows),
    )
    split = Split(np.array([0, 2, 3]), np.array([0, 2, 3, 5]), np.array([1]), np.array([1, 4]))
    verdicts = [
        Verdict("sketch/0", "image/0", "1", "wrong"),
        Verdict("sketch/1", "image/1", "2", "wrong"),
        Verdict("sketch/3", "image/2", "3", "wrong"),
        Verdict("", "image/5", "cat", "wrong", "dog"),
        Verdict("sketch/9", "image/9", "9", "wrong"),
    ]
    left = without_wrong(split, table, verdicts)
    assert left.train_sketches.tolist() == [2]
    assert left.train_images.tolist() == [2, 3]
    assert left.test_sketches is split.test_sketches
    assert left.test_images is split.test_images
