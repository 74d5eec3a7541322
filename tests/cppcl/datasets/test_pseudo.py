"""Pseudo-sketches in a table and in a split: rows of real samples stay what they are."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from cppcl.datasets import SampleTable
from cppcl.datasets.pseudo import real_samples, train_on_contours, with_pseudo_sketches
from cppcl.datasets.splits.seeded import Split
from cppcl.datasets.unfinished import drawn_share
from cppcl.errors import InputError

N = 8
REAL = SampleTable(
    ids=("sketch/a", "sketch/b", *(f"image/{n}" for n in range(N))),
    sha256=tuple(map(str, range(N + 2))),
    paths=("s/a.png", "s/b.png", *(f"i/{n}.png" for n in range(N))),
    modality=("sketch", "sketch", *["image"] * N),
    labels=("cat", "dog", *["cat", "dog"] * (N // 2)),
    groups=("a", "b", *(f"g{n}" for n in range(N))),
)
SPLIT = Split(*map(np.array, ([0], [0, 1, 2, 3, 4, 5], [1], [6, 7])))


def test_contours_are_sketches_of_the_instance_of_their_image():
    table = with_pseudo_sketches(REAL, {1: "x", 4: "y"})
    assert table.column("ids", "sketch")[2:] == ["sketch/contours-of/1", "sketch/contours-of/4"]
    assert table.column("groups", "sketch")[2:] == ["g1", "g4"]
    assert table.column("labels", "sketch")[2:] == ["dog", "cat"]
    assert table.column("paths", "sketch") == [
        "pictures/s/a.png", "pictures/s/b.png", "contours/000001.png", "contours/000004.png",
    ]  # fmt: skip
    assert table.column("ids", "image") == REAL.column("ids", "image")
    assert real_samples(table).ids == REAL.ids
    assert real_samples(REAL) is REAL


def test_a_share_of_each_class_of_training_images_trains():
    table = with_pseudo_sketches(REAL, dict.fromkeys(range(N), "x"))

    def added(share: float, seed: int = 0) -> list[str]:
        split = train_on_contours(table, SPLIT, share, seed=seed)
        assert split.train_sketches[0] == 0
        assert split.test_sketches.tolist() == [1]
        return [table.column("ids", "sketch")[row] for row in split.train_sketches[1:]]

    assert added(1.0) == [f"sketch/contours-of/{n}" for n in range(6)]
    some = added(0.67)
    assert len(some) == 4
    assert set(added(0.1)) < set(some) < set(added(1.0))
    assert {int(name[-1]) % 2 for name in added(0.1)} == {0, 1}, "one of each class at least"
    assert len({tuple(added(0.34, seed)) for seed in range(9)}) > 1
    with pytest.raises(InputError, match="none of the training images has contours"):
        train_on_contours(with_pseudo_sketches(REAL, {7: "x"}), SPLIT, 1.0, seed=0)


def test_contours_of_a_thing_with_a_number_for_its_name_are_whole():
    assert drawn_share("sketch/2600/040") == 0.4
    assert drawn_share("sketch/contours-of/2600") is None


def test_a_class_called_like_the_prefix_is_real():
    ids = ("sketch/contours-of/a.png", *REAL.ids[1:])
    named = dataclasses.replace(REAL, ids=ids)
    assert real_samples(named) is named
    assert real_samples(with_pseudo_sketches(named, {1: "x"})).ids == ids
