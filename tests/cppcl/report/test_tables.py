import numpy as np
import pytest

from cppcl.report import MethodResult, ProtocolResult
from cppcl.report.tables import (
    count_table,
    headline,
    match_table,
    score_table,
    score_text,
    score_title,
    training_table,
)

FLAT = np.full(101, 0.5)


def method(*scores, **options):
    return MethodResult(scores, FLAT, **options)


def small(**options):
    methods = {
        "a": method({"rank_1": 0.10, "map": 0.2}, {"rank_1": 0.14, "map": 0.2}),
        "b": method({"rank_1": 0.30, "map": 0.1}, {"rank_1": 0.20, "map": 0.1}),
        "c": method({"rank_1": 0.01}, {"rank_1": 0.02}),
    }
    return ProtocolResult("p", "d", {"rank_1": 0.0025}, methods, **options)


def test_score_table():
    table = score_table(small(main_score="map"))
    assert table.columns == ["mAP (%)", "rank-1 (%)"]
    cells = {name: [(c.text, c.deviation, c.best) for c in line] for name, line in table.rows}
    assert cells == {
        "a": [("20.0", "± 0.0", True), ("12.0", "± 2.8", False)],
        "b": [("10.0", "± 0.0", False), ("25.0", "± 7.1", True)],
        "c": [("–", "", False), ("1.5", "± 0.7", False)],
    }
    assert table.chance[0] == "chance"
    assert [cell.text for cell in table.chance[1]] == ["–", "0.25"]


def test_equal_methods_are_both_best():
    protocol = ProtocolResult("p", "", {}, {"a": method({"map": 0.5}), "b": method({"map": 0.5})})
    assert [line[0].best for _, line in score_table(protocol).rows] == [True, True]


def test_match_table():
    curve = np.linspace(0.1, 0.8, 12)
    methods = {
        "a": method({"map": 0.5}, cumulative_match=curve),
        "b": method({"map": 0.5}, cumulative_match=curve[::-1]),
        "c": method({"map": 0.5}),
    }
    table = match_table(ProtocolResult("p", "", {}, methods))
    assert table.columns == ["k = 1", "k = 2", "k = 3", "k = 5", "k = 10"]
    assert [name for name, _ in table.rows] == ["a", "b"]
    first = dict(table.rows)["a"]
    assert [cell.text for cell in first] == [f"{100 * curve[k - 1]:.1f}" for k in (1, 2, 3, 5, 10)]
    assert [cell.best for cell in first] == [False] * 4 + [True]
    assert match_table(small()) is None


def test_training_table():
    methods = {
        "a": method({"map": 0.5}, training={"seconds": 12.34, "sd of v, sketch": 0.0456}),
        "b": method({"map": 0.5}, training={"seconds": 0.5}),
    }
    table = training_table(ProtocolResult("p", "", {}, methods))
    assert table.columns == ["seconds", "sd of v, sketch"]
    assert [[cell.text for cell in cells] for _, cells in table.rows] == [
        ["12", "0.046"],
        ["0.5", "–"],
    ]
    assert training_table(ProtocolResult("p", "", {}, {"a": method({"map": 0.5})})) is None


def test_count_table():
    methods = {
        "a": method({"map": 0.5}, counts={"queries": 12345}),
        "b": method({"map": 0.5}, counts={"zero query codes": 3}),
    }
    table = count_table(ProtocolResult("p", "", {}, methods))
    assert table.columns == ["queries", "zero query codes"]
    assert [[cell.text for cell in line] for _, line in table.rows] == [
        ["12,345", "–"],
        ["–", "3"],
    ]
    assert count_table(small()) is None


def test_headline_tells_what_the_method_that_answers_finds():
    methods = {
        "a": method({"rank_1": 0.2, "rank_10": 0.5}, {"rank_1": 0.3, "rank_10": 0.7}),
        "b": method({"rank_1": 0.9, "rank_10": 0.9}),
    }
    assert headline(ProtocolResult("p", "", {"rank_1": 0.0025, "rank_10": 0.025}, methods)) == (
        "Of 100 sketches, 25.0 (by chance 0.25) find a right picture first, 60.0 (by chance 2.5) "
        "among the first 10, with a."
    )
    assert not headline(ProtocolResult("p", "", {"map": 0.01}, {"a": method({"map": 0.1})}))


@pytest.mark.parametrize(
    ("key", "title", "value", "deviation", "text"),
    [
        ("map", "mAP (%)", 0.16667, None, "16.7"),
        ("map", "mAP (%)", 0.16667, 0.0123, "16.7 ± 1.2"),
        ("rank_10", "rank-10 (%)", 0.192, 0.004, "19.2 ± 0.4"),
        ("rank_1", "rank-1 (%)", 0.0025, None, "0.25"),
        ("precision_at_100", "P@100 (%)", 1.0, None, "100.0"),
        ("other", "other (%)", 0.5, None, "50.0"),
        ("map", "mAP (%)", None, None, "–"),
        ("map", "mAP (%)", float("nan"), None, "–"),
    ],
)
def test_texts(key, title, value, deviation, text):
    assert score_title(key) == title
    assert score_text(value, deviation) == text
