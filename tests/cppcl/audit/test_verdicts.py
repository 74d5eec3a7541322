"""Tables of verdicts, and what most people say."""

from __future__ import annotations

import pytest

from cppcl.audit.verdicts import Verdict, read_verdicts, write_verdicts, wrong_items
from cppcl.errors import InputError

HEAD = "sketch,image,given,verdict,label"


def test_a_table_is_read_as_it_was_written():
    verdicts = [
        Verdict("s/1", "i/1", "1", "right", "", "Ada", 1.5, "2026-01-02T03:04:05"),
        Verdict("s/2", "", "cat", "wrong", 'a "dog", large', "Bo"),
        Verdict("", "i/2", "cat", "skip"),
    ]
    assert read_verdicts(write_verdicts(verdicts)) == verdicts


def test_a_line_without_a_verdict_decides_nothing():
    (one,) = read_verdicts("sketch,image,given,suggested,score,verdict\ns,i,1,,0.5,\n")
    assert one.verdict == "skip"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{HEAD},label\n", "line 1: the head has the columns label twice"),
        ("sketch,image\n", "line 1: the head lacks the columns given, verdict"),
        (f"{HEAD}\n,,cat,wrong,\n", "line 2: sketch='', image=''"),
        (f"{HEAD}\ns,,cat,maybe,\n", "line 2: verdict='maybe' must be one of right, wrong, skip"),
        (f"{HEAD}\ns,,cat,right,dog\n", "line 2: label='dog': only a wrong label"),
        (f'{HEAD}\ns,,cat,"wrong\n', "no CSV"),
    ],
)
def test_a_wrong_line_is_named(text, message):
    with pytest.raises(InputError, match=message):
        read_verdicts(text)


def test_most_people_decide():
    said = {"a": "wrong wrong right", "b": "wrong right", "c": "skip wrong", "d": "right"}
    verdicts = [Verdict(s, "", "cat", v) for s, text in said.items() for v in text.split()]
    assert set(wrong_items(verdicts)) == {("a", "", "cat"), ("c", "", "cat")}
    named = [Verdict("a", "", "cat", "wrong", label) for label in ("dog", "cow", "cow", "")]
    assert wrong_items(named) == {("a", "", "cat"): "cow"}
    assert wrong_items(named[:2]) == {("a", "", "cat"): ""}
