"""The sample table."""

from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cppcl.datasets import SampleTable
from cppcl.errors import InputError

TABLE = SampleTable(
    ids=("s1", "i1", "s2"),
    sha256=("a" * 64, "b" * 64, "c" * 64),
    paths=("s/1.png", "i/1.png", "s/2.png"),
    modality=("sketch", "image", "sketch"),
    labels=("cat", "cat", "dog"),
    groups=("g", "g", "s2"),
)


def test_rows_and_columns_of_one_modality():
    assert len(TABLE) == 3
    assert TABLE.rows("sketch").tolist() == [0, 2]
    assert TABLE.rows("image").tolist() == [1]
    assert TABLE.column("labels", "sketch") == ["cat", "dog"]


def test_digest_depends_on_everything_but_paths_and_titles():
    shown = replace(TABLE, paths=("x", "y", "z"), titles=("a", "b", "c"))
    assert shown.digest() == TABLE.digest()
    changes = {
        "ids": ("s1", "i1", "s3"),
        "sha256": ("a" * 64, "b" * 64, "d" * 64),
        "modality": ("sketch", "image", "image"),
        "labels": ("cat", "dog", "dog"),
        "groups": ("g", "g", "g"),
    }
    digests = {replace(TABLE, **{name: value}).digest() for name, value in changes.items()}
    assert len(digests | {TABLE.digest()}) == 6


def test_the_same_content_in_two_groups_is_told():
    assert TABLE.repetitions() == []
    twins = replace(TABLE, sha256=("a" * 64, "a" * 64, "a" * 64))
    assert twins.repetitions() == [
        "2 sketch samples have the same content as another one, so that training and test may "
        "share them: s1 = s2."
    ]
    # A whole group goes to one side of a split, whatever it holds.
    assert replace(twins, groups=("g", "g", "g")).repetitions() == []


@given(st.lists(st.text(st.characters(codec="utf-8")), min_size=0, max_size=4, unique=True))
def test_csv_holds_any_text(names):
    n = len(names)
    columns = {field.name: tuple(names) for field in fields(SampleTable)}
    table = SampleTable(**(columns | {"modality": ("image",) * n}))
    assert SampleTable.from_csv(table.to_csv()) == table


def test_a_person_reads_the_title_else_the_label_else_the_file():
    table = replace(TABLE, titles=("black cat", "", ""), labels=("cat", "cat", ""))
    assert [table.title(row) for row in range(3)] == ["black cat", "cat", "2"]
    assert SampleTable.from_csv(table.to_csv()) == table
    assert "titles" not in TABLE.to_csv()


def test_mistakes_are_named():
    with pytest.raises(InputError, match="differ in length"):
        replace(TABLE, labels=("cat",))
    with pytest.raises(InputError, match="sample id 's1' occurs more than once"):
        replace(TABLE, ids=("s1", "i1", "s1"))
    with pytest.raises(InputError, match="modality 'photo' is not one of"):
        replace(TABLE, modality=("sketch", "image", "photo"))


def test_a_doubled_column_is_refused():
    with pytest.raises(InputError, match="the head has the columns ids twice"):
        SampleTable.from_csv("ids,ids\na,b\n")
