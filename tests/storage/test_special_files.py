"""A pipe in the place of a stored file is damage, and never waited for."""

import os

import numpy as np
import pytest

from storage import DamagedArtifactError, Recipe, Store

RECIPE = Recipe("extract", "1", {"n": 1}, {})


@pytest.fixture
def artifact(tmp_path):
    def create(writer):
        writer.put_array("a", np.arange(6.0).reshape(3, 2))
        writer.put_json("b.json", {"x": 1})

    return Store(tmp_path).get_or_create(RECIPE, create).artifact


def read(store, reference):
    artifact = store.open(reference)
    artifact.array("a")
    artifact.json("b.json")


@pytest.mark.parametrize("name", ["manifest.json", "run.json", "a/c", "zarr.json", "b.json"])
def test_pipes_in_the_place_of_files(artifact, name, tmp_path):
    below = artifact.path
    path = next(p for p in below.rglob("*") if p.is_file() and name in str(p.relative_to(below)))
    path.unlink()
    os.mkfifo(path)
    store = Store(tmp_path)
    found = [p for p in store.verify() if path.name in p.message]
    assert found
    with pytest.raises(DamagedArtifactError):
        read(store, artifact.reference)
