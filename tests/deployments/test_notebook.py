"""What a notebook is given of a run: tables, with pandas or without, and how it looks."""

import sys
import types
from pathlib import Path

import pytest

import deployments.notebook
from cppcl.errors import InputError
from deployments.notebook import RunResult, run

SCORES = {"map": 0.25, "map_std": 0.0149, "rank_1": 0.5}
RECORD = {
    "experiment": "a<b",
    "metrics": {
        "category": {
            "cprl": {"map": 0.25, "map_std": 0.0149, "rank_1": 0.5},
            "chance": {"map": 0.1},
        }
    },
    "seconds": {"fetch": 1.5},
    "cached": {"fetch": True},
    "differences": {
        "category": {"first": "cprl", "score": "map", "methods": {"raw": {"mean": 0.02}}}
    },
    "artifacts": {},
}


@pytest.fixture
def result():
    return RunResult(RECORD, Path("workspace"))


@pytest.fixture
def without_pandas(monkeypatch):
    monkeypatch.setattr(deployments.notebook, "find_spec", lambda name: None)


def test_tables_are_lists_of_rows_without_pandas(result, without_pandas):
    assert result.scores == [
        *(
            {
                "protocol": "category",
                "method": "cprl",
                "map": 0.25,
                "map_std": 0.0149,
                "rank_1": 0.5,
            },
            {"protocol": "category", "method": "chance", "map": 0.1},
        )
    ]
    assert result.stages == [{"stage": "fetch", "seconds": 1.5, "cached": True}]
    assert result.differences == [
        {"protocol": "category", "first": "cprl", "method": "raw", "mean": 0.02}
    ]
    assert result.report is None


def test_tables_are_data_frames_with_pandas(result, monkeypatch):
    monkeypatch.setattr(deployments.notebook, "find_spec", lambda name: name)
    pandas = types.SimpleNamespace(DataFrame=lambda rows: ("frame", rows))
    monkeypatch.setitem(sys.modules, "pandas", pandas)
    assert result.stages == ("frame", [{"stage": "fetch", "seconds": 1.5, "cached": True}])


def test_a_notebook_shows_scores_in_per_cent(result):
    page = result._repr_html_()
    assert repr(result) == "RunResult('a<b', protocols: category)"
    assert "a&lt;b" in page
    assert "<td>25.0 ± 1.5</td><td>50.0</td>" in page
    assert "<th>mAP</th><th>rank-1</th>" in page
    assert "over splits" in page
    assert "map_std" not in page
    assert "<td>10.0</td><td></td>" in page


def test_wrong_options_are_refused_before_anything_starts(monkeypatch):
    monkeypatch.setattr(deployments.notebook, "prepare_prefect", lambda *given, **more: 1 / 0)
    with pytest.raises(InputError, match="nosuch"):
        run("nosuch")
