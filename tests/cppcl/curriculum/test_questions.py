import itertools
from collections import Counter

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from cppcl.curriculum import ExplicitPairs
from cppcl.curriculum.questions import least_sure, next_proposal
from cppcl.curriculum.strengths import strengths

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
