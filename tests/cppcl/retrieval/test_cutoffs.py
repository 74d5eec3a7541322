"""Scores of the first k places, against counts by hand and by brute force."""

import itertools

import numpy as np
import pytest
from sklearn.metrics.pairwise import cosine_similarity

from cppcl.errors import InputError
from cppcl.retrieval.cutoffs import DENOMINATORS, convention_line
from cppcl.retrieval.metrics import average_precision, chance, evaluate

FIXTURE = [1, 0, 1, 0, 0, 1, 0, 0, 0, 1]


def brute_average_precision(relevance, k, denominator):
    """One place after the other, as the convention is written."""
    total, hits = 0.0, 0
    for place, mark in enumerate(relevance[:k], start=1):
        if mark:
            hits += 1
            total += hits / place
    R = sum(relevance)
    by = {"R": R, "min_k_r": min(k, R), "hits": hits}[denominator]
    return total / by if by else 0.0


def case(seed=0, n_queries=40, n_gallery=90):
    random = np.random.default_rng(seed)
    classes = random.integers(0, 4, n_gallery)
    instances = 10 * classes + random.integers(0, 5, n_gallery)
    asked = random.choice(n_gallery, n_queries)
    return (
        random.standard_normal((n_queries, 5)),
        random.standard_normal((n_gallery, 5)),
        (instances[asked], instances),
        (classes[asked], classes),
    )


@pytest.mark.parametrize(
    ("denominator", "at_3"), [("R", 0.4167), ("min_k_r", 0.5556), ("hits", 0.8333)]
)
def test_conventions_on_the_fixture(denominator, at_3):
    assert average_precision(FIXTURE, 3, denominator) == pytest.approx(at_3, abs=5e-5)
    for k in (10, 11, 200):
        assert average_precision(FIXTURE, k, denominator) == pytest.approx(0.6417, abs=5e-5)
    assert average_precision([0, 0, 1], 2, denominator) == 0


def test_every_score_equals_a_count_by_brute_force():
    queries, gallery, (asked, instances), (asked_class, classes) = case()
    ks, ranks = (1, 7, 50, 90, 300), (1, 3, 10)
    found = evaluate(
        queries,
        gallery,
        asked,
        instances,
        ranks=ranks,
        precisions=ks,
        map_at=ks,
        denominators=DENOMINATORS,
        query_classes=asked_class,
        gallery_classes=classes,
    )
    order = np.argsort(-cosine_similarity(queries, gallery), axis=1)
    for k in ks:
        relevance = [(instances[row] == label) for row, label in zip(order, asked, strict=True)]
        shares = [marks[:k].sum() / k for marks in relevance]
        assert found.scores[f"precision_at_{k}"] == pytest.approx(np.mean(shares), abs=1e-12)
        for d in DENOMINATORS:
            expected = [brute_average_precision(marks.tolist(), k, d) for marks in relevance]
            assert found.of_queries[f"map_at_{k}_{d}"] == pytest.approx(expected, abs=1e-12)
            assert found.scores[f"map_at_{k}_{d}"] == pytest.approx(np.mean(expected), abs=1e-12)
    for k in ranks:
        inside = [
            (instances[row][classes[row] == kind][:k] == label).any()
            for row, label, kind in zip(order, asked, asked_class, strict=True)
        ]
        assert found.scores[f"rank_{k}_in_class"] == np.mean(inside)
    assert found.scores["map_at_90_hits"] == pytest.approx(found.scores["map"], abs=1e-12)
    assert found.scores.keys() == found.chance.keys()


@pytest.mark.parametrize("g", range(1, 7))
def test_chance_equals_enumeration(g):
    ks = range(1, 9)
    for R in range(1, g + 1):
        labels = ["a"] * R + ["b"] * (g - R)
        expected = chance(["a"], labels, map_at=list(ks), denominators=DENOMINATORS)
        rankings = [
            [position in hits for position in range(g)]
            for hits in itertools.combinations(range(g), R)
        ]
        for k, d in itertools.product(ks, DENOMINATORS):
            mean = np.mean([brute_average_precision(r, k, d) for r in rankings])
            assert expected[f"map_at_{k}_{d}"] == pytest.approx(mean, abs=1e-12)


def test_chance_in_the_class_is_that_of_the_class_alone():
    queries, gallery, (asked, instances), (asked_class, classes) = case(n_queries=10)
    found = evaluate(
        queries, gallery, asked, instances, query_classes=asked_class, gallery_classes=classes
    ).chance
    alone = [
        chance([label], instances[classes == kind])["rank_5"]
        for label, kind in zip(asked, asked_class, strict=True)
    ]
    assert found["rank_5_in_class"] == pytest.approx(np.mean(alone), abs=1e-12)
    # What is relevant is of another class: it is never found within the class.
    kinds = {"query_classes": ["x"], "gallery_classes": ["y", "x"]}
    far = evaluate([[1.0]], [[1.0], [2.0]], ["a"], ["a", "b"], **kinds)
    assert (far.scores["rank_1_in_class"], far.chance["rank_1_in_class"]) == (0, 0)


def test_a_line_names_the_conventions():
    assert convention_line(["map", "map_at_200_hits"]) == (
        "mAP over the whole ranking, divided by R (all right pictures); mAP@k divided by hits"
    )
    assert "min(k, R)" in convention_line(["map_at_5_min_k_r", "precision_at_9"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"denominators": ["min"]}, "denominators='min' is not one of"),
        ({"map_at": (0,)}, r"map_at\[0\]=0"),
        ({"query_classes": ["x"]}, "give both query_classes and gallery_classes"),
    ],
)
def test_wrong_use(arguments, message):
    with pytest.raises(InputError, match=message):
        evaluate([[1.0]], [[1.0]], ["a"], ["a"], **arguments)
