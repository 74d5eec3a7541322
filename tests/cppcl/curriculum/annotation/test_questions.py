"""Which pairs people are asked about."""

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestNeighbors

from cppcl.curriculum import ExplicitPairs
from cppcl.curriculum.annotation import questions
from cppcl.curriculum.annotation.questions import (
    classes_to_ask_within,
    least_sure,
    nearest_pairs,
    next_proposal,
    strengths,
)
from cppcl.errors import InputError

PROPOSALS = [(0, 1), (2, 3), (1, 2), (4, 5)]


def test_proposals_are_asked_in_order_and_once():
    times = Counter()
    assert next_proposal(PROPOSALS, times, set()) == (0, 1)
    assert next_proposal(PROPOSALS, times, set(), {(0, 1)}) == (2, 3)
    assert next_proposal(PROPOSALS, Counter({(0, 1): 1}), set()) == (2, 3)
    assert next_proposal(PROPOSALS, Counter(PROPOSALS), set()) is None
    assert next_proposal([], times, set()) is None


def test_what_the_fewest_answered_is_asked_again():
    times = Counter({(0, 1): 2, (2, 3): 1, (1, 2): 1})
    assert next_proposal(PROPOSALS, times, set(), again=True) == (2, 3)
    assert next_proposal(PROPOSALS, times, {(2, 3)}, again=True) == (1, 2)
    assert next_proposal(PROPOSALS, times, {(2, 3)}, {(1, 2)}, again=True) == (0, 1)
    assert next_proposal(PROPOSALS, times, set(PROPOSALS[:3]), again=True) == (4, 5)


@pytest.mark.parametrize("variance", [0.5, 1.0, 20.0])
def test_strengths_equal_a_logistic_regression(variance):
    rng = np.random.default_rng(1)
    pairs = np.array([rng.choice(9, 2, replace=False) for _ in range(60)])
    design = np.zeros((60, 9))
    design[np.arange(60), pairs[:, 1]] = 1
    design[np.arange(60), pairs[:, 0]] = -1
    # Each answer and its mirror image: the same likelihood twice, and both classes are there.
    oracle = LogisticRegression(C=variance / 2, fit_intercept=False, tol=1e-10, max_iter=10_000)
    oracle.fit(np.concatenate([design, -design]), np.repeat([1, 0], 60))
    found = strengths(ExplicitPairs(pairs, 9), variance=variance)
    np.testing.assert_allclose(found, oracle.coef_[0], atol=2e-5)
    assert np.ptp(found) > 0.5


def test_strengths_without_answers():
    assert strengths(ExplicitPairs(np.zeros((0, 2), np.int64), 4)).tolist() == [0, 0, 0, 0]
    easy = strengths(ExplicitPairs(np.array([[2, 0]] * 3), 4))
    assert easy[0] == pytest.approx(-easy[2])
    assert easy[0] > 0.5
    assert easy[1] == easy[3] == 0


def test_the_least_sure_pair_has_fewest_answers_then_closest_easiness():
    easiness = np.array([0.0, 1.0, 1.1, 3.0, 3.05])
    classes = np.array([0, 0, 0, 0, 1])
    # Another class does not count, however close.
    assert least_sure(easiness, classes, {}, set()) == (1, 2)
    assert least_sure(easiness, classes, {}, set(), {(1, 2)}) == (0, 1)
    # Samples with fewer answers come first, then pairs that were not asked.
    assert least_sure(easiness, classes, {(1, 2): 1}, set()) == (0, 3)
    everything = Counter(itertools.combinations(range(4), 2))
    assert least_sure(easiness, classes, everything, set()) == (1, 2)
    everything[1, 2] += 1
    assert least_sure(easiness, classes, everything, set()) == (0, 3)
    assert least_sure(easiness, classes, everything, set(), {(0, 3)}) == (0, 1)
    assert least_sure(easiness, classes, {}, set(everything)) is None
    easiness[0] = np.nan
    assert least_sure(easiness, classes, {(1, 2): 1}, set()) == (2, 3)


def by_enumeration(strengths, classes, times, done, shown):
    """The least sure pair, one candidate after the other."""
    of_sample = Counter()
    for pair, n in times.items():
        of_sample.update(dict.fromkeys(pair, n))
    ranked = []
    for number in set(classes):
        rows = sorted(
            (s, row) for row, s in enumerate(strengths) if classes[row] == number and s == s
        )
        for i, j in itertools.combinations(range(len(rows)), 2):
            pair = tuple(sorted((rows[i][1], rows[j][1])))
            if j - i <= 3 and pair not in done and pair not in shown:
                gap = abs(strengths[pair[1]] - strengths[pair[0]])
                ranked.append((times.get(pair, 0), sum(of_sample[r] for r in pair), gap, pair))
    return min(ranked)[3] if ranked else None


@given(st.integers(0, 10_000))
@settings(max_examples=150, deadline=None)
def test_the_least_sure_pair_is_the_least_of_all(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(0, 9))
    easiness = rng.integers(0, 6, n) / 2
    easiness[rng.random(n) < 0.1] = np.nan
    classes = rng.integers(0, 2, n)
    every = list(itertools.combinations(range(n), 2))
    times = {p: int(rng.integers(1, 4)) for p in every if rng.random() < 0.5}
    done = {p for p in every if rng.random() < rng.choice([0.2, 0.9])}
    shown = {p for p in every if rng.random() < 0.1}
    found = least_sure(easiness, classes, times, done, shown)
    assert found == by_enumeration(easiness, classes.tolist(), times, done, shown)


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
    monkeypatch.setattr(questions, "ROWS_AT_ONCE", at_once)
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
