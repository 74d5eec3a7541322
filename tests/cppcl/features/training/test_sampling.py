import itertools
from collections import Counter

import numpy as np
import pytest

from cppcl.errors import InputError
from cppcl.features.training.sampling import Partners, held_out_rows, in_batches

SKETCHES = np.array([3, 0, 1, 1, 7, 0])
IMAGES = np.array([1, 0, 1, 2, 0, 1, 3])


def test_triplets_are_all_that_there_are_and_equally_likely():
    partners = Partners(SKETCHES, IMAGES)
    possible = {
        (s, p, n)
        for s, p, n in itertools.product(range(6), range(7), range(7))
        if SKETCHES[s] == IMAGES[p] != IMAGES[n]
    }
    rng = np.random.default_rng(0)
    n = 6000
    counts = Counter(tuple(map(int, row)) for _ in range(n) for row in partners.triplets(rng))
    assert set(counts) == possible
    of_sketch = Counter(s for s, _, _ in possible)
    assert sum(counts.values()) == n * len(of_sketch)  # each sketch once, but for class 7
    for triplet, count in counts.items():
        share = 1 / of_sketch[triplet[0]]
        assert abs(count - n * share) < 5 * np.sqrt(n * share * (1 - share)) + 1


@pytest.mark.parametrize(
    ("sketches", "images"), [([0, 1], [2, 2]), ([0, 0], [0, 0]), ([0], [])], ids=str
)
def test_nothing_to_compare_is_refused(sketches, images):
    with pytest.raises(InputError, match=f"none of the {len(sketches)} training sketches"):
        Partners(np.array(sketches), np.array(images, dtype=int))


def test_batches_are_even_and_whole():
    batches = in_batches(np.arange(10), 4)
    assert [len(batch) for batch in batches] == [4, 3, 3]
    np.testing.assert_array_equal(np.concatenate(batches), np.arange(10))


def test_whole_classes_are_held_out_where_there_are_many():
    sketches, images = np.arange(100), np.repeat(np.arange(100), 2)
    held = held_out_rows(sketches, images, 0.1, np.random.default_rng(0))
    assert held is not None
    classes = set(sketches[held[0]])
    assert len(classes) == 10
    assert set(images[held[1]]) == classes
    assert held[1].sum() == 20


def test_samples_are_held_out_where_classes_are_few():
    targets = np.repeat(np.arange(4), 25)
    held = held_out_rows(targets, targets, 0.2, np.random.default_rng(0))
    assert held is not None
    for mask in held:
        np.testing.assert_array_equal(np.bincount(targets[mask]), [5, 5, 5, 5])


def test_nothing_is_held_out_where_it_would_be_too_little():
    assert held_out_rows(np.arange(8), np.arange(8), 0.1, np.random.default_rng(0)) is None
    assert held_out_rows(np.arange(99), np.arange(99), 0.0, np.random.default_rng(0)) is None


def test_of_few_classes_only_sketches_that_ask_are_held_out():
    targets = np.repeat(np.arange(4), 50)
    asks = np.arange(200) % 2 == 0
    held = held_out_rows(targets, targets, 0.2, np.random.default_rng(0), asks)
    assert held is not None
    assert not (held[0] & ~asks).any()
    np.testing.assert_array_equal(np.bincount(targets[held[0]]), [5, 5, 5, 5])
    np.testing.assert_array_equal(np.bincount(targets[held[1]]), [10, 10, 10, 10])


def test_of_many_classes_only_those_are_held_out_that_a_sketch_asks_for():
    targets = np.tile(np.arange(100), 2)
    asks = (np.arange(200) < 100) & (targets < 80)
    held = held_out_rows(targets, targets, 0.1, np.random.default_rng(0), asks)
    assert held is not None
    assert len(set(targets[held[0]])) == 8
    assert targets[held[0]].max() < 80
    np.testing.assert_array_equal(held[0], np.isin(targets, targets[held[0]]))  # silent ones too
    nobody = np.zeros(200, np.bool_)
    assert held_out_rows(targets, targets, 0.1, np.random.default_rng(0), nobody) is None
