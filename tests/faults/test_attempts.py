"""What is tried is counted, what breaks is told, and the table of the page is made of that."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

FAULTS = Path(__file__).parent
ROOT = FAULTS.parents[1]

TRIES = """
from hypothesis import given, settings, strategies as st
from tests.attempts import tried
import pytest

def test_once():
    pass

def test_often():
    tried(5)

@settings(max_examples=7, database=None)
@given(st.integers())
def test_drawn(value):
    pass

def test_broken():
    tried(3)
    assert False

@pytest.mark.skip
def test_skipped():
    pass
"""


def run(*command: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": f"{FAULTS}{os.pathsep}{ROOT}"}
    arguments = [sys.executable, *map(str, command)]
    return subprocess.run(arguments, cwd=ROOT, env=environment, capture_output=True, text=True)


def test_attempts_are_counted_and_breakages_told(tmp_path):
    tests, counted, page = tmp_path / "test_x.py", tmp_path / "a.json", tmp_path / "page.md"
    tests.write_text(TRIES)
    plugin = ("-p", "attempts_plugin", "-p", "no:cacheprovider", "--attempts", counted)
    run("-m", "pytest", "-q", "-c", ROOT / "pyproject.toml", "--rootdir", ROOT, *plugin, tests)
    found = {}
    for line in map(json.loads, counted.read_text().splitlines()):
        found[line["test"].rpartition("::")[2]] = (line["tried"], line["broken"])
    assert found == {
        "test_once": (1, 0),
        "test_often": (5, 0),
        "test_drawn": (7, 0),
        "test_broken": (3, 1),
    }

    first, second, faults = (tmp_path / f"{name}.json" for name in ("first", "second", "faults"))
    line = {"area": "store", "by": "x", "tried": 4, "broken": 1}
    first.write_text(2 * (json.dumps(line) + "\n"))
    fault = {"part": "store", "number": 3, "kind": "kill", "where": "a", "detail": "", "wrong": []}
    faults.write_text(json.dumps(fault) + "\n")
    page.write_text("<!-- attempts: begin -->\nstale\n<!-- attempts: end -->\n")
    read = (FAULTS / "attempts.py", "--markdown", page, "--read", first, faults)
    done = run(*read)
    assert done.returncode == 1
    assert "9 tried, 7 survived, 2 broken\nbroken: x" in done.stdout
    second.write_text(json.dumps({**line, "broken": 0}) + "\n")  # run again, and mended
    done = run(*read, second)
    assert (done.returncode, done.stderr) == (0, "")
    assert "| 1 | 1 | 5 | 5 | 0 |" in page.read_text()
    assert "stale" not in page.read_text()
