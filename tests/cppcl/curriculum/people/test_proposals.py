import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.neighbors import NearestNeighbors

from cppcl.curriculum.people import proposals
from cppcl.curriculum.people.proposals import classes_to_ask_within, nearest_pairs
from cppcl.errors import InputError


def by_neighbours(features, classes):
    """The same pairs, by scikit-learn."""
    found = set()
    for number in np.unique(classes):
        rows = np.flatnonzero(classes == number)
        if len(rows) > 1:
            finder = NearestNeighbors(n_neighbors=1, metric="cosine").fit(features[rows])
            nearest = rows[finder.kneighbors(return_distance=False)[:, 0]]
            found |= {(min(p), max(p)) for p in zip(rows.tolist(), nearest.tolist(), strict=True)}
    return found


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("at_once", [3, 1024])
def test_each_sample_is_paired_with_its_nearest_in_class(dtype, at_once, monkeypatch):
    monkeypatch.setattr(proposals, "ROWS_AT_ONCE", at_once)
    rng = np.random.default_rng(0)
    features = rng.standard_normal((60, 8)).astype(dtype) * rng.uniform(0.1, 9, (60, 1))
    classes = rng.integers(0, 7, 60)
    pairs = nearest_pairs(features.astype(dtype), classes)
    assert pairs.dtype == np.int64
    assert len({tuple(p) for p in pairs.tolist()}) == len(pairs)
    assert {tuple(p) for p in pairs.tolist()} == by_neighbours(features, classes)


@given(st.integers(0, 1000))
@settings(max_examples=30, deadline=None)
def test_every_sample_with_company_is_in_a_pair_of_its_class(seed):
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, 5, 20)
    pairs = nearest_pairs(rng.standard_normal((20, 3)), classes)
    assert (classes[pairs[:, 0]] == classes[pairs[:, 1]]).all()
    assert (pairs[:, 0] < pairs[:, 1]).all()
    together = np.bincount(classes, minlength=5)[classes] > 1
    np.testing.assert_array_equal(np.unique(pairs), np.flatnonzero(together))


def test_samples_without_features_take_no_part():
    features = np.array([[1, 0], [0, 0], [np.nan, 1], [1, 0.1], [0, 1], [1e300, 1e300]])
    assert nearest_pairs(features, np.zeros(6)).tolist() in ([[0, 3], [3, 4]], [[3, 4], [0, 3]])


def test_the_order_is_of_the_seed_and_mixes_classes():
    features = np.random.default_rng(0).standard_normal((200, 4))
    classes = np.repeat([0, 1], 100)
    first, second = (nearest_pairs(features, classes, seed=seed) for seed in (0, 1))
    assert first.tolist() == nearest_pairs(features, classes, seed=0).tolist()
    assert first.tolist() != second.tolist()
    assert sorted(first.tolist()) == sorted(second.tolist())
    assert 5 < (classes[first[:30, 0]] == 0).sum() < 25


def test_shapes_must_agree():
    with pytest.raises(InputError, match=r"shape \(3, 2\) and classes \(4,\)"):
        nearest_pairs(np.ones((3, 2)), np.zeros(4))
    assert nearest_pairs(np.ones((0, 2)), np.zeros(0)).shape == (0, 2)


def test_classes_of_one_are_one_class():
    assert classes_to_ask_within(["a", "b", "c"]).tolist() == [0, 0, 0]
    assert classes_to_ask_within(["a", "b", "a"]).tolist() == [0, 1, 0]
    assert classes_to_ask_within([]).tolist() == []
