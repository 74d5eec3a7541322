"""Noise of a split: as much as is asked for, always wrong, in training rows alone."""

import numpy as np
import pytest

from cppcl.datasets.splits import category_split, instance_split, noisy_targets
from cppcl.errors import InputError
from cppcl.modality import MODALITIES
from tests.cppcl.datasets.test_splits import make_table

TABLE = make_table(
    [
        (modality, f"label {number % 5}", f"group {number}")
        for modality in ("sketch", "image")
        for number in range(100)
    ]
)


@pytest.mark.parametrize("share", [0.1, 0.4])
def test_wrong_labels(share):
    split = category_split(TABLE, seed=0)
    found = noisy_targets(TABLE, split, seed=3, wrong_labels=share)
    assert sorted(found) == ["image_labels", "sketch_labels"]
    for modality, rows in (("sketch", split.train_sketches), ("image", split.train_images)):
        labels = np.array(TABLE.column("labels", modality))
        given = found[f"{modality}_labels"]
        assert (labels[given] != labels[rows]).sum() == round(share * len(rows))
        assert set(given) <= set(rows)
    assert (found["sketch_labels"] != found["image_labels"]).any()


def test_wrong_labels_are_drawn_from_all_others():
    split = category_split(TABLE, seed=0, train_share=0.9)
    labels = np.array(TABLE.column("labels", "sketch"))
    drawn = set()
    for seed in range(40):
        given = noisy_targets(TABLE, split, seed=seed, wrong_labels=0.3)["sketch_labels"]
        drawn |= set(zip(labels[split.train_sketches], labels[given], strict=True))
    assert len(drawn) == 25


@pytest.mark.parametrize("share", [0.1, 0.4])
def test_wrong_pairs_exchange_groups(share):
    split = instance_split(TABLE, seed=0, n_train=60)
    given = noisy_targets(TABLE, split, seed=3, wrong_pairs=share)["image_groups"]
    assert (given != split.train_images).sum() == round(share * 60)
    assert sorted(given) == split.train_images.tolist()


def test_groups_of_several_images_are_not_exchanged_for_themselves():
    table = make_table([(m, "x", f"g{k % 20}") for m in ("sketch", "image") for k in range(60)])
    split = instance_split(table, seed=0, n_train=15)
    groups = np.array(table.column("groups", "image"))
    given = noisy_targets(table, split, seed=1, wrong_pairs=0.6)["image_groups"]
    assert (groups[given] != groups[split.train_images]).sum() == round(0.6 * 45)


def test_images_of_similar_names_exchange_their_groups():
    names = [f"{letter * 8} {side}" for letter in "abcdefghijklmnopqrst" for side in "xy"]
    table = make_table([(modality, "z", name) for modality in MODALITIES for name in names])
    split = instance_split(table, seed=0, n_train=30)
    rows = split.train_images
    given = noisy_targets(table, split, seed=3, near_pairs=0.2)["image_groups"]
    partner = dict(zip(rows.tolist(), given.tolist(), strict=True))
    assert sum(partner[row] != row for row in partner) == round(0.2 * len(rows) / 2) * 2
    assert all(partner[partner[row]] == row for row in partner)
    groups = table.column("groups", "image")
    pairs = {frozenset((groups[a][:8], groups[b][:8])) for a, b in partner.items() if a != b}
    trained = [groups[row][:8] for row in rows]
    alone = [name for name in trained if trained.count(name) == 1]
    # Twins exchange; others only where one of the two had no twin.
    assert all(len(pair) == 1 or pair & set(alone) for pair in pairs)
    assert any(len(pair) == 1 for pair in pairs)


def test_the_seed_decides():
    split = instance_split(TABLE, seed=0, n_train=60)
    one, same, other = (
        noisy_targets(TABLE, split, seed=seed, wrong_pairs=0.3)["image_groups"]
        for seed in (1, 1, 2)
    )
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)
    assert noisy_targets(TABLE, split, seed=0) == {}


def test_refusals():
    table = make_table([(m, "x", f"g{k}") for m in ("sketch", "image") for k in range(20)])
    split = instance_split(table, seed=0, n_train=10)
    with pytest.raises(InputError, match=r"wrong_labels=0\.3: training samples have 1 label"):
        noisy_targets(table, split, seed=0, wrong_labels=0.3)
    with pytest.raises(InputError, match=r"1 training images .* use a larger share"):
        noisy_targets(table, split, seed=0, wrong_pairs=0.1)
    with pytest.raises(InputError, match="pairs are made wrong in one way"):
        noisy_targets(table, split, seed=0, wrong_pairs=0.4, near_pairs=0.4)
    one_group = make_table([(m, "x", f"g{k // 9}") for m in MODALITIES for k in range(18)])
    split = instance_split(one_group, seed=0, n_train=1)
    with pytest.raises(InputError, match=r"all of the group 'g[01]'; use a smaller"):
        noisy_targets(one_group, split, seed=0, near_pairs=0.5)
