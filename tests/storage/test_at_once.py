"""Everything that changes a store or its remote, at once, by processes of their own."""

from __future__ import annotations

import collections
import os
import subprocess
import sys
from pathlib import Path

import pytest

from storage import Store
from tests.attempts import tried

ROOT = Path(__file__).parents[2]
SECONDS = 2.0

# Does one thing again and again to artifacts drawn at random; prints how often, and what is wrong.
CHILD = """
import random, sys, time
from pathlib import Path
from storage import Recipe, Store, StoreError
from storage.files import identity
from storage.remote.url import open_remote

verb, seed, folder, seconds = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), float(sys.argv[4])
remote = open_remote(f"file://{folder / 'remote'}")
store, other = (Store(folder / name, remote=remote) for name in ("store", "other"))
draw, done, wrong = random.Random(seed), 0, []

def recipe(n):
    return Recipe("make", "1", {"n": n}, {})

def make(references):
    n = draw.randrange(8)

    def create(writer):
        for name in "ab":
            writer.put_bytes(name, bytes([n]) * 5000)

    artifact = store.get_or_create(recipe(n), create).artifact
    before = identity(artifact.path)
    try:
        if artifact.bytes("b") != bytes([n]) * 5000:
            wrong.append("read what was not written")
    except StoreError:
        if before is not None and identity(artifact.path) == before:  # else it was collected
            raise

verbs = {
    "make": make,
    "collect": store.gc,
    "verify": lambda references: wrong.extend(map(str, store.verify())),
    "repair": lambda references: wrong.extend(map(str, store.repair())),
    "push": lambda references: list(store.push(references)),
    "pull": lambda references: list(other.pull(references)),
    "collect there": other.gc,
}
print("ready", flush=True)
sys.stdin.readline()
end = time.monotonic() + seconds
while time.monotonic() < end:
    done += 1
    try:
        verbs[verb]([recipe(n).reference for n in draw.sample(range(8), 3)])
    except StoreError as error:
        expected = "StoreInUseError", "MissingArtifactError", "UnknownReferenceError"
        if type(error).__name__ not in expected:
            wrong.append(f"{type(error).__name__}: {error}")
    except Exception as error:
        wrong.append(f"{type(error).__name__}: {error}")
print(done, sorted(set(wrong)))
"""
VERBS = ("make", "make", "collect", "verify", "repair", "push", "pull", "collect there")


@pytest.mark.parametrize("seed", [0, 1])
def test_collecting_verifying_repairing_and_sending_do_not_disturb_one_another(seed, tmp_path):
    (tmp_path / "remote").mkdir()
    children = [
        subprocess.Popen(
            [
                sys.executable,
                "-c",
                CHILD,
                verb,
                str(len(VERBS) * seed + n),
                tmp_path,
                str(SECONDS),
            ],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for verb, n in zip(VERBS, range(len(VERBS)), strict=True)
    ]
    assert [child.stdout.readline() for child in children] == ["ready\n"] * len(VERBS)
    for child in children:
        child.stdin.write("\n")
        child.stdin.flush()
    said = {n: child.communicate(timeout=60)[0].split(" ", 1) for n, child in enumerate(children)}
    wrong = {f"{VERBS[n]} {n}": text for n, (_, text) in said.items() if text != "[]\n"}
    assert wrong == {}
    done = collections.Counter({VERBS[n]: int(count) for n, (count, _) in said.items()})
    assert min(done.values()) > 0
    tried(sum(done.values()))
    for name in ("store", "other"):
        assert Store(tmp_path / name).verify() == []
