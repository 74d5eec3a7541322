"""A sample of the faults of ``python tests/faults/chaos``, and that none of them passes unseen."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHAOS = ROOT / "tests" / "faults" / "chaos"

# Breaks one thing that the store promises, and puts faults into it until one is noticed.
BROKEN = """
import contextlib, shutil, sys
from pathlib import Path

import storage.artifact, storage.store, storage.files
import damage
import zarr
from interposed import Fault
from store_faults import Harness

what, folder = sys.argv[1], Path(sys.argv[2])

def copy(source, destination, trash):
    shutil.rmtree(destination, ignore_errors=True)
    destination.mkdir()
    for path in sorted(source.rglob("*")):
        if path.is_dir():
            (destination / path.relative_to(source)).mkdir()
        else:
            with (destination / path.relative_to(source)).open("wb") as stream:
                stream.write(path.read_bytes())
    shutil.rmtree(source)

def trust(artifact, name):
    return artifact.file_path(name).read_bytes()

if what == "publishing copies":
    storage.store.publish = copy
elif what == "files are not checked":
    storage.artifact.Artifact.bytes = trust
elif what == "nothing is locked":
    storage.store.locked = lambda *arguments, **options: contextlib.nullcontext()

harness = Harness(folder)
publishing = [at for at, call in enumerate(harness.calls) if call.phase == "publishing"]

def hits_a_file(seed):
    shutil.copytree(harness.whole, folder / "store")
    hurt = damage.damage(folder / "store", seed, lambda path: True)
    shutil.rmtree(folder / "store")
    return hurt.label == "file" and hurt.how == "flip a bit of"

faults = {
    "publishing copies": lambda n: harness.stopped("kill", Fault(publishing[10 + n], "half")),
    "files are not checked": harness.damaged,
    "nothing is locked": lambda n: harness.raced(n, None),
}
wrong = []
for n in range(200):
    if what != "files are not checked" or hits_a_file(n):
        wrong += faults[what](n).wrong
    if wrong:
        break
print(wrong)
"""


def run(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{CHAOS}:{ROOT}"},
        capture_output=True,
        text=True,
        timeout=900,
    )


def test_a_sample_of_faults_ends_as_undisturbed(tmp_path):
    log, page = tmp_path / "faults.json", tmp_path / "page.md"
    page.write_text("Before\n<!-- store: begin -->\nold\n<!-- store: end -->\nAfter\n")
    done = run(CHAOS, "--store", 16, "--seed", 7, "--json", log, "--markdown", page)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("16 faults, 0 with a wrong outcome\n")
    outcomes = [json.loads(line) for line in log.read_text().splitlines()]
    assert len(outcomes) == 16
    assert sum(outcome["kind"] == "kill" for outcome in outcomes) == 9
    assert len({outcome["kind"] for outcome in outcomes}) == 7
    before, _, after = page.read_text().partition("16 of 16 ended as undisturbed.")
    assert before.startswith("Before\n<!-- store: begin -->\n`python tests/faults/chaos")
    assert "| kill | making |" in after
    assert after.endswith("<!-- store: end -->\nAfter\n")
    assert "old" not in before + after


@pytest.mark.parametrize(
    ("broken", "noticed"),
    [
        ("publishing copies", "is missing"),
        ("files are not checked", "was read, and is wrong"),
        ("nothing is locked", "made 2 times|is missing|failed"),
    ],
)
def test_what_is_broken_is_noticed(broken, noticed, tmp_path):
    done = run("-c", BROKEN, broken, tmp_path)
    assert re.search(noticed, done.stdout), done.stdout + done.stderr
