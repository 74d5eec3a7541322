"""The notebooks, run as a reader runs them, and stored with what they show."""

import json
from pathlib import Path

import pytest

from tests.docs.notebook_cells import code_cells, run_cells

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs/notebooks").glob("*.ipynb"))


def kinds(outputs):
    """What a cell shows: its streams and the forms of its value."""
    return [output.get("name") or sorted(output["data"]) for output in outputs]


def test_there_are_three():
    assert len(NOTEBOOKS) == 3


@pytest.mark.flow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_what_it_stored(
    path, tmp_path, monkeypatch, request, blank_figures
):
    if path.stem == "experiment":
        request.getfixturevalue("prefect_server")
    monkeypatch.chdir(tmp_path)
    notebook = json.loads(path.read_text())
    found = run_cells(notebook)
    stored = [cell["outputs"] for cell in code_cells(notebook)]
    assert [kinds(outputs) for outputs in found] == [kinds(outputs) for outputs in stored]
    assert any(stored)
    for cell in notebook["cells"]:
        assert "/tmp/" not in json.dumps(cell)
