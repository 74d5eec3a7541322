import itertools
import tracemalloc
from math import comb

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score
from sklearn.metrics.pairwise import cosine_similarity

from cppcl.errors import InputError
from cppcl.retrieval.cutoffs import PRECISION_CONVENTION
from cppcl.retrieval.metrics import (
    CONVENTION,
    RECALL_LEVELS,
    average_precision,
    chance,
    evaluate,
    summarise,
)

FIXTURE = [1, 0, 1, 0, 0, 1, 0, 0, 0, 1]


def line(relevance):
    """Codes at growing distance from a query at 0, with labels that give this relevance."""
    return [[0.0]], np.arange(1.0, len(relevance) + 1)[:, None], [1], list(relevance)


def random_case(seed, n_queries=12, n_gallery=60, n_classes=4):
    random = np.random.default_rng(seed)
    return (
        random.standard_normal((n_queries, 5)),
        random.standard_normal((n_gallery, 5)),
        random.integers(0, n_classes, n_queries),
        random.integers(0, n_classes, n_gallery),
    )


def test_the_convention_on_the_fixture():
    expected = (1 / 1 + 2 / 3 + 3 / 6 + 4 / 10) / 4
    assert expected == pytest.approx(0.6417, abs=1e-4)
    assert average_precision(FIXTURE) == pytest.approx(expected, abs=1e-15)
    result = evaluate(*line(FIXTURE), metric="l2", precisions=(5, 10, 100))
    assert result.scores == pytest.approx(
        {"rank_1": 1, "rank_5": 1, "rank_10": 1, "map": expected}
        # Places beyond the tenth, the last one, count as wrong.
        | {"precision_at_5": 0.4, "precision_at_10": 0.4, "precision_at_100": 0.04}
    )
    assert result.first_relevant_rank.tolist() == [1]
    # Relevant items that were never reached count: R is 4, not the 2 hits of the first three.
    assert average_precision([1, 0, 1] + [0] * 997 + [1, 1]) == pytest.approx(
        (1 + 2 / 3 + 3 / 1001 + 4 / 1002) / 4
    )
    assert result.convention == CONVENTION + PRECISION_CONVENTION
    assert evaluate(*line(FIXTURE), metric="l2").convention == CONVENTION
    assert "divided by the number R" in CONVENTION


def test_rank_k_counts_first_hits():
    result = evaluate(*line([0, 0, 0, 1, 0, 1]), metric="l2", ranks=(1, 3, 4, 6, 50))
    assert [result.scores[f"rank_{k}"] for k in (1, 3, 4, 6, 50)] == [0, 0, 1, 1, 1]
    assert result.first_relevant_rank.tolist() == [4]


def test_curve_of_the_fixture():
    result = evaluate(*line(FIXTURE), metric="l2")
    # Precisions at the four hits are 1, 2/3, 1/2, 2/5, reached at recall 1/4, 1/2, 3/4, 1.
    expected = [1] * 26 + [2 / 3] * 25 + [1 / 2] * 25 + [2 / 5] * 25
    np.testing.assert_allclose(result.precision_recall, expected, atol=1e-15)
    assert len(RECALL_LEVELS) == 101
    assert RECALL_LEVELS[[0, 25, 100]].tolist() == [0, 0.25, 1]


def test_curve_interpolates_to_the_right():
    result = evaluate(*line([0, 1, 1, 0, 0, 1]), metric="l2")
    # 1/2, 2/3, 1/2: the second hit lifts the first.
    np.testing.assert_allclose(
        result.precision_recall[[0, 33, 34, 66, 67, 100]], [2 / 3] * 4 + [0.5] * 2
    )


@pytest.mark.parametrize("metric", ["cosine", "l2"])
@pytest.mark.parametrize("seed", range(4))
def test_equals_scikit_learn_without_ties(metric, seed):
    queries, gallery, query_labels, gallery_labels = random_case(seed)
    result = evaluate(queries, gallery, query_labels, gallery_labels, metric=metric, chunk=7)
    similarity = (
        cosine_similarity(queries, gallery)
        if metric == "cosine"
        else -np.linalg.norm(queries[:, None] - gallery, axis=2)
    )
    relevance = query_labels[:, None] == gallery_labels
    expected = [average_precision_score(*pair) for pair in zip(relevance, similarity, strict=True)]
    np.testing.assert_allclose(result.average_precision, expected, rtol=1e-12)
    assert result.scores["map"] == pytest.approx(np.mean(expected))
    ranked = np.take_along_axis(relevance, np.argsort(-similarity, axis=1), axis=1)
    assert np.array_equal(result.first_relevant_rank, ranked.argmax(axis=1) + 1)
    for k in (1, 5, 10):
        assert result.scores[f"rank_{k}"] == ranked[:, :k].any(axis=1).mean()


def test_ties_are_shuffled_not_ordered_by_class():
    # All-zero queries against a gallery sorted by class: the order of the files must not decide.
    labels = np.repeat(np.arange(10), 30)
    codes = np.ones((300, 2))
    result = evaluate(np.zeros((10, 2)), codes, np.arange(10), labels)
    assert result.n_zero_queries == 10
    assert result.n_zero_gallery == 0
    assert result.scores["map"] == pytest.approx(result.chance["map"], abs=0.03)
    assert result.average_precision.max() < 0.3


def test_queries_without_relevant_items_are_counted_and_left_out():
    queries, gallery, query_labels, gallery_labels = random_case(1)
    query_labels = query_labels.astype(object)
    with_all = evaluate(queries[:10], gallery, query_labels[:10], gallery_labels)
    query_labels[10:] = "unknown"
    result = evaluate(queries, gallery, query_labels, gallery_labels)
    assert result.n_without_relevant == 2
    assert result.scores == with_all.scores
    assert result.chance == with_all.chance
    assert np.array_equal(result.precision_recall, with_all.precision_recall)
    assert np.isnan(result.average_precision[10:]).all()
    assert result.first_relevant_rank[10:].tolist() == [0, 0]


def test_counts():
    queries = np.array([[1.0, 0], [0, 0], [0, 0]])
    gallery = np.array([[0.0, 0], [1, 1], [1, 0], [0, 0]])
    result = evaluate(queries, gallery, list("aab"), list("abab"))
    assert (result.n_queries, result.n_gallery) == (3, 4)
    assert (result.n_zero_queries, result.n_zero_gallery) == (2, 2)


def test_a_zero_code_ranks_last_even_below_opposite_codes():
    result = evaluate([[1.0, 0.0]], [[0.0, 0.0], [-1.0, 0.0]], ["a"], ["a", "b"])
    assert result.first_relevant_rank.tolist() == [2]


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n_classes=st.integers(1, 6))
def test_properties_of_the_scores(seed, n_classes):
    case = random_case(seed, n_classes=n_classes)
    assume(set(case[2]) & set(case[3]))
    result = evaluate(*case, precisions=(10,))
    scored = result.average_precision[result.first_relevant_rank > 0]
    assert ((scored > 0) & (scored <= 1)).all()
    assert result.scores["rank_1"] <= result.scores["rank_5"] <= result.scores["rank_10"]
    assert (np.diff(result.precision_recall) <= 0).all()
    # The interpolated curve lies above the precisions that map averages.
    assert result.precision_recall[1:].mean() >= result.scores["map"] - 1e-12
    if n_classes == 1:
        assert set(result.scores.values()) == {1.0}


@settings(max_examples=40, deadline=None)
@given(st.lists(st.booleans(), min_size=1, max_size=30).filter(any), st.data())
def test_moving_a_relevant_item_forward_helps(relevance, data):
    late = data.draw(st.sampled_from([i for i, r in enumerate(relevance) if r]))
    early = data.draw(st.integers(0, late))
    moved = list(relevance)
    moved.insert(early, moved.pop(late))
    assert average_precision(moved) >= average_precision(relevance) - 1e-12


@given(n_relevant=st.integers(1, 20), n_other=st.integers(0, 20))
def test_perfect_and_worst_rankings(n_relevant, n_other):
    assert average_precision([1] * n_relevant + [0] * n_other) == 1
    worst = average_precision([0] * n_other + [1] * n_relevant)
    expected = sum(i / (n_other + i) for i in range(1, n_relevant + 1)) / n_relevant
    assert worst == pytest.approx(expected)


@pytest.mark.parametrize("g", range(1, 7))
def test_chance_equals_enumeration(g):
    for R in range(1, g + 1):
        rankings = [
            [position in hits for position in range(g)]
            for hits in itertools.combinations(range(g), R)
        ]
        assert len(rankings) == comb(g, R)
        expected = chance(["a"], ["a"] * R + ["b"] * (g - R), ranks=(1, 2, 5), precisions=(2, 7))
        assert expected["map"] == pytest.approx(np.mean([average_precision(r) for r in rankings]))
        for k in (1, 2, 5):
            assert expected[f"rank_{k}"] == pytest.approx(np.mean([any(r[:k]) for r in rankings]))
        for n in (2, 7):
            assert expected[f"precision_at_{n}"] == pytest.approx(
                np.mean([sum(r[:n]) / n for r in rankings])
            )
    assert "precision_at_100" not in chance(["a"], ["a"] * g)


def test_chance_equals_simulation_with_unequal_classes():
    random = np.random.default_rng(0)
    query_labels = random.integers(0, 5, 3000) ** 2 // 5
    gallery_labels = np.repeat([0, 1, 3], [70, 20, 10])
    codes = random.standard_normal((100, 6))
    result = evaluate(
        random.standard_normal((3000, 6)),
        codes[random.permutation(100)],
        query_labels,
        gallery_labels,
    )
    assert result.chance.keys() == result.scores.keys()
    for name, expected in result.chance.items():
        assert result.scores[name] == pytest.approx(expected, rel=0.04), name
    assert result.chance == chance(query_labels, gallery_labels)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"query_labels": ["a"]}, "query_labels has 1 entries for 2 rows"),
        ({"gallery_labels": ["a"]}, "gallery_labels has 1 entries"),
        ({"query_labels": ["x", "y"]}, "none of the 2 queries shares a label"),
        ({"query_codes": np.empty((0, 1)), "query_labels": []}, "none of the 0 queries"),
        ({"query_codes": [[np.nan], [1.0]]}, "query_codes row 0"),
        ({"ranks": (0, 1)}, r"ranks\[0\]=0"),
        ({"precisions": (0,)}, r"precisions\[0\]=0"),
    ],
)
def test_wrong_use(arguments, message):
    good = {
        "query_codes": [[1.0], [2.0]],
        "gallery_codes": [[1.0], [2.0], [3.0]],
        "query_labels": ["a", "b"],
        "gallery_labels": ["a", "b", "a"],
    }
    with pytest.raises(InputError, match=message):
        evaluate(**good | arguments)


def test_summary_over_splits():
    splits = [{"rank_1": 0.1, "map": 0.2}, {"rank_1": 0.3, "map": 0.2, "precision_at_100": 1.0}]
    assert summarise(splits) == pytest.approx(
        {"rank_1": 0.2, "rank_1_std": 0.02**0.5, "map": 0.2, "map_std": 0.0}
    )
    assert summarise(splits[:1]) == splits[0]
    assert summarise([]) == {}


def test_relevance_without_any_hit():
    with pytest.raises(InputError, match="marks no item"):
        average_precision([0, 0])


def test_memory_stays_bounded_for_a_large_gallery():
    random = np.random.default_rng(0)
    gallery = random.standard_normal((20_000, 128)).astype(np.float32)
    queries = random.standard_normal((400, 128)).astype(np.float32)
    labels = random.integers(0, 20, 20_000)
    evaluate(queries[:1], gallery[:10], [0], [0] * 10)  # imports
    tracemalloc.start()
    try:
        evaluate(queries, gallery, labels[:400], labels, chunk=1000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # About six blocks of 4 million numbers; all 8 million scores and orders would take more.
    assert peak < 6.5 * 2**22 * 8
