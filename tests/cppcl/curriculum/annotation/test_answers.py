"""Tables of answers come back as they were written; wrong lines are named."""

import json
import re

import pytest

from cppcl.curriculum.annotation.answers import (
    GivenAnswer,
    PairAnswer,
    check_annotator,
    check_seconds,
    read_answers,
    read_lines,
    write_answers,
)
from cppcl.errors import InputError

ANSWERS = [
    PairAnswer("cat/1", "cat/2", "a"),
    PairAnswer("cat/2", "cat/3", "b"),
    PairAnswer("cat/3", "cat/1", "skip"),
    PairAnswer("cat/2", "elsewhere", "a"),
]
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
    assert read_answers(path) == [
        PairAnswer("cat/1", "cat,2", "b"),
        PairAnswer("cat/3", "ß", "skip"),
    ]


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


def test_both_formats_read_alike(tmp_path):
    table = tmp_path / "a.csv"
    table.write_text(
        "who,sample_a,sample_b,easier\nx,cat/1,cat/2,a\ny,cat/2,cat/3,b\n"
        "y,cat/3,cat/1,\n,cat/2,elsewhere,a\n"
    )
    lines = tmp_path / "a.jsonl"
    lines.write_text(
        "\n".join(json.dumps({**vars(answer), "seconds": 2.5}) for answer in ANSWERS) + "\n\n"
    )
    assert read_answers(table) == read_answers(lines) == ANSWERS


@pytest.mark.parametrize("name", ["a\u2028b", "a\x85b", "two\nlines", 'a "quoted", name'])
def test_ids_may_hold_what_looks_like_the_end_of_a_line(tmp_path, name):
    table = tmp_path / "a.csv"
    quoted = name.replace('"', '""')
    table.write_text(f'sample_a,sample_b,easier\n"{quoted}",cat/1,a\n', encoding="utf-8")
    lines = tmp_path / "a.jsonl"
    answer = PairAnswer(name, "cat/1", "a")
    lines.write_text(json.dumps(vars(answer), ensure_ascii=False) + "\n", encoding="utf-8")
    assert read_answers(table) == read_answers(lines) == [answer]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "sample_a,sample_b,easier\nx,y,c\n"),
        ("a.csv", "sample_a,sample_b,easier\nx,x,a\n"),
        ("a.csv", "sample_a,sample_b,easier\nx\n"),
        ("a.csv", "sample_a,sample_b,easier\n" + "x" * 200_000 + ",b,a\n"),
        ("a.csv", 'sample_a,sample_b,easier\n"x,y,a'),
        ("a.jsonl", '\n{"sample_a": "x"}\n'),
        ("a.jsonl", "\n[1]\n"),
        ("a.jsonl", "\n{\n"),
        ("a.jsonl", "\n" + "[" * 100_000),
    ],
)
def test_wrong_lines_of_files_are_named(tmp_path, name, text):
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(InputError, match=rf"{name}, line 2"):
        read_answers(file)


@pytest.mark.parametrize(("name", "text"), [("a.csv", "sample_a,easier\nx,a\n"), ("a.txt", "")])
def test_files_of_another_kind_are_named(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=re.escape(name)):
        read_answers(tmp_path / name)
    with pytest.raises(InputError, match=r"none\.csv"):
        read_answers(tmp_path / "none.csv")


@pytest.mark.parametrize("text", ["sample_a,b\n1,2\n", ""])
def test_an_import_without_its_columns_is_refused(text):
    with pytest.raises(InputError, match="sample_b, easier"):
        list(read_lines(text, "csv", annotator="me"))


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


def test_a_column_that_is_there_twice_is_refused():
    text = "sample_a,sample_b,easier,easier\na,b,a,b\n"
    with pytest.raises(InputError, match="has the columns easier twice"):
        list(read_lines(text, "csv", annotator="x"))
