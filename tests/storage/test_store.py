"""Finding, resolving and collecting artifacts."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage import (
    DamagedArtifactError,
    Recipe,
    RecipeError,
    Reference,
    Store,
    StoreInUseError,
    UnknownReferenceError,
    Writer,
)
from tests.storage.artifacts import interrupted

HOLD = """
import sys
from storage import Recipe, Store

with Store(sys.argv[1]).in_use():
    print("running", flush=True)
    sys.stdin.readline()
"""


def make(store: Store, stage: str, number: int, **inputs: Reference) -> Reference:
    recipe = Recipe(stage, "1", {"number": number}, inputs)
    store.get_or_create(recipe, lambda writer: writer.put_json("n", number))
    return recipe.reference


def test_artifacts_are_listed_by_stage_and_key(store):
    made = [make(store, stage, n) for stage in ("b", "a") for n in range(3)]
    (store.root / "b" / "notes.txt").write_text("not an artifact")
    (store.root / "Own folder").mkdir()
    (store.root / "b" / (made[0].key[:-1] + "x")).mkdir()
    assert [artifact.reference for artifact in store.artifacts()] == sorted(made)
    assert [artifact.reference for artifact in store.artifacts("b")] == sorted(made[:3])
    assert list(store.artifacts("c")) == []
    with pytest.raises(RecipeError, match="cannot name a stage"):
        list(store.artifacts("../b"))


def test_resolve(store):
    references = [make(store, "table", n) for n in range(17)]  # two keys share their first digit
    alone = make(store, "codes", 0)
    for reference in [*references, alone]:
        assert store.resolve(str(reference)) == reference
        assert store.resolve(reference.key) == reference
        assert store.resolve(f" {reference.key[:20].upper()} ", reference.stage) == reference
    assert store.resolve(f"codes/{alone.key[0]}") == alone
    assert store.resolve(alone.key[0], stage="codes") == alone
    keys = [reference.key for reference in references]
    digit = next(d for d in "0123456789abcdef" if sum(key[0] == d for key in keys) > 1)
    matching = [str(r) for r in sorted(references) if r.key[0] == digit]
    with pytest.raises(UnknownReferenceError) as caught:
        store.resolve(digit, "table")
    assert f"names {len(matching)} artifacts" in str(caught.value)
    assert ", ".join(matching) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "stage"),
    [("f" * 32, None), ("", None), ("table/", None), ("x", None), ("codes/{key}", None),
     ("table/{key}", "codes"), ("{key}", "codes"), ("table/{key}0", None), ("/", "table")],
)  # fmt: skip
def test_resolve_what_is_not_there(store, text, stage):
    text = text.format(key=make(store, "table", 0).key)
    with pytest.raises(UnknownReferenceError, match=r"names no (codes |table )?artifact in"):
        store.resolve(text, stage)


def test_gc_keeps_what_is_kept_and_what_it_was_made_from(store):
    table = make(store, "table", 0)
    features = make(store, "features", 0, table=table)
    split = make(store, "split", 0, table=table)
    codes = make(store, "codes", 0, features=features, split=split)
    old_features = make(store, "features", 1, table=table)
    old_codes = make(store, "codes", 1, features=old_features)

    abandoned = interrupted(store, Recipe("codes", "2"), lambda writer: None)
    dead = sorted([*map(store.path, (old_features, old_codes)), abandoned])
    before = sorted(store.root.rglob("*"))
    assert store.gc([codes], dry_run=True) == dead
    assert sorted(store.root.rglob("*")) == before
    assert store.gc(iter([codes])) == dead
    assert [a.reference for a in store.artifacts()] == sorted([table, features, split, codes])
    assert not any(path.exists() for path in dead)
    assert not (store.root / ".trash").exists()
    assert store.verify() == []
    assert store.gc([codes]) == []
    assert len(store.gc([])) == 4


def test_gc_does_not_touch_a_store_that_a_run_uses(store, child):
    reference = make(store, "table", 0)
    run = child(HOLD, store.root)
    assert run.stdout.readline() == "running\n"
    with pytest.raises(StoreInUseError, match="in use by a run: nothing was removed"):
        store.gc([])
    assert store.find(reference) is not None
    run.kill()
    run.wait()
    assert store.gc([]) == [store.path(reference)]


def test_gc_during_creation_is_refused_and_harmless(store):
    table = make(store, "table", 0)
    recipe = Recipe("features", "1", {}, {"table": table})

    def create(writer: Writer) -> None:
        writer.put_text("x", "y")
        with pytest.raises(StoreInUseError):
            store.gc([])

    assert store.get_or_create(recipe, create).artifact.text("x") == "y"
    assert store.find(table) is not None


def test_gc_stops_at_a_damaged_artifact_to_keep(store):
    table, other = make(store, "table", 0), make(store, "table", 1)
    (store.path(table) / "manifest.json").write_text("{}")
    with pytest.raises(DamagedArtifactError, match=r"manifest.json"):
        store.gc([table])
    assert store.path(other).is_dir()


def test_runs_share_the_store(store, artifact):
    with store.in_use(), store.in_use():
        assert make(store, "table", 0)


def test_artifact_collected_while_it_is_looked_for(store, artifact, monkeypatch):
    read_bytes = Path.read_bytes

    def gone(path: Path) -> bytes:
        if path.name == "manifest.json":
            artifact.path.rename(store.root / "gone")
        return read_bytes(path)

    monkeypatch.setattr(Path, "read_bytes", gone)
    assert store.find(artifact.reference) is None
