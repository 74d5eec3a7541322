import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cppcl.curriculum import pairs_from_scores
from cppcl.errors import InputError


def listed(scores, labels, delta, within_class):
    """Every admissible pair, by looking at all of them."""
    threshold = delta * np.nanstd(scores) if np.isfinite(scores).any() else 0
    return {
        (harder, easier)
        for harder in range(len(scores))
        for easier in range(len(scores))
        if scores[easier] > scores[harder] + threshold
        and (not within_class or labels[harder] == labels[easier])
    }


def as_set(curriculum):
    pairs = {tuple(pair) for pair in curriculum.pairs.tolist()}
    assert len(pairs) == len(curriculum)
    return pairs


@given(
    scores=st.lists(st.integers(0, 5) | st.floats(-2, 2) | st.just(np.nan), max_size=14),
    data=st.data(),
    delta=st.sampled_from([0, 0.5, 1.3]),
    scope=st.sampled_from(["within_class", "global"]),
)
@settings(max_examples=150, deadline=None)
def test_all_admissible_pairs_equal_brute_force(scores, data, delta, scope):
    scores = np.array(scores, dtype=float)
    labels = data.draw(
        st.lists(st.sampled_from("abc"), min_size=len(scores), max_size=len(scores))
    )
    curriculum = pairs_from_scores(scores, labels, delta=delta, rho=1, scope=scope)
    assert as_set(curriculum) == listed(scores, labels, delta, scope == "within_class")
    assert curriculum.n_samples == len(scores)


@pytest.mark.parametrize("scope", ["within_class", "global"])
def test_draw_is_uniform_over_admissible_pairs(scope):
    rng = np.random.default_rng(0)
    scores, labels = rng.normal(size=12), rng.integers(0, 2, size=12)
    admissible = sorted(listed(scores, labels, 0.5, scope == "within_class"))
    kept = round(0.3 * len(admissible))
    trials = 3000
    counts = dict.fromkeys(admissible, 0)
    for seed in range(trials):
        curriculum = pairs_from_scores(scores, labels, scope=scope, seed=seed)
        assert len(curriculum) == kept
        for pair in as_set(curriculum):
            counts[pair] += 1
    share = kept / len(admissible)
    deviation = np.array(list(counts.values())) - trials * share
    assert np.abs(deviation).max() < 4.5 * np.sqrt(trials * share * (1 - share))


def test_higher_score_is_easier():
    curriculum = pairs_from_scores(np.array([1.0, 9.0]), ["x", "x"], rho=1)
    np.testing.assert_array_equal(curriculum.pairs, [[0, 1]])


def test_automatic_scope():
    scores = np.arange(4.0)
    one_each = pairs_from_scores(scores, list("abcd"), rho=1, delta=0)
    assert len(one_each) == 6
    two_each = pairs_from_scores(scores, list("aabb"), rho=1, delta=0)
    assert as_set(two_each) == {(0, 1), (2, 3)}


def test_many_samples_need_memory_for_the_kept_pairs_only():
    scores = np.random.default_rng(1).random(200_000)
    tracemalloc.start()
    curriculum = pairs_from_scores(scores, np.zeros(200_000, int), maximum_pairs=5_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(curriculum) == 5_000
    assert peak < 40e6
    harder, easier = curriculum.pairs.T
    assert (scores[easier] - scores[harder]).min() > 0.5 * scores.std() - 1e-12
    # Difference of two uniform scores, given that it exceeds t, has mean t + (1 - t) / 3.
    t = 0.5 * scores.std()
    assert (scores[easier] - scores[harder]).mean() == pytest.approx(t + (1 - t) / 3, abs=0.02)


def test_number_kept():
    scores, labels = np.arange(30.0), np.zeros(30)
    admissible = len(listed(scores, labels, 0.5, True))
    assert len(pairs_from_scores(scores, labels, rho=0.3)) == round(0.3 * admissible)
    assert len(pairs_from_scores(scores, labels, rho=0.3, maximum_pairs=7)) == 7
    assert len(pairs_from_scores(scores, labels, rho=1, maximum_pairs=None)) == admissible
    assert len(pairs_from_scores(scores, labels, rho=0)) == 0


def test_same_seed_same_pairs():
    scores, labels = np.random.default_rng(2).random(40), np.zeros(40)
    first = pairs_from_scores(scores, labels, seed=5).pairs
    np.testing.assert_array_equal(first, pairs_from_scores(scores, labels, seed=5).pairs)
    assert not np.array_equal(first, pairs_from_scores(scores, labels, seed=6).pairs)


def test_equal_or_missing_scores_give_no_pairs():
    assert len(pairs_from_scores(np.ones(5), np.zeros(5), rho=1, delta=0)) == 0
    assert len(pairs_from_scores(np.full(5, np.nan), np.zeros(5), rho=1)) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delta": -0.1}, "delta=-0.1"),
        ({"rho": 1.5}, "rho=1.5"),
        ({"scope": "class"}, "scope='class'"),
        ({"maximum_pairs": -1}, "maximum_pairs=-1"),
    ],
)
def test_options_out_of_range(options, message):
    with pytest.raises(InputError, match=message):
        pairs_from_scores(np.arange(3.0), np.zeros(3), **options)


def test_wrong_scores_are_named():
    with pytest.raises(InputError, match="score of sample 1 is inf"):
        pairs_from_scores(np.array([0, np.inf]), np.zeros(2))
    with pytest.raises(InputError, match=r"\(3,\), labels \(2,\)"):
        pairs_from_scores(np.arange(3.0), np.zeros(2))
