import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from cppcl.curriculum import ExplicitPairs
from cppcl.curriculum.people.annotators import reliability
from cppcl.curriculum.people.answers import pairs_from_answers
from cppcl.curriculum.people.given_answers import GivenAnswer
from cppcl.curriculum.people.questions import least_sure, next_proposal
from cppcl.curriculum.people.strengths import strengths
from cppcl.curriculum.people.tally import Tally

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


def test_a_tally_equals_a_count_from_the_beginning():
    rng = np.random.default_rng(2)
    ids = [f"s/{k}" for k in range(6)]
    every = list(itertools.permutations([*ids, "elsewhere"], 2))
    answers, seen = [], set()
    for _ in range(150):
        a, b = every[rng.integers(len(every))]
        who = "xyz"[rng.integers(3)]
        if (who, frozenset((a, b))) not in seen:
            seen.add((who, frozenset((a, b))))
            answers.append(GivenAnswer(a, b, ("a", "b", "skip")[rng.integers(3)], who))
    tally = Tally(ids)
    for number, answer in enumerate(answers, start=1):
        tally.add(answer)
        here = [g for g in answers[:number] if "elsewhere" not in g.pair]
        assert tally.reliability() == reliability(here)
    rows = {name: k for k, name in enumerate(ids)}
    pairs = [tuple(sorted(rows[name] for name in g.pair)) for g in here]
    assert tally.times_answered == Counter(pairs)
    for who in "xyz":
        mine = {p: g for p, g in zip(pairs, here, strict=True) if g.annotator == who}
        assert tally.given[who] == mine
    expected = pairs_from_answers(answers, ids).pairs.pairs
    np.testing.assert_array_equal(tally.pairs().pairs, expected)
    assert tally.reliability().n_pairs > 5
