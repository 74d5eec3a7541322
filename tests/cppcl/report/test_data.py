from dataclasses import replace

import numpy as np
import pytest

from cppcl.errors import InputError
from cppcl.report import MethodResult, QueryResult, RetrievedPicture
from cppcl.retrieval.metrics import evaluate


def case(seed, n_gallery=30):
    random = np.random.default_rng(seed)
    labels = random.integers(0, 4, n_gallery)
    codes = random.standard_normal((n_gallery, 3))
    queries = random.standard_normal((7, 3))
    queries[seed] = 0
    return evaluate(queries, codes, [*labels[:6], "none"], labels)


def test_method_result_gathers_evaluations():
    evaluations = [case(0), case(1)]
    result = MethodResult.from_evaluations(evaluations, {"objective": [3.0, 2.0]})
    assert result.scores == [evaluation.scores for evaluation in evaluations]
    np.testing.assert_allclose(
        result.precision_recall,
        (evaluations[0].precision_recall + evaluations[1].precision_recall) / 2,
    )
    assert result.counts == {
        "queries": 14,
        "without a relevant picture": 2,
        "zero query codes": 2,
        "gallery": 60,
        "zero gallery codes": 0,
    }
    assert result.history == {"objective": [3.0, 2.0]}


def test_cumulative_match_agrees_with_rank_k():
    evaluations = [case(0), case(1)]
    curve = MethodResult.from_evaluations(evaluations).cumulative_match
    assert len(curve) == 30
    for k in (1, 5, 10):
        expected = np.mean([evaluation.scores[f"rank_{k}"] for evaluation in evaluations])
        assert curve[k - 1] == pytest.approx(expected)
    assert curve[-1] == 1
    longer = MethodResult.from_evaluations([case(0, 80), case(1, 90)]).cumulative_match
    assert len(longer) == 50


def test_wrong_data(build, protocol):
    with pytest.raises(InputError, match="evaluations are empty"):
        MethodResult.from_evaluations([])
    with pytest.raises(InputError, match="scores hold no split"):
        MethodResult([], np.ones(101))
    with pytest.raises(InputError, match=r"precision_recall has shape \(11,\)"):
        MethodResult([{"map": 1.0}], np.ones(11))
    with pytest.raises(InputError, match="protocol 'category' has no methods"):
        replace(protocol, methods={})
    with pytest.raises(InputError, match="protocols are named"):
        build(protocols=[protocol, protocol])
    with pytest.raises(InputError, match="protocols are named"):
        build(protocols=[])
    with pytest.raises(InputError, match="licences is a text"):
        build(licences="CC BY 4.0")


@pytest.mark.parametrize(
    "picture", [np.zeros((4, 4), np.uint8), np.zeros((4, 4, 4), np.uint8), np.zeros((4, 4, 3))]
)
def test_wrong_pictures(picture):
    good = np.zeros((4, 4, 3), np.uint8)
    with pytest.raises(InputError, match="picture of 'cat' has type"):
        QueryResult(picture, "cat", [])
    with pytest.raises(InputError, match="picture of 'dog' has type"):
        QueryResult(good, "cat", [RetrievedPicture(picture, "dog", False, 0.5)])
