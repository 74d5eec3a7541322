"""What answers say about pairs, and how scores agree with them."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau, spearmanr

from cppcl.curriculum import ExplicitPairs
from cppcl.curriculum.annotation.answered_pairs import (
    agreement,
    count_in_cycles,
    pairs_from_answers,
)
from cppcl.curriculum.annotation.answers import PairAnswer
from cppcl.errors import InputError

IDS = ["cat/1", "cat/2", "cat/3", "dog/1"]
ANSWERS = [
    PairAnswer("cat/1", "cat/2", "a"),
    PairAnswer("cat/2", "cat/3", "b"),
    PairAnswer("cat/3", "cat/1", "skip"),
    PairAnswer("cat/2", "elsewhere", "a"),
]


def test_pairs_are_harder_then_easier_and_everything_is_counted():
    found = pairs_from_answers(ANSWERS, IDS)
    np.testing.assert_array_equal(found.pairs.pairs, [[1, 0], [1, 2]])
    assert found.counts() == {
        "pairs": 2,
        "answers": 4,
        "skipped": 1,
        "of other samples": 1,
        "contradicted": 0,
        "in cycles": 0,
    }


def test_contradictions_and_cycles_are_kept_and_counted():
    answers = [
        PairAnswer("cat/1", "cat/2", "a"),
        PairAnswer("cat/2", "cat/1", "a"),  # the other way
        PairAnswer("cat/1", "cat/2", "a"),  # said twice
        PairAnswer("cat/2", "cat/3", "a"),
        PairAnswer("cat/3", "dog/1", "a"),
    ]
    found = pairs_from_answers(answers, IDS)
    assert len(found.pairs) == 5
    assert found.n_contradicted == 1
    assert found.n_in_cycles == 3
    closed = pairs_from_answers([*answers, PairAnswer("dog/1", "cat/2", "a")], IDS)
    assert closed.n_in_cycles == 6
    assert pairs_from_answers([], IDS).counts()["pairs"] == 0


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=10))
@settings(max_examples=60, deadline=None)
def test_pairs_on_cycles_equal_reachability(pairs):
    pairs = [(a, b) for a, b in pairs if a != b]
    reached = np.eye(6, dtype=bool)
    for a, b in pairs:
        reached[a, b] = True
    for k, i, j in itertools.product(range(6), repeat=3):
        reached[i, j] |= reached[i, k] and reached[k, j]
    expected = sum(bool(reached[b, a]) for a, b in pairs)
    assert count_in_cycles(np.array(pairs, dtype=np.int64).reshape(-1, 2), 6) == expected


def test_a_share_of_the_decided_pairs():
    ids = [str(k) for k in range(40)]
    answers = [PairAnswer(str(k), str(k + 1), "b") for k in range(39)]
    some = pairs_from_answers(answers, ids, share=0.6, seed=3)
    assert len(some.pairs) == round(0.6 * 39)
    assert {tuple(p) for p in some.pairs.pairs.tolist()} <= {(k, k + 1) for k in range(39)}
    again = pairs_from_answers(answers, ids, share=0.6, seed=3)
    np.testing.assert_array_equal(some.pairs.pairs, again.pairs.pairs)
    other = pairs_from_answers(answers, ids, share=0.6, seed=4)
    assert not np.array_equal(some.pairs.pairs, other.pairs.pairs)
    with pytest.raises(InputError, match=r"answer_share=1\.5"):
        pairs_from_answers(answers, ids, share=1.5)


def test_agreement_with_a_full_order_is_kendall_and_spearman():
    rng = np.random.default_rng(0)
    scores, human = rng.normal(size=12), rng.normal(size=12)
    human += scores
    pairs = [(a, b) for a, b in itertools.permutations(range(12), 2) if human[b] > human[a]]
    found = agreement(scores, ExplicitPairs(np.array(pairs), 12))
    assert found.n_pairs == 66
    assert found.n_samples == 12
    assert found.kendall == pytest.approx(kendalltau(scores, human).statistic)
    assert found.spearman == pytest.approx(spearmanr(scores, human).statistic)
    opposite = agreement(-scores, ExplicitPairs(np.array(pairs), 12))
    assert opposite.kendall == pytest.approx(-found.kendall)


def test_agreement_leaves_out_what_has_no_score():
    pairs = ExplicitPairs(np.array([[0, 1], [1, 2], [3, 2]]), 4)
    found = agreement(np.array([1.0, 2.0, 2.0, np.nan]), pairs)
    assert (found.n_pairs, found.n_samples) == (2, 3)
    assert found.kendall == 0.5  # one alike, one tie
    nothing = agreement(np.full(4, np.nan), pairs)
    assert nothing.n_pairs == nothing.n_samples == 0
    assert np.isnan([nothing.kendall, nothing.spearman]).all()
