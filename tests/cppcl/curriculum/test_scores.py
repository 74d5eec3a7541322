import itertools
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cppcl.curriculum import order_by_scores, pairs_from_scores
from cppcl.curriculum.scores import hash_pairs
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
    with pytest.raises(InputError, match="scores: that of sample 1 is inf"):
        pairs_from_scores(np.array([0, np.inf]), np.zeros(2))
    with pytest.raises(InputError, match="labels are 2 for 3 scores"):
        pairs_from_scores(np.arange(3.0), np.zeros(2))


def names(n):
    return [f"class/{k}" for k in range(n)]


def test_hashed_pairs_stay_when_samples_are_added_anywhere():
    rng = np.random.default_rng(3)
    scores, labels, ids = rng.normal(size=60), rng.integers(0, 3, 60), names(60)

    def pairs_of(rows):
        order = order_by_scores(scores[rows], labels[rows], delta=0.4, delta_unit="absolute")
        drawn = hash_pairs(order, [ids[row] for row in rows], rho=0.3)
        return {(ids[rows[h]], ids[rows[e]]) for h, e in drawn.pairs.tolist()}, order.n_pairs

    everything, n_admissible = pairs_of(np.arange(60))
    assert len(everything) == pytest.approx(0.3 * n_admissible, rel=0.25)
    for seed in range(3):
        rows = np.random.default_rng(seed).permutation(60)[:35]  # another order too
        some, _ = pairs_of(rows)
        kept = {ids[row] for row in rows}
        assert some == {pair for pair in everything if set(pair) <= kept}


def test_hashed_pairs_are_admissible_and_uniform():
    rng = np.random.default_rng(1)
    scores, labels = rng.normal(size=14), rng.integers(0, 2, size=14)
    order = order_by_scores(scores, labels)
    admissible = sorted(listed(scores, labels, 0.5, True))
    counts = dict.fromkeys(admissible, 0)
    two = next({p, q} for p, q in itertools.pairwise(admissible) if p[0] == q[0])
    together = 0
    trials = 3000
    for seed in range(trials):
        drawn = as_set(hash_pairs(order, names(14), rho=0.3, seed=seed))
        together += two <= drawn
        for pair in drawn:
            counts[pair] += 1
    deviation = np.array(list(counts.values())) - trials * 0.3
    assert np.abs(deviation).max() < 4.5 * np.sqrt(trials * 0.3 * 0.7)
    # Pairs with a sample in common are independent.
    assert abs(together - trials * 0.09) < 4.5 * np.sqrt(trials * 0.09 * 0.91)


def test_number_of_hashed_pairs():
    scores = np.random.default_rng(2).random(300)
    order = order_by_scores(scores, np.zeros(300), delta=0, scope="global")
    assert as_set(hash_pairs(order, names(300), rho=1, maximum_pairs=None)) == {
        tuple(pair) for pair in order.pairs().tolist()
    }
    assert len(hash_pairs(order, names(300), rho=0)) == 0
    few = hash_pairs(order, names(300), rho=0.5, maximum_pairs=400)
    assert len(few) == pytest.approx(400, abs=100)
    assert as_set(few) <= as_set(hash_pairs(order, names(300), rho=0.5, maximum_pairs=5000))
    with pytest.raises(InputError, match="3 ids for 300 samples"):
        hash_pairs(order, names(3))
    with pytest.raises(InputError, match="rho=2"):
        hash_pairs(order, names(300), rho=2)
