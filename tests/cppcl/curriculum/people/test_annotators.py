import itertools
import json

import numpy as np
import pytest

from cppcl.curriculum.people.annotators import reliability, work
from cppcl.curriculum.people.answers import Answer, read_answers
from cppcl.curriculum.people.given_answers import (
    GivenAnswer,
    check_annotator,
    check_seconds,
    read_lines,
    write_answers,
)
from cppcl.errors import InputError


def by_definition(answers):
    """Alpha over ordered pairs of answers, both directions of each pair of samples."""
    units = {}
    for answer in answers:
        if answer.easier != "skip":
            units.setdefault(answer.pair, []).append(answer.easier_sample == answer.pair[0])
    units = [said for said in units.values() if len(said) > 1]
    units += [[not value for value in said] for said in units]
    observed = sum(
        (a != b) / (len(said) - 1) for said in units for a, b in itertools.permutations(said, 2)
    )
    values = [value for said in units for value in said]
    expected = sum(a != b for a, b in itertools.permutations(values, 2)) / (len(values) - 1)
    return 1 - observed / expected


def answers_of(seed, agreement=0.8):
    rng = np.random.default_rng(seed)
    given = []
    for a, b in itertools.combinations("stuvw", 2):
        for who in ("x", "y", "z"):
            if rng.random() < 0.8:
                right = rng.random() < agreement
                easier = "skip" if rng.random() < 0.1 else ("a" if right else "b")
                given.append(GivenAnswer(a, b, easier, who))
    return given


@pytest.mark.parametrize("seed", range(5))
def test_alpha_equals_its_definition_whatever_the_sides(seed):
    given = answers_of(seed)
    found = reliability(given)
    assert found.alpha == pytest.approx(by_definition(given), abs=1e-12)
    mirrored = [
        GivenAnswer(
            g.sample_b, g.sample_a, {"a": "b", "b": "a"}.get(g.easier, "skip"), g.annotator
        )
        for g in given
    ]
    assert reliability(mirrored) == found
    renamed = [
        GivenAnswer(chr(230 - ord(g.sample_a)), chr(230 - ord(g.sample_b)), g.easier, g.annotator)
        for g in given
    ]
    assert reliability(renamed).alpha == pytest.approx(found.alpha)


def test_alpha_at_its_ends():
    both = [GivenAnswer("s", "t", "a", who) for who in "xy"]
    assert reliability(both).alpha == 1
    assert reliability(both).n_pairs == 1
    assert reliability([both[0], GivenAnswer("s", "t", "b", "y")]).alpha < 0
    assert reliability([both[0], GivenAnswer("s", "t", "skip", "y")]).alpha is None
    assert reliability([]).n_pairs == 0


def test_work_of_each_annotator():
    given = [
        GivenAnswer("s", "t", "a", "x", 2.0),
        GivenAnswer("s", "u", "skip", "x", 4.0),
        GivenAnswer("s", "v", "b", "x", 9.0),
        GivenAnswer("s", "t", "a", "y"),
    ]
    x, y = work(given)
    assert (x.annotator, x.n_answers, x.n_skipped, x.seconds) == ("x", 3, 1, 4.0)
    assert (y.annotator, y.n_answers, y.n_skipped, y.seconds) == ("y", 1, 0, None)


GIVEN = [
    GivenAnswer("cat/1", 'with "quotes", and\nlines', "a", "Ada L.", 2.25, "2020-01-02T03:04:05"),
    GivenAnswer("cat/2", "ß\u2028/1", "skip", "x"),
]


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_tables_read_back(kind):
    lines = list(read_lines(write_answers(GIVEN, kind), kind, annotator="?"))
    assert [line.answer for line in lines] == GIVEN


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_curricula_read_the_same_answers(kind, tmp_path):
    given = [GivenAnswer("cat/1", "cat,2", "b", "x", 0.5), GivenAnswer("cat/3", "ß", "skip", "y")]
    path = tmp_path / f"answers.{kind}"
    path.write_text(write_answers(given, kind), encoding="utf-8")
    assert read_answers(path) == [Answer("cat/1", "cat,2", "b"), Answer("cat/3", "ß", "skip")]


def test_wrong_lines_are_named_and_the_others_read():
    table = (
        "easier,sample_a,sample_b,annotator,seconds,answered_at\n"
        "a,s,t,x,1,\n"
        "c,s,t,x,1,\n"
        "a,s,s,x,1,\n"
        "a,s,,x,1,\n"
        "a,s,u,x,-1,\n"
        "a,s,u,=x,1,\n"
        "a,s,u,x,1,yesterday\n"
        ",s,u,,,\n"
        "a,s\n"
    )
    lines = list(read_lines(table, "csv", annotator="me"))
    assert [line.number for line in lines] == list(range(2, 11))
    assert [line.number for line in lines if line.answer] == [2, 9]
    assert lines[7].answer == GivenAnswer("s", "u", "skip", "me")
    for line, word in zip(
        [*lines[1:7], lines[8]],
        ["'c'", "both 's'", "''", "'-1'", "'=x'", "'yesterday'", "None"],
        strict=True,
    ):
        assert word in line.problem


def test_wrong_lines_of_json():
    good = json.dumps({"sample_a": "s", "sample_b": "t", "easier": "b"})
    text = "\ufeff" + "\n".join([good, "", "{", "[1]", '{"sample_a": 1}', "[" * 100_000, good])
    lines = list(read_lines(text, "jsonl", annotator="me"))
    assert [(line.number, bool(line.answer)) for line in lines] == [
        (1, True),
        (3, False),
        (4, False),
        (5, False),
        (6, False),
        (7, True),
    ]


def test_a_table_without_its_columns_is_refused():
    with pytest.raises(InputError, match="line 1: the head lacks the columns sample_b, easier"):
        list(read_lines("sample_a,b\n1,2\n", "csv", annotator="me"))
    with pytest.raises(InputError, match="line 1"):
        list(read_lines("", "csv", annotator="me"))


def test_unbalanced_quotes_end_a_table():
    lines = list(read_lines('sample_a,sample_b,easier\ns,t,a\n"s,t,a\n', "csv", annotator="me"))
    assert lines[0].answer
    assert "not read" in lines[-1].problem


@pytest.mark.parametrize("name", ["", "  ", "=1+1", "-x", "a\nb", "a\x00", "x" * 65, "\ud800"])
def test_names_that_are_refused(name):
    with pytest.raises(InputError, match="must begin with a letter"):
        check_annotator(name)


def test_names_and_seconds():
    assert check_annotator("  Ada L. ") == "Ada L."
    assert check_seconds("") is check_seconds(None) is None
    assert check_seconds("2.5") == 2.5
    for wrong in ("nan", "inf", "-1", "1e9", "x", True, [], 10**400):
        with pytest.raises(InputError, match="seconds="):
            check_seconds(wrong)
