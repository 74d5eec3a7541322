"""Whatever an artifact holds and whatever becomes of its objects: whole, or named, not there."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import obstore
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from obstore.store import MemoryStore

from storage import DamagedArtifactError, Recipe, Reference, Remote, Store, Writer
from storage.remote.inventory import Inventory
from tests.storage.artifacts import tree
from tests.storage.remote.remotes import objects, problems_there

RECIPE = Recipe("anything", "1")
DTYPES = ("bool", "uint8", "int64", "float32", "float64")
arrays = st.fixed_dictionaries(
    {
        "shape": st.lists(st.integers(0, 9), min_size=1, max_size=3).map(tuple),
        "dtype": st.sampled_from(DTYPES),
        "rows_per_block": st.integers(1, 4),
    }
)
contents = st.fixed_dictionaries(
    {
        "arrays": st.dictionaries(st.sampled_from(["a", "b.c", "d-e_1"]), arrays, max_size=2),
        "files": st.dictionaries(
            st.sampled_from(["x", "y/z.json", "y/w.html"]), st.binary(max_size=40), max_size=3
        ),
    }
)
faults = st.lists(
    st.tuples(st.integers(0, 50), st.sampled_from(["delete", "cut", "lengthen", "flip"])),
    min_size=1,
    max_size=4,
    unique_by=lambda fault: fault[0],
)


@contextmanager
def two_machines(content: Any) -> Iterator[tuple[Store, Store, Reference]]:
    """One that has made an artifact and one that has not, with a remote in memory."""
    held = MemoryStore()
    remote = Remote("memory://", lambda: held)

    def create(writer: Writer) -> None:
        rng = np.random.default_rng(0)
        for name, array in content["arrays"].items():
            values = rng.integers(0, 2, array["shape"]).astype(array["dtype"])
            writer.put_array(name, values, rows_per_block=array["rows_per_block"])
        for name, data in content["files"].items():
            writer.put_bytes(name, data)

    with tempfile.TemporaryDirectory() as folder:
        here, there = (Store(Path(folder, name), remote=remote) for name in ("here", "there"))
        Store(here.root).get_or_create(RECIPE, create)
        yield here, there, RECIPE.reference


@settings(max_examples=15, deadline=None)
@given(contents)
def test_every_artifact_comes_back(content):
    with two_machines(content) as (here, there, reference):
        list(here.push([reference]))
        list(there.pull([reference]))
        assert tree(there.path(reference)) == tree(here.path(reference))
        assert there.verify() == []
        assert problems_there(here) == []


@settings(max_examples=20, deadline=None)
@given(contents, faults)
def test_all_damage_is_named_and_mended(content, faults):
    with two_machines(content) as (here, there, reference):
        list(here.push([reference]))
        remote = here.remote
        folder = f"{reference}/{Inventory.of(here.open(reference)).folder}"
        stored = {n: data for n, data in objects(remote).items() if n.startswith(folder)}
        damaged = set()
        for number, kind in faults:
            name = sorted(stored)[number % len(stored)]
            if name in damaged or not (stored[name] or kind in ("delete", "lengthen")):
                continue
            damaged.add(name)
            damage(remote, name, stored[name], kind)
        if not damaged:
            return
        with pytest.raises(DamagedArtifactError) as caught:
            list(there.pull([reference]))
        named = [line for line in str(caught.value).splitlines() if line.startswith("memory:")]
        assert {line.split()[0] for line in named} == {remote.url_of(name) for name in damaged}
        assert len(problems_there(here)) == len(damaged)
        assert list(there.references()) == []
        list(here.push([reference], replace=True))
        (fetched,) = there.pull([reference])
        assert fetched.n_files == len(damaged)  # what was whole was kept
        assert tree(there.path(reference)) == tree(here.path(reference))


def damage(remote: Remote, name: str, data: bytes, kind: str) -> None:
    if kind == "delete":
        obstore.delete(remote._objects, name)
        return
    changed = {"cut": data[:-1], "lengthen": data + b"\0", "flip": data[:-1] + flipped(data[-1:])}
    obstore.put(remote._objects, name, changed[kind])


def flipped(byte: bytes) -> bytes:
    return bytes(value ^ 128 for value in byte)
