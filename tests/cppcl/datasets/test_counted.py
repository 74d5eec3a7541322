"""Splits by numbers of samples a class, and by classes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cppcl.datasets import SampleTable
from cppcl.datasets.splits import counted_split, split_from_text, unseen_split
from cppcl.errors import InputError

from .test_splits import PARTS, text_of


def make_table(sketches, images, contents=None):
    """Table from the numbers of sketches and of images of each label."""
    rows = [
        (modality, label, f"{label}/{number:02d}")
        for modality, counts in (("sketch", sketches), ("image", images))
        for label, count in counts.items()
        for number in range(count)
    ]
    ids = tuple(f"{modality}/{key}" for modality, _, key in rows)
    return SampleTable(
        ids=ids,
        sha256=tuple(contents or ids),
        paths=ids,
        modality=tuple(modality for modality, _, _ in rows),
        labels=tuple(label for _, label, _ in rows),
        groups=ids,
    )


def kinds(split):
    """(training rows, test rows) of sketches and of images."""
    return {
        "sketch": (split.train_sketches, split.test_sketches),
        "image": (split.train_images, split.test_images),
    }


def per_label(table, modality, rows):
    labels = table.column("labels", modality)
    return Counter(labels[row] for row in rows)


COUNTS = st.dictionaries(st.sampled_from("abcde"), st.integers(1, 9), min_size=1)
NUMBER = st.none() | st.integers(0, 4) | st.floats(0.01, 0.99)


def amounts(numbers, n):
    """Training and test samples of a class of n by the rule, or None where it is impossible."""
    train, test = (
        min(max(int(x * n + 0.5), 1), n - 1)
        if isinstance(x, float) and n > 1
        else int(x * n + 0.5)
        if isinstance(x, float)
        else x
        for x in numbers
    )
    if train is None:
        train = n - test
    elif test is None:
        test = n - train
    return (train, test) if min(train, test) >= 0 and train + test <= n else None


@settings(deadline=None, max_examples=150)
@given(COUNTS, COUNTS, *[NUMBER] * 4, st.integers(0, 3), st.sampled_from(["random", "name"]))
def test_numbers_are_those_asked_for(sketches, images, a, b, c, d, seed, order):
    table = make_table(sketches, images)
    labels = set(sketches) & set(images)
    wanted = {"sketch": (a, b), "image": (c, d)}
    options = dict(
        zip(
            ("train_sketches", "test_sketches", "train_images", "test_images"),
            (a, b, c, d),
            strict=True,
        )
    )
    expected = {}
    for modality, counts in (("sketch", sketches), ("image", images)):
        possible = wanted[modality] != (None, None)
        numbers = {x: amounts(wanted[modality], counts[x]) for x in labels} if possible else {}
        expected[modality] = None if None in numbers.values() or not possible else numbers
        if expected[modality] is not None and not sum(n for _, n in numbers.values()):
            expected[modality] = None
    if not labels or None in expected.values():
        with pytest.raises(InputError):
            counted_split(table, seed=seed, sketch_order=order, **options)
        return
    split = counted_split(table, seed=seed, sketch_order=order, **options)
    for modality, (train, test) in kinds(split).items():
        assert not set(train) & set(test)
        for side, rows in enumerate((train, test)):
            assert rows.dtype == np.int64
            assert (np.diff(rows) > 0).all()
            numbers = {x: n[side] for x, n in expected[modality].items() if n[side]}
            assert per_label(table, modality, rows) == numbers


def test_seeds_differ_and_names_alone_decide():
    table = make_table({"a": 9, "b": 9}, {"a": 9, "b": 9})
    options = {"train_sketches": 3, "train_images": 3}
    splits = [counted_split(table, seed=seed, **options) for seed in range(4)]
    assert len({tuple(s.train_images) for s in splits}) == 4
    larger = make_table({"a": 9, "b": 9, "c": 5}, {"a": 9, "b": 9, "c": 5})
    again = counted_split(larger, seed=0, **options)
    ids = np.array(table.column("ids", "image"))[splits[0].train_images]
    assert set(ids) < set(np.array(larger.column("ids", "image"))[again.train_images])


def test_the_last_by_name_are_the_test():
    table = make_table({"a": 6, "b": 4}, {"a": 2, "b": 2})
    split = counted_split(table, seed=5, test_sketches=3, train_images=1, sketch_order="name")
    ids = table.column("ids", "sketch")
    expected = ["a/03", "a/04", "a/05", "b/01", "b/02", "b/03"]
    assert [ids[row] for row in split.test_sketches] == [f"sketch/{name}" for name in expected]
    options = {"train_sketches": 1, "test_sketches": 2, "train_images": 1}
    split = counted_split(table, seed=5, sketch_order="name", **options)
    assert [ids[row] for row in split.train_sketches] == ["sketch/a/00", "sketch/b/00"]
    tested = [ids[row] for row in split.test_sketches]
    assert tested == [f"sketch/{name}" for name in ("a/04", "a/05", "b/02", "b/03")]


@pytest.mark.parametrize("rule", ["counted", "unseen"])
def test_copies_of_test_samples_do_not_train(rule):
    table = make_table({"a": 4, "b": 4}, {"a": 4, "b": 4})
    if rule == "counted":
        split = counted_split(table, seed=0, train_sketches=2, train_images=2)
    else:
        split = unseen_split(table, seed=0, labels=["a"])
    ids = table.column("ids", "image")
    trained, tested = ids[split.train_images[0]], ids[split.test_images[0]]
    twin = replace(table, sha256=tuple(tested if i == trained else i for i in table.ids))
    if rule == "counted":
        again = counted_split(twin, seed=0, train_sketches=2, train_images=2)
    else:
        again = unseen_split(twin, seed=0, labels=["a"])
    assert list(again.train_images) == list(split.train_images[1:])
    for part in ("test_images", "train_sketches", "test_sketches"):
        np.testing.assert_array_equal(getattr(again, part), getattr(split, part))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "give train_sketches or test_sketches"),
        ({"train_sketches": 1}, "give train_images or test_images"),
        ({"train_sketches": -1, "train_images": 1}, "train_sketches is -1"),
        ({"train_sketches": 1, "test_images": 1.5}, "test_images is 1.5"),
        ({"train_sketches": 1, "train_images": 5}, "4 image of 'a'; .* ask for 5 and the rest"),
        ({"train_sketches": 1, "train_images": 4}, "no image is left for the test"),
        ({"train_sketches": 3, "test_sketches": 2, "train_images": 1}, "ask for 3 and 2"),
        ({"train_sketches": 1, "train_images": 1, "sketch_order": "size"}, "sketch_order is"),
    ],
)
def test_what_cannot_be_counted_is_told(options, message):
    table = make_table({"a": 4}, {"a": 4})
    with pytest.raises(InputError, match=message):
        counted_split(table, seed=0, **options)


def test_classes_of_one_side_take_no_part():
    table = make_table({"a": 4, "b": 4}, {"a": 4, "c": 4})
    split = counted_split(table, seed=0, train_sketches=2, train_images=2)
    assert per_label(table, "sketch", split.test_sketches) == {"a": 2}
    with pytest.raises(InputError, match="no class has both"):
        counted_split(make_table({"a": 1}, {"b": 1}), seed=0, train_sketches=0, train_images=0)


@settings(deadline=None, max_examples=100)
@given(COUNTS, COUNTS, st.integers(1, 4), st.integers(1, 6), st.integers(0, 3))
def test_unseen_classes_are_whole(sketches, images, n_labels, minimum, seed):
    table = make_table(sketches, images)
    both = set(sketches) & set(images)
    large = {label for label in both if images[label] >= minimum}
    options = {"seed": seed, "n_labels": n_labels, "minimum_images": minimum}
    if n_labels > len(large) or n_labels == len(both) or not both:
        with pytest.raises(InputError):
            unseen_split(table, **options)
        return
    split = unseen_split(table, **options)
    tested = set(per_label(table, "image", split.test_images))
    assert len(tested) == n_labels
    assert tested <= large
    for modality, counts in (("sketch", sketches), ("image", images)):
        train, test = kinds(split)[modality]
        assert per_label(table, modality, test) == {x: counts[x] for x in tested}
        assert per_label(table, modality, train) == {x: counts[x] for x in both - tested}


@pytest.mark.parametrize(("share", "n_tested"), [(0.2, 1), (0.5, 3), (0.01, 1)])
def test_a_share_of_the_classes_is_unseen(share, n_tested):
    table = make_table(dict.fromkeys("abcdef", 2), dict.fromkeys("abcdef", 3))
    split = unseen_split(table, seed=0, n_labels=share)
    assert len(per_label(table, "image", split.test_images)) == n_tested


def test_unseen_classes_can_be_named():
    table = make_table(dict.fromkeys("abc", 2), dict.fromkeys("abc", 3))
    split = unseen_split(table, seed=0, labels=("b",))
    assert per_label(table, "image", split.test_images) == {"b": 3}
    with pytest.raises(InputError, match="'x', 'y' are no classes"):
        unseen_split(table, seed=0, labels=("y", "b", "x"))
    with pytest.raises(InputError, match="all 3 classes are test classes"):
        unseen_split(table, seed=0, labels="abc")


SMALL = make_table({"x": 4}, {"x": 4})


def named(**changes):
    """The small split of test_splits, over the ids of `SMALL`."""
    sides = {
        "train_sketches": [0, 1],
        "test_sketches": [2],
        "train_images": [3],
        "test_images": [0],
    }
    ids = {
        part: [f"{'sketch' if 'sketches' in part else 'image'}/x/{n:02d}" for n in numbers]
        for part, numbers in sides.items()
    }
    return text_of(**ids | changes)


def test_the_rest_is_what_the_other_side_does_not_name():
    split = split_from_text(named(train_sketches="rest", test_images="rest"), SMALL, exact=False)
    assert [list(getattr(split, part)) for part in PARTS] == [[0, 1, 3], [3], [2], [0, 1, 2]]
    twins = replace(SMALL, sha256=("same",) * 4 + SMALL.sha256[4:])
    split = split_from_text(named(train_sketches="rest"), twins, exact=False)
    assert [list(getattr(split, part)) for part in PARTS] == [[], [3], [2], [0]]
    split = split_from_text(named(test_sketches="rest"), twins, exact=False)
    assert [list(getattr(split, part)) for part in PARTS] == [[0, 1], [3], [2, 3], [0]]
    with pytest.raises(InputError, match="train_sketches and test_sketches are both the rest"):
        split_from_text(named(train_sketches="rest", test_sketches="rest"), SMALL, exact=False)
