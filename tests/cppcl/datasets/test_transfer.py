"""Two data sets, one to train on and one to ask: their table, and the split between them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cppcl.datasets.splits import transfer_split
from cppcl.datasets.table import SampleTable
from cppcl.datasets.transfer import (
    ROLES,
    answering,
    joined_findings,
    joined_folder,
    joined_table,
    role_of,
)
from cppcl.errors import InputError

PARTS = ("train_sketches", "train_images", "test_sketches", "test_images")


def table_of(rows):
    """Table of (modality, label, group or None, content)."""
    ids = tuple(f"{modality}/{number}" for number, (modality, *_) in enumerate(rows))
    modalities, labels, groups, contents = zip(*rows, strict=True)
    return SampleTable(
        ids=ids,
        sha256=tuple(map(str, contents)),
        paths=ids,
        modality=modalities,
        labels=labels,
        groups=tuple(group or name for name, group in zip(ids, groups, strict=True)),
    )


def classes(first, *labels, each=4):
    """Table of sketches and images of classes without instances, contents counted from first."""
    named = [(m, label) for m in ("sketch", "image") for label in labels for _ in range(each)]
    return table_of([(m, label, None, first + k) for k, (m, label) in enumerate(named)])


def pairs(first, n):
    """Table of n pairs, each a class of its own; persons are called alike in every table."""
    kinds = enumerate(("sketch", "image"))
    return table_of([(m, f"p{k}", f"p{k}", first + 2 * k + i) for i, m in kinds for k in range(n)])


def join(first, second):
    return joined_table(dict(zip(ROLES, (first, second), strict=True)))


def column(table, split, part, name):
    return np.array(table.column(name, "sketch" if "sketch" in part else "image"))[
        getattr(split, part)
    ]


def test_instances_of_the_same_name_are_different_ones():
    first, second = pairs(0, 3), pairs(100, 3)
    table = join(first, second)
    assert len(set(table.groups)) == 6
    assert table.groups[:3] == ("train_on/p0", "train_on/p1", "train_on/p2")
    assert table.labels == first.labels + second.labels
    assert table.sha256 == first.sha256 + second.sha256
    assert [role_of(name) for name in table.ids] == ["train_on"] * 6 + ["test_on"] * 6
    assert answering(table).tolist() == [False] * 3 + [True] * 3
    assert answering(first).tolist() == [True] * 3, "a data set alone answers with all it has"
    assert table.paths[6] == "test_on/sketch/0"


def test_the_same_pictures_twice_are_refused():
    with pytest.raises(InputError, match="train_on and test_on hold the same pictures"):
        join(classes(0, "a", "b"), classes(0, "b", "a"))


def test_findings_name_shared_pictures_and_unseen_classes():
    tables = {"train_on": classes(0, "a", "b"), "test_on": classes(6, "b", "c")}
    shared_sketches, shared_images, unseen = joined_findings(tables)
    assert shared_sketches.startswith("2 of 8 sketches of test_on are in train_on")
    assert shared_images.startswith("2 of 8 images of test_on")
    assert unseen == (
        "1 of 2 classes of test_on are not in train_on, so that training never sees them: 'c'."
    )
    # Labels that are names of instances say nothing.
    assert joined_findings({"train_on": pairs(0, 3), "test_on": pairs(100, 4)}) == []


def test_paths_lead_to_both_wherever_they_lie(tmp_path):
    roots = {role: tmp_path / f"of {role}" for role in ROLES}
    for role, root in roots.items():
        root.mkdir()
        (root / "x").write_text(role)
    folder = joined_folder(roots, tmp_path / "data")
    assert [(folder / role / "x").read_text() for role in ROLES] == list(ROLES)
    assert joined_folder(roots, tmp_path / "data") == folder
    assert joined_folder({**roots, "test_on": tmp_path}, tmp_path / "data") != folder


def test_one_trains_and_the_other_is_asked():
    first, second = classes(0, "a", "b", "only here"), classes(100, "b", "c", each=2)
    table = join(first, second)
    split = transfer_split(table, seed=0)
    for part, n in zip(PARTS, (12, 12, 4, 4), strict=True):
        ids = column(table, split, part, "ids")
        assert len(ids) == n
        assert {role_of(name) for name in ids} == {"train_on" if "train" in part else "test_on"}


def test_what_has_no_counterpart_is_left_out():
    alone = table_of([("sketch", "a", "p0", 90), ("sketch", "z", "p9", 91)])
    both = pairs(0, 4)
    first = SampleTable(
        **{
            name: tuple(f"+{v}" for v in getattr(alone, name)) + getattr(both, name)
            if name in ("ids", "paths")
            else getattr(alone, name) + getattr(both, name)
            for name in ("ids", "sha256", "paths", "modality", "labels", "groups")
        }
    )
    table = join(first, pairs(100, 3))
    split = transfer_split(table, seed=0, target="groups")
    trained = column(table, split, "train_sketches", "groups").tolist()
    assert sorted(trained) == ["train_on/p0", *(f"train_on/p{k}" for k in range(4))]
    by_class = transfer_split(table, seed=0, target="groups", train_share=0.5)
    assert len(set(column(table, by_class, "train_sketches", "groups"))) == 2


@settings(deadline=None, max_examples=60)
@given(
    overlap=st.integers(0, 12),
    target=st.sampled_from(["groups", "labels"]),
    shares=st.tuples(*[st.sampled_from([0.3, 0.7, 1.0])] * 2),
    shared_train=st.sampled_from([0.0, 0.5, 0.9]),
    seed=st.integers(0, 3),
)
def test_training_and_test_share_no_picture(overlap, target, shares, shared_train, seed):
    if target == "groups":
        first, second = pairs(0, 12), pairs(24 - overlap, 12)
    else:
        first, second = classes(0, "a", "b", each=6), classes(24 - overlap, "b", "a", each=6)
    table = join(first, second)
    split = transfer_split(
        table,
        seed=seed,
        target=target,
        train_share=shares[0],
        test_share=shares[1],
        shared_train=shared_train,
    )
    for kind in ("sketches", "images"):
        trained, tested = (
            set(column(table, split, f"{side}_{kind}", "sha256")) for side in ("train", "test")
        )
        assert trained
        assert tested
        assert not trained & tested
    for side in ("train", "test"):
        sketches, images = (
            set(column(table, split, f"{side}_{kind}", target)) for kind in ("sketches", "images")
        )
        assert sketches == images


def test_shared_sketches_are_divided_by_class_and_seed():
    """Sketches of two domains are often the same: half of each class trains, half asks."""
    first = classes(0, "a", "b", each=6)
    second = SampleTable(
        **{
            **vars(first),
            "sha256": first.sha256[:12] + tuple(f"other {k}" for k in range(12)),
        }
    )
    table = join(first, second)
    splits = [transfer_split(table, seed=seed) for seed in (0, 0, 1)]
    for split in splits:
        for part, n in zip(PARTS, (6, 12, 6, 12), strict=True):
            assert len(getattr(split, part)) == n
        for side in ("train", "test"):
            labels = column(table, split, f"{side}_sketches", "labels").tolist()
            assert sorted(labels) == ["a"] * 3 + ["b"] * 3
    first, again, other = (split.train_sketches.tolist() for split in splits)
    assert first == again
    assert first != other
    assert len(transfer_split(table, seed=0, shared_train=0.8).test_sketches) == 2
    with pytest.raises(InputError, match=r"train_on has no class with both .* that are not in"):
        transfer_split(table, seed=0, shared_train=0.0)


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        (classes(0, "a", "b"), {}, r"needs two data sets: dataset: {name: transfer, train_on"),
        (join(pairs(0, 2), pairs(9, 2)), {"train_share": 0}, "train_share is 0; it must lie"),
        (join(pairs(0, 2), pairs(9, 2)), {"shared_train": 1}, "shared_train is 1; it must lie"),
        (
            join(table_of([("sketch", "a", None, 1), ("image", "b", None, 2)]), pairs(9, 2)),
            {},
            "train_on has no class with both sketches and images",
        ),
        (
            join(pairs(9, 2), table_of([("sketch", "a", None, 1), ("image", "a", None, 2)])),
            {"target": "groups"},
            "test_on has no instance with both sketches and images",
        ),
    ],
)
def test_impossible_splits_are_refused(table, options, message):
    with pytest.raises(InputError, match=message):
        transfer_split(table, seed=0, **options)
