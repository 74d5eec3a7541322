"""Seeded splits for any table, and published ones."""

import json
import re
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cppcl.datasets import Emoji, SampleTable
from cppcl.datasets.splits import (
    Split,
    category_findings,
    category_split,
    instance_split,
    published_names,
    published_split,
    published_text,
    split_from_text,
    split_to_text,
)
from cppcl.errors import InputError

PARTS = [field.name for field in fields(Split)]


def make_table(rows):
    """Table of (modality, label, group or None)."""
    ids = tuple(f"{modality}/{number}" for number, (modality, _, _) in enumerate(rows))
    return SampleTable(
        ids=ids,
        sha256=tuple("0" * 64 for _ in rows),
        paths=ids,
        modality=tuple(modality for modality, _, _ in rows),
        labels=tuple(label for _, label, _ in rows),
        groups=tuple(g or i for i, (_, _, g) in zip(ids, rows, strict=True)),
    )


def columns_of(table, split, part, column):
    values = table.column(column, "sketch" if part.endswith("sketches") else "image")
    return [values[row] for row in getattr(split, part)]


def check_invariants(table, split):
    """Return the groups of the training and of the test side, after checking all four parts."""
    groups = {"train": set(), "test": set()}
    for part in PARTS:
        rows = getattr(split, part)
        assert rows.dtype == np.int64
        assert (np.diff(rows) > 0).all()
        groups[part.partition("_")[0]].update(columns_of(table, split, part, "groups"))
    assert not groups["train"] & groups["test"]
    return groups["train"], groups["test"]


def check_covers(table, split, column, wanted):
    """Every sample whose column has a wanted value is on one side, and no other is."""
    for modality, kind in (("sketch", "sketches"), ("image", "images")):
        covered = [*getattr(split, f"train_{kind}"), *getattr(split, f"test_{kind}")]
        values = table.column(column, modality)
        assert sorted(covered) == [row for row, value in enumerate(values) if value in wanted]


# A sample is (modality, number, whether it belongs to a group); labels follow from the number,
# as pictures of one thing have one label.
SAMPLES = st.lists(
    st.tuples(st.sampled_from(["sketch", "image"]), st.integers(0, 11), st.booleans()),
    min_size=1,
    max_size=60,
)
MIXED = SAMPLES.map(
    lambda s: make_table([(m, f"l{g % 3}", f"g{g}" if tied else None) for m, g, tied in s])
)
GROUPED = SAMPLES.map(lambda s: make_table([(m, f"l{g % 3}", f"g{g}") for m, g, _ in s]))
UNGROUPED = SAMPLES.map(lambda s: make_table([(m, f"l{g % 3}", None) for m, g, _ in s]))


@settings(deadline=None, max_examples=200)
@given(GROUPED | MIXED, st.integers(0, 5), st.floats(0.01, 0.99) | st.integers(1, 11))
def test_instance_split_of_any_table(table, seed, n_train):
    both = set(table.column("groups", "sketch")) & set(table.column("groups", "image"))
    if len(both) < 2 or (isinstance(n_train, int) and n_train >= len(both)):
        with pytest.raises(InputError):
            instance_split(table, seed=seed, n_train=n_train)
        return
    split = instance_split(table, seed=seed, n_train=n_train)
    train, test = check_invariants(table, split)
    assert train | test == both
    check_covers(table, split, "groups", both)
    wanted = n_train if isinstance(n_train, int) else n_train * len(both)
    assert abs(len(train) - np.clip(wanted, 1, len(both) - 1)) <= 0.5


@settings(deadline=None, max_examples=300)
@given(GROUPED | UNGROUPED | MIXED, st.integers(0, 5), st.floats(0.01, 0.99), st.integers(2, 4))
def test_category_split_of_any_table(table, seed, share, minimum_groups):
    groups = {(m, x): set() for m in ("sketch", "image") for x in table.labels}
    for modality, label, group in zip(table.modality, table.labels, table.groups, strict=True):
        groups[modality, label].add(group)
    counts = {x: [len(groups[m, x]) for m in ("sketch", "image")] for x in table.labels}
    used = {label for label, pair in counts.items() if min(pair) >= minimum_groups}
    if not used:
        with pytest.raises(InputError, match="no class has"):
            category_split(table, seed=seed, train_share=share, minimum_groups=minimum_groups)
        return
    split = category_split(table, seed=seed, train_share=share, minimum_groups=minimum_groups)
    check_invariants(table, split)
    check_covers(table, split, "labels", used)
    for part in PARTS:
        assert set(columns_of(table, split, part, "labels")) == used
    left_out = " ".join(category_findings(table, minimum_groups=minimum_groups))
    assert {label for label in counts if label in left_out} == set(counts) - used


def test_category_split_shares_each_modality_of_ungrouped_labels():
    rows = [("sketch", x, None) for x in "ab" for _ in range(10)]
    rows += [("image", x, None) for x in "ab" for _ in range(40)]
    rows += [("image", "images only", None)] * 20
    table = make_table(rows)
    split = category_split(table, seed=3, train_share=0.25)
    assert columns_of(table, split, "train_sketches", "labels") == ["a"] * 3 + ["b"] * 3
    assert columns_of(table, split, "train_images", "labels") == ["a"] * 10 + ["b"] * 10
    assert len(split.test_images) == 60
    findings = category_findings(table)
    assert findings == ["label 'images only' has images only and is left out of the split."]


@pytest.mark.parametrize("n_alone", [1, 2, 3, 8])
@pytest.mark.parametrize("n_both", [1, 2, 3])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_category_split_of_pairs_beside_single_pictures(n_alone, n_both, share):
    rows = [(m, "x", f"g{i}") for m in ("sketch", "image") for i in range(n_both)]
    rows += [(m, "x", None) for m in ("sketch", "image") for _ in range(n_alone)]
    split = category_split(make_table(rows), seed=0, train_share=share, minimum_groups=2)
    n = n_both + n_alone
    for kind in ("sketches", "images"):
        n_train, n_test = len(getattr(split, f"train_{kind}")), len(getattr(split, f"test_{kind}"))
        assert n_train + n_test == n
        assert min(n_train, n_test) >= 1
        # Pairs are shared out first, at least one to either side where there are two.
        assert abs(n_train - np.clip(share * n, 1, n - 1)) <= 1


def test_category_findings_name_small_labels():
    table = make_table([(m, x, None) for m in ("sketch", "image") for x in "aabbb"])
    assert category_findings(table, minimum_groups=3) == [
        "1 label with fewer than 3 groups in a modality left out of the split: a."
    ]
    assert category_findings(table, minimum_groups=2) == []


def test_other_seeds_give_other_splits_and_order_does_not_matter():
    rows = [(m, "x", f"g{i}") for m in ("sketch", "image") for i in range(40)]
    table, turned = make_table(rows), make_table(rows[::-1])
    trained = {}
    for seed in range(5):
        split = instance_split(table, seed=seed, n_train=20)
        trained[seed] = frozenset(columns_of(table, split, "train_sketches", "groups"))
        other = instance_split(turned, seed=seed, n_train=0.5)
        assert trained[seed] == set(columns_of(turned, other, "train_images", "groups"))
    assert len(set(trained.values())) == 5


@pytest.mark.parametrize("n_train", [0, 4, -1, 0.0, 1.0, 1.5])
def test_instance_split_refuses_impossible_sizes(n_train):
    table = make_table([(m, "x", f"g{i}") for m in ("sketch", "image") for i in range(4)])
    with pytest.raises(InputError, match=f"n_train is {n_train}"):
        instance_split(table, seed=0, n_train=n_train)


def test_splits_refuse_tables_and_options_that_cannot_be_split():
    lonely = make_table([("sketch", "a", "g"), ("image", "a", "g"), ("image", "b", "h")])
    with pytest.raises(InputError, match="1 groups have both"):
        instance_split(lonely, seed=0, n_train=1)
    with pytest.raises(
        InputError, match=r"no class has 10 sketches .* fullest has 1 .* two of each"
    ):
        category_split(lonely, seed=0)
    with pytest.raises(InputError, match="train_share is 1"):
        category_split(lonely, seed=0, train_share=1)
    with pytest.raises(InputError, match="minimum_groups is 1"):
        category_split(lonely, seed=0, minimum_groups=1)
    two_labels = make_table([("sketch", "a", "g"), ("image", "b", "g")])
    with pytest.raises(InputError, match="group 'g' has the labels 'a' and 'b'"):
        category_split(two_labels, seed=0)


@pytest.fixture(scope="module")
def emoji(tmp_path_factory):
    return Emoji().table(Emoji().fetch(tmp_path_factory.mktemp("data")))


def test_splits_are_published():
    emoji = [f"emoji-{p}-{seed}" for p in ("category", "instance") for seed in range(3)]
    others = ["cufs-official", *(f"cufs-random-{seed}" for seed in range(5))]
    others += ["qmul-chair-v2", "qmul-shoe-v2"]
    others += [f"{p}-{seed}" for p in ("pacs-category", "qmul-test-half") for seed in range(3)]
    assert published_names() == sorted([*emoji, *others, "qmul-test-part"])
    with pytest.raises(InputError, match=r"no published split 'x'; there are cufs-official"):
        published_text("x")


@pytest.mark.parametrize("seed", range(3))
def test_seeded_rules_reproduce_the_published_splits(emoji, seed):
    made = {
        "instance": (instance_split(emoji, seed=seed, n_train=457), "instance_split(n_train=457)"),
        "category": (
            category_split(emoji, seed=seed),
            "category_split(train_share=0.5, minimum_groups=10)",
        ),
    }
    for protocol, (split, rule) in made.items():
        name = f"emoji-{protocol}-{seed}"
        assert split_to_text(split, emoji, rule=rule, seed=seed) == published_text(name)
        read = published_split(name, emoji)
        for part in PARTS:
            np.testing.assert_array_equal(getattr(read, part), getattr(split, part))


def test_published_sizes(emoji):
    instance, category = (published_split(f"emoji-{p}-0", emoji) for p in ("instance", "category"))
    assert [len(getattr(instance, part)) for part in PARTS] == [457, 457, 400, 400]
    assert len(category.train_sketches) + len(category.test_sketches) == 735
    assert len(set(columns_of(emoji, category, "test_images", "labels"))) == 31


SMALL = make_table([(m, "x", f"g{i}") for m in ("sketch", "image") for i in range(4)])


def text_of(**changes):
    split = instance_split(SMALL, seed=0, n_train=2)
    return json.dumps(json.loads(split_to_text(split, SMALL, rule="r", seed=0)) | changes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("not json", "this is not"),
        ("[]", "some are missing"),
        ('{"format": 1}', "some are missing"),
        (text_of(format=9), "has format 9; known is 1"),
        (text_of(test_images=["image/99"]), "1 of 1 samples of test_images are not .*: image/99$"),
        (text_of(test_images=["sketch/0"]), "not among the image samples"),
        (text_of(test_images=[str(i) for i in range(7)]), re.escape("0, 1, 2, 3, 4, ...")),
        (text_of(train_sketches=[f"sketch/{i}" for i in range(4)]), "some sketches twice"),
        (text_of(table_digest="0"), "another version of the table"),
    ],
)
def test_split_files_are_checked_against_the_table(text, message):
    with pytest.raises(InputError, match=message):
        split_from_text(text, SMALL)


def test_ids_suffice_where_exactness_is_waived():
    renewed = replace(SMALL, sha256=tuple("1" * 64 for _ in SMALL.ids))
    with pytest.raises(InputError, match="exact=False"):
        split_from_text(text_of(), renewed)
    split = split_from_text(text_of(), renewed, exact=False)
    np.testing.assert_array_equal(
        split.test_images, instance_split(SMALL, seed=0, n_train=2).test_images
    )
