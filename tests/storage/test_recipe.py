"""Keys: equal recipes share one, and every field moves it."""

from __future__ import annotations

import enum
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage import Recipe, RecipeError, Reference, canonical_json

TABLE = Reference("table", "0" * 32)
RECIPE = Recipe("features", "1", {"size": 64, "crop": [1, 2.5], "deep": {"a": None}}, {"t": TABLE})


class Colour(enum.Enum):
    RED = "red"


def test_key_is_pinned():
    # sha256 of the canonical JSON, computed outside: keys must survive new versions of this code.
    import hashlib

    text = (
        '{"inputs":{"t":"table/00000000000000000000000000000000"},'
        '"parameters":{"crop":[1,2.5],"deep":{"a":null},"size":64},'
        '"stage":"features","version":"1"}'
    )
    assert RECIPE.key == hashlib.sha256(text.encode()).hexdigest()[:32]
    assert str(RECIPE.reference) == f"features/{RECIPE.key}"


@pytest.mark.parametrize(
    "changes",
    [
        {"stage": "features2"},
        {"version": "2"},
        {"parameters": {**RECIPE.parameters, "size": 65}},
        {"parameters": {**RECIPE.parameters, "size": 64.0}},
        {"parameters": {**RECIPE.parameters, "size": "64"}},
        {"parameters": {**RECIPE.parameters, "crop": [2.5, 1]}},
        {"parameters": {**RECIPE.parameters, "crop": [1, np.nextafter(2.5, 3)]}},
        {"parameters": {**RECIPE.parameters, "deep": {"b": None}}},
        {"parameters": {**RECIPE.parameters, "more": None}},
        {"parameters": {}},
        {"inputs": {"u": TABLE}},
        {"inputs": {"t": Reference("table", "1" * 32)}},
        {"inputs": {"t": Reference("table2", "0" * 32)}},
        {"inputs": {}},
    ],
    ids=str,
)
def test_every_field_moves_the_key(changes):
    assert replace(RECIPE, **changes).key != RECIPE.key


def test_spelling_does_not_move_the_key():
    same = {"deep": {"a": None}, "crop": (np.int32(1), np.float64(2.5)), "size": np.int64(64)}
    assert Recipe("features", "1", same, {"t": TABLE}).key == RECIPE.key
    assert canonical_json({"x": Colour.RED, "y": np.True_}) == '{"x":"red","y":true}'
    assert canonical_json(np.float32(0.1)) == repr(float(np.float32(0.1)))


def test_later_changes_to_the_callers_dictionary_do_not_move_the_key():
    parameters: dict[str, Any] = {"sizes": [1]}
    recipe = Recipe("features", "1", parameters)
    key = recipe.key
    parameters["sizes"].append(2)
    assert recipe.key == key


@settings(max_examples=60, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text()
        | st.floats(allow_nan=False, allow_infinity=False),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    )
)  # fmt: skip
def test_document_round_trip(value):
    recipe = Recipe("stage", "v", {"value": value}, {"t": TABLE})
    again = Recipe.from_document(recipe.document())
    assert again == recipe
    assert again.key == recipe.key
    assert hash(again) == hash(recipe)
    assert pickle.loads(pickle.dumps(recipe)).key == recipe.key


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (float("nan"), r"parameters\.x is nan: only finite"),
        (np.float32("inf"), r"parameters\.x is inf"),
        ([1, float("-inf")], r"parameters\.x\[1\] is -inf"),
        (Path("some/place"), r"parameters\.x is the path 'some/place'.*sha256"),
        (np.zeros(3), r"parameters\.x is an array of shape \(3,\).*tolist"),
        ({1: 2}, r"parameters\.x has the key 1: keys must be strings"),
        (b"raw", r"parameters\.x is b'raw' \(bytes\)"),
        ({1, 2}, r"\(set\): only JSON"),
        (np.datetime64("2020-01-01"), r"\(date\): only JSON"),
    ],
)
def test_what_has_no_canonical_form_is_named(value, message):
    with pytest.raises(RecipeError, match=message):
        Recipe("features", "1", {"x": value})


@pytest.mark.parametrize("stage", ["", "Features", "a/b", "../up", "locks", ".trash", "a b", None])
def test_bad_stage(stage):
    with pytest.raises(RecipeError, match="cannot name a stage"):
        Recipe(stage, "1")


@pytest.mark.parametrize("key", ["", "0" * 31, "0" * 33, "g" * 32, "A" * 32, None])
def test_bad_key(key):
    with pytest.raises(RecipeError, match="is not a key"):
        Reference("table", key)


def test_other_bad_fields():
    with pytest.raises(RecipeError, match="version of 'features' is 1: give a string"):
        Recipe("features", 1)
    with pytest.raises(RecipeError, match="must be a dictionary"):
        Recipe("features", "1", [1])
    with pytest.raises(RecipeError, match="input 't' of stage 'features' is 'table/0'"):
        Recipe("features", "1", {}, {"t": "table/0"})


def test_references_sort_and_parse():
    assert Reference.parse(str(TABLE)) == TABLE
    assert sorted([TABLE, Reference("a", "f" * 32)])[0].stage == "a"
