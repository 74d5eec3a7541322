import json
from dataclasses import replace

import numpy as np
import pytest

from cppcl.errors import InputError
from cppcl.report import MethodResult, ProtocolResult, PublishedScores, QueryScores
from cppcl.report.comparisons import (
    choice_text,
    comparisons,
    comparisons_json,
    difference_sentence,
    difference_table,
    differences_csv,
    interval_text,
    listed,
    published_csv,
    published_table,
    published_text,
    published_title,
)
from cppcl.report.published import BesidePublished
from cppcl.retrieval.comparison import Difference, Interval, mean_interval, paired_difference
from tests.cppcl.report.pages import rows_of

FLAT = np.full(101, 0.5)


def method(*ranks, precision=None):
    """Splits of queries 0, 1, ... whose first relevant pictures are at these ranks; 0 for none."""
    splits = [QueryScores(np.arange(len(r)), r, precision or 1 / np.maximum(r, 1)) for r in ranks]
    scores = []
    for split in splits:
        scores.append({s: float(np.nanmean(split.values(s))) for s in ("rank_1", "rank_5", "map")})
    return MethodResult(scores, FLAT, query_scores=splits)


def small(**options):
    methods = {
        "ours": method([1, 1, 2, 0, 1, 1], [1, 1, 1, 7, 1, 3]),
        "same": method([1, 1, 2, 0, 1, 1], [1, 1, 1, 7, 1, 3]),
        "worse": method([5, 9, 2, 0, 4, 2], [2, 3, 2, 7, 3, 3]),
        "one worse": method([1, 2, 2, 0, 1, 1], [1, 1, 1, 7, 1, 3]),
    }
    return ProtocolResult("p", "d", {}, methods, main_score="rank_1", **options)


def published(**changes):
    given = {
        "source": "Table 1",
        "score": "rank_1",
        "values": {"ours": 0.6, "worse": 0.0, "same": 0.9},
        "titles": {"ours": "Theirs (B)"},
    }
    return PublishedScores(**given | changes)


def test_scores_of_queries():
    split = QueryScores([4, 7, 9], [1, 0, 6], [0.5, np.nan, 0.2])
    np.testing.assert_array_equal(split.values("rank_1"), [1, np.nan, 0])
    np.testing.assert_array_equal(split.values("rank_5"), [1, np.nan, 0])
    np.testing.assert_array_equal(split.values("rank_6"), [1, np.nan, 1])
    np.testing.assert_array_equal(split.values("map"), [0.5, np.nan, 0.2])
    for score in ("precision_at_100", "rank_", "rank_one", "chance"):
        with pytest.raises(InputError, match=f"score '{score}' is not known of queries"):
            split.values(score)


def test_queries_of_an_evaluation_have_its_scores(protocol):
    for result in protocol.methods.values():
        assert len(result.query_scores) == 3
        for split, scores in zip(result.query_scores, result.scores, strict=True):
            for score in ("rank_1", "rank_10", "map"):
                assert np.nanmean(split.values(score)) == pytest.approx(scores[score])


def test_scores_of_queries_are_those_of_every_split(protocol):
    result = protocol.methods["raw cosine"]
    with pytest.raises(InputError, match="query_scores are of 2 splits and scores of 3"):
        replace(result, query_scores=result.query_scores[:2])


def test_differences_are_of_the_main_score(protocol):
    first, *others = protocol.methods
    assert list(protocol.differences) == others
    for score in ("map", "rank_1"):
        here = replace(protocol, main_score=score)
        for name in others:
            ours, theirs = (here.methods[m].query_scores for m in (first, name))
            assert here.differences[name] == paired_difference(
                [split.values(score) for split in ours],
                [split.values(score) for split in theirs],
                [split.queries for split in ours],
            )
    assert protocol.differences["CPRL, pacing B"].verdict == "behind"


def test_difference_table():
    table = difference_table(small())
    cells = {name: [cell.text for cell in line] for name, line in table.rows}
    assert list(cells) == ["same", "worse", "one worse"]
    assert cells["same"] == ["+0.00", "[+0.00, +0.00]", "0 / 2 / 0", "level"]
    # 4 of 5 against none, 4 of 6 against none; 4 of 5 against 3 of 5 and the same.
    assert cells["worse"][0] == f"{100 * (0.8 + 4 / 6) / 2:+.2f}"
    assert cells["worse"][2:] == ["2 / 0 / 0", "ahead"]
    assert cells["one worse"][0] == "+10.00"
    assert cells["one worse"][1].startswith("[+0.00, +")
    assert cells["one worse"][2:] == ["1 / 1 / 0", "level"]
    assert len(table.columns) == 4
    methods = {"ours": method([1, 1, 2]), "worse": method([5, 9, 2])}
    of_one_split = difference_table(replace(small(), methods=methods))
    assert of_one_split.columns == ["difference", "95 % interval", "verdict"]
    assert [len(line) for _, line in of_one_split.rows] == [3]


def test_sentence_names_every_difference():
    protocol = small()
    assert difference_sentence(protocol) == (
        "ours is ahead of worse by more than chance; level with same and one worse, by what could "
        "be chance."
    )
    turned = dict(reversed(protocol.methods.items()))
    turned = {"worse": turned.pop("worse"), **turned}
    assert difference_sentence(replace(protocol, methods=turned)) == (
        "worse is behind one worse, same and ours by more than chance."
    )
    level = {name: protocol.methods[name] for name in ("ours", "same")}
    assert difference_sentence(replace(protocol, methods=level)) == (
        "ours is level with same, by what could be chance."
    )
    assert listed(["a"]) == "a"
    assert listed(["a", "b"]) == "a and b"


def test_nothing_is_compared_with_one_method_or_without_queries():
    protocol = small()
    alone = replace(protocol, methods={"ours": protocol.methods["ours"]})
    bare = {n: replace(m, query_scores=()) for n, m in protocol.methods.items()}
    for here in (alone, replace(protocol, methods=bare, published=published())):
        assert here.differences == here.beside_published == {}
        assert difference_table(here) is published_table(here) is None
        assert difference_sentence(here) == ""
    assert published_title(protocol) == ""


@pytest.mark.parametrize(
    ("reported", "verdict"),
    [
        (0.7, "reached"),
        (0.75 + 1e-12, "reached"),
        (0.76, "level"),
        (0.9, "level"),
        (0.91, "below"),
        (None, None),
    ],
)
def test_verdict_beside_a_published_number(reported, verdict):
    row = BesidePublished("t", reported, Interval(0.75, 0.5, 0.9), 0.1)
    assert row.verdict == verdict
    assert row.mean == 0.75


def test_beside_published_numbers():
    protocol = small(published=published(trials=1))
    rows = protocol.beside_published
    assert list(rows) == list(protocol.methods)
    ours = rows["ours"]
    splits = protocol.methods["ours"].query_scores
    assert ours.interval == mean_interval(
        [split.values("rank_1") for split in splits], [split.queries for split in splits]
    )
    # 4 of 5 and 4 of 6.
    assert (ours.title, ours.published) == ("Theirs (B)", 0.6)
    assert ours.mean == pytest.approx((0.8 + 4 / 6) / 2)
    assert ours.std == pytest.approx((0.8 - 4 / 6) / 2**0.5)
    assert (ours.first_mean, ours.first_std) == (pytest.approx(0.8), None)
    assert {name: row.verdict for name, row in rows.items()} == {
        "ours": "reached",
        "same": "level",
        "worse": "reached",
        "one worse": None,
    }
    by_map = small(published=published(score="map", trials=2)).beside_published["ours"]
    assert by_map.mean == pytest.approx(
        np.mean([s["map"] for s in protocol.methods["ours"].scores])
    )
    # No more splits than the publication has.
    assert (by_map.first_mean, by_map.first_std) == (None, None)


def test_published_table():
    table = published_table(small(published=published(trials=1)))
    assert table.columns == ["published", "ours", "first 1 split", "95 % interval", "verdict"]
    lines = [(title, [(c.text, c.deviation) for c in cells]) for title, cells in table.rows]
    assert [title for title, _ in lines] == ["Theirs (B)", "same", "worse", "one worse"]
    assert lines[0][1][:3] == [("60.0", ""), ("73.3", "± 9.4"), ("80.0", "")]
    assert lines[0][1][4] == ("reached", "")
    assert [cells[0][0] for _, cells in lines] == ["60.0", "90.0", "0.0", "–"]
    assert [cells[4][0] for _, cells in lines] == ["reached", "level", "reached", "–"]
    without = published_table(small(published=published(score="map")))
    assert without.columns == ["published", "ours", "95 % interval", "verdict"]
    assert dict(without.rows)["same"][0].text == "90.0"


def test_published_texts():
    title = published_title(small(published=published(trials=5)))
    assert title == ("Table 1 (5 splits): rank-1 (%), rank-k (Acc@k) over the whole gallery")
    assert published_title(small(published=published(score="map"))) == (
        "Table 1: mAP (%), mAP over the whole ranking, divided by R (all right pictures)"
    )
    assert published_title(small(published=published(trials=1))).startswith("Table 1 (1 split): ")
    assert published_text(0.986) == "98.6"
    assert published_text(0.9865) == "98.65"
    assert published_text(1) == "100.0"
    assert published_text(0.2) == "20.0"
    assert published_text(0.28345) == "28.345"
    assert interval_text(Interval(0.5, 0.4, 0.61)) == "[40.0, 61.0]"
    assert interval_text(Interval(0.001, 0, 0.61)) == "[0.00, 61.0]"


def test_csv_files(build):
    protocol = small(published=published(trials=1))
    alone = replace(protocol, name="q", methods={"ours": protocol.methods["ours"]}, published=None)
    data = build(protocols=[protocol, alone])
    rows = rows_of(differences_csv(data))
    assert [(r["protocol"], r["first"], r["method"]) for r in rows] == [
        ("p", "ours", name) for name in ("same", "worse", "one worse")
    ]
    for row, found in zip(rows, protocol.differences.values(), strict=True):
        shown = [float(row[name]) for name in ("difference", "low", "high")]
        assert shown == [found.mean, found.low, found.high]
        counts = [int(row[name]) for name in ("ahead", "level", "behind")]
        assert Difference(*shown, *counts) == found
        assert (row["verdict"], row["score"]) == (found.verdict, "rank_1")
    rows = rows_of(published_csv(data))
    assert [r["method"] for r in rows] == list(protocol.methods)
    for row, found in zip(rows, protocol.beside_published.values(), strict=True):
        assert (row["title"], row["source"], row["score"]) == (found.title, "Table 1", "rank_1")
        assert row["published"] == ("" if found.published is None else str(found.published))
        shown = [float(row[name]) for name in ("mean", "std", "low", "high", "first_mean")]
        assert shown == [
            *(found.mean, found.std, found.interval.low, found.interval.high, found.first_mean)
        ]
        assert (row["splits"], row["trials"], row["first_std"]) == ("2", "1", "")
        assert row["verdict"] == (found.verdict or "")
    assert differences_csv(build(protocols=[alone])) is None
    assert published_csv(build(protocols=[alone])) is None


def test_plain_data(build):
    protocol = small(published=published(trials=1))
    alone = replace(protocol, name="q", methods={"ours": protocol.methods["ours"]})
    found = comparisons(build(protocols=[protocol, alone]))
    assert json.loads(comparisons_json(build(protocols=[protocol, alone]))) == found
    assert {kind: list(of_protocols) for kind, of_protocols in found.items()} == {
        "differences": ["p"],
        "published": ["p", "q"],
    }
    differences = found["differences"]["p"]
    assert (differences["first"], differences["score"]) == ("ours", "rank_1")
    assert differences["methods"] == {
        name: {**vars(difference), "verdict": difference.verdict}
        for name, difference in protocol.differences.items()
    }
    beside = found["published"]["p"]
    assert (beside["source"], beside["score"], beside["trials"]) == ("Table 1", "rank_1", 1)
    for name, row in protocol.beside_published.items():
        expected = {**vars(row), **vars(row.interval), "verdict": row.verdict}
        del expected["interval"]
        assert beside["methods"][name] == expected
    bare = build(protocols=[replace(alone, published=None)])
    assert comparisons(bare) == {}
    assert comparisons_json(bare) is None


def test_which_method_validation_prefers_is_said_with_its_score_and_unit():
    choice = {"method": "cprl", "score": "rank_1", "validation": 0.853}
    alone = "validation on training pictures prefers cprl: rank-1 85.3 per cent"
    assert choice_text(choice) == alone
    second = {"runner_up": "class_cca", "runner_up_validation": 0.5}
    assert choice_text(choice | second) == f"{alone}, against 50.0 of class_cca"
