"""Tables that `cppcl run` ends with."""

from __future__ import annotations

import io
from typing import Any

import pytest

from deployments.commands.run import answering_text, show
from deployments.terminal import Terminal

SCORES = {"rank_1": 0.5, "rank_1_std": 0.01, "map": 0.6, "map_std": 0.02}
ROW = {"mean": 0.9852, "low": 0.9748, "high": 0.9953, "std": 0.0123}
SUMMARY = {
    "experiment": "tiny",
    "metrics": {
        "random": {"cprl": SCORES, "cca": SCORES, "chance": SCORES},
        "official": {"cprl": {"rank_1": 0.5, "map": 0.6}},
    },
    "differences": {
        "random": {
            "first": "cprl",
            "score": "rank_1",
            "methods": {
                "cca": {
                    **{"mean": 0.0132, "low": -0.0004, "high": 0.0261},
                    **{"ahead": 12, "level": 3, "behind": 5, "verdict": "level"},
                },
                "cosine": {
                    **{"mean": -0.2, "low": -0.3, "high": -0.1},
                    **{"ahead": 0, "level": 0, "behind": 20, "verdict": "behind"},
                },
            },
        }
    },
    "published": {
        "random": {
            "source": "Table 1 of the paper",
            "score": "rank_1",
            "trials": 5,
            "methods": {
                "cprl": {
                    **{"title": "CPRL, B", "published": 0.986, "verdict": "level"},
                    **{**ROW, "first_mean": 0.99, "first_std": 0.002},
                },
                "cca": {
                    **{"title": "cca", "published": None, "verdict": None},
                    **{**ROW, "first_mean": 0.99, "first_std": 0.002},
                },
            },
        },
        "official": {
            "source": "Table 2",
            "score": "map",
            "trials": None,
            "methods": {
                "cprl": {
                    **{"title": "cprl", "published": 0.9865, "verdict": "reached"},
                    **{**ROW, "std": None, "first_mean": None, "first_std": None},
                }
            },
        },
    },
    "training": {
        "random": {"cprl": {"seconds": 123.4, "sd of v, sketch": 0.0213}, "cca": {"seconds": 0.1}},
        "official": {"cprl": {"seconds": 9.96}},
    },
    "conventions": {
        name: {"scores": ["rank_1", "map"], "line": "mAP divided by R"}
        for name in ("random", "official")
    },
    "seconds": {},
    "cached": {},
}


def shown(**changes: Any) -> list[list[str]]:
    stream = io.StringIO()
    show({**SUMMARY, **changes}, Terminal(stream))
    return [line.split() for line in stream.getvalue().splitlines()]


def test_tables_stand_below_the_scores_of_their_protocol():
    lines = [" ".join(words) for words in shown()]
    places = [
        lines.index(line)
        for line in (
            "random, scores: mAP divided by R",
            "tiny, random: per cent, mean ± sd over splits; training: seconds, largest sd of the "
            "pacing variables v",
            "method rank-1 mAP seconds sd of v, sketch",
            "cprl 50.0 ± 1.0 60.0 ± 2.0 123 0.021",
            "cca 50.0 ± 1.0 60.0 ± 2.0 0.1 –",
            "chance 50.0 ± 1.0 60.0 ± 2.0 – –",
            "random, beside Table 1 of the paper (5 splits): rank-1, per cent",
            "method published ours first 5 splits 95 % interval verdict",
            "CPRL, B 98.6 98.5 ± 1.2 99.0 ± 0.2 [97.5, 99.5] level",
            "cca – 98.5 ± 1.2 99.0 ± 0.2 [97.5, 99.5] –",
            "random, cprl minus each other method: rank-1, points; level: the difference could be "
            "chance",
            "method difference 95 % interval splits ahead/level/behind verdict",
            "cca +1.32 [-0.04, +2.61] 12/3/5 level",
            "cosine -20.00 [-30.00, -10.00] 0/0/20 behind",
            "tiny, official: per cent, one split; training: seconds",
            "method rank-1 mAP seconds",
            "cprl 50.0 60.0 10",
            "official, beside Table 2: mAP, per cent",
            "method published ours 95 % interval verdict",
            "cprl 98.65 98.5 [97.5, 99.5] reached",
        )
    ]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("metrics", "text"),
    [
        ({}, ""),
        ({"p": {"cprl": {}, "chance": {}}}, ""),
        (
            {"p": {"cprl": {}, "cca": {}, "chance": {}}},
            "searches are answered by cprl; --method asks another",
        ),
        ({"p": {"cprl": {}}, "q": {"cca": {}}}, "searches are answered by cprl, protocol p"),
    ],
    ids=str,
)
def test_it_is_said_who_answers_searches_where_it_could_be_another(metrics, text):
    assert answering_text(metrics) == text


@pytest.mark.parametrize(
    ("n", "n_splits", "title"),
    [
        (1, 1, None),
        (2, 1, "cprl, random: 2 combinations of options, best first; mAP, per cent, in 3 folds"),
        (32, 2, "cprl, random: 10 of 32 combinations of options, best first; mAP, per cent, in"),
    ],
)
def test_a_search_is_shown_where_there_was_something_to_choose_from(n, n_splits, title):
    table = [{"alpha": k, "mean": 0.5, "best": k == 0} for k in range(n)]
    search = {"best": {"alpha": 0}, "table": table, "score": "map", "n_folds": 3, "n_repeats": 1}
    lines = [" ".join(words) for words in shown(tuned={"random": {"cprl": [search] * n_splits}})]
    found = [line for line in lines if "combinations of options" in line]
    assert [line.startswith(title) for line in found] == [True] * bool(title)
    if title:
        assert ("over splits" in found[0]) == (n_splits > 1)
        several = "alpha mean chosen by" in lines
        assert several == (n_splits > 1)
        assert ("alpha score chosen" in lines) != several


def test_differences_of_one_split_count_no_splits():
    one = SUMMARY["differences"]["random"]
    methods = {"cca": one["methods"]["cca"] | {"ahead": 1, "level": 0, "behind": 0}}
    lines = [" ".join(w) for w in shown(differences={"random": one | {"methods": methods}})]
    assert "method difference 95 % interval verdict" in lines
    assert "cca +1.32 [-0.04, +2.61] level" in lines


@pytest.mark.parametrize("block", ["differences", "published"])
def test_what_is_not_there_is_not_shown(block):
    lines = [" ".join(words) for words in shown(**{block: {}})]
    left = {"differences": ["Table 1", "Table 2"], "published": ["minus each other"]}[block]
    for word in ("Table 1", "Table 2", "minus each other"):
        assert any(word in line for line in lines) == (word in left)
    summary = {name: value for name, value in SUMMARY.items() if name != block}
    stream = io.StringIO()
    show(summary, Terminal(stream))
    assert [line.split() for line in stream.getvalue().splitlines()] == shown(**{block: {}})
