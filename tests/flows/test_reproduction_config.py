"""Descriptions of reproductions: those that come along, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from cppcl.datasets import DATASETS
from cppcl.errors import InputError
from flows.combinations import override
from flows.reproduction_config import (
    ScoresItem,
    SensitivityItem,
    SurfaceItem,
    chosen_items,
    load_reproduction,
    reproductions,
)
from flows.reproduction_runs import Runs, same, with_methods
from tasks.workspace import Workspace


@pytest.mark.parametrize("name", reproductions())
@pytest.mark.parametrize("quick", [False, True], ids=["whole", "quick"])
def test_every_run_line_and_value_of_those_that_come_along_can_be(
    name: str, quick: bool, tmp_path: Path
) -> None:
    options = load_reproduction(name)
    assert options.name == name
    assert options.dataset in DATASETS
    runs = Runs(Workspace(tmp_path), quick=quick)
    for item in options.items.values():
        if isinstance(item, ScoresItem):
            asked = [(line.run, line.method, []) for line in item.lines.values() if line.run]
        else:
            methods = [item.method] if hasattr(item, "method") else list(item.methods)
            changes: list[list[str]] = [[]]
            if isinstance(item, SensitivityItem):
                changes = [
                    [*axis.overrides, override(axis.option, value)]
                    for axis in item.axes
                    for value in axis.chosen(quick)
                ]
            if isinstance(item, SurfaceItem):
                changes = [
                    [override(item.x.option, x), override(item.y.option, y)]
                    for x in item.x.chosen(quick)
                    for y in item.y.chosen(quick)
                ]
            asked = [(item.run, method, change) for method in methods for change in changes]
        for run, method, change in asked:
            experiment = runs.experiment(options.runs[run], change)
            assert experiment.dataset.registered_name == options.dataset
            with_methods(experiment, options.runs[run].protocol, [method])


def written(tmp_path: Path, **changes: Any) -> str:
    data: dict[str, Any] = {
        "name": "tiny",
        "title": "Tiny",
        "dataset": "emoji",
        "runs": {"cv": {"experiment": "emoji", "protocol": "category"}},
        "items": {
            "table": {
                "kind": "scores",
                "title": "t",
                "source": "s",
                "score": "map",
                "lines": {"a": {"title": "A", "printed": 0.5, "run": "cv", "method": "cprl"}},
            }
        },
    }
    path = tmp_path / "tiny.yaml"
    path.write_text(yaml.safe_dump({**data, **changes}))
    return str(path)


def test_experiments_lie_beside_a_description(tmp_path: Path) -> None:
    runs = {"cv": {"experiment": "own.yaml", "protocol": "category"}}
    assert load_reproduction(written(tmp_path, runs=runs)).runs["cv"].experiment == str(
        tmp_path / "own.yaml"
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"runs": {"ours": {"experiment": "emoji", "protocol": "x"}}}, "the run cv, which is not"),
        ({"items": {}}, "items: "),
        ({"colour": 1}, "colour: "),
        (
            {
                "items": {
                    "t": {
                        "kind": "scores",
                        "title": "",
                        "source": "",
                        "score": "map",
                        "lines": {"a": {"title": "A", "errata": [99]}},
                    }
                }
            },
            "erratum 99 is not known",
        ),
        (
            {
                "items": {
                    "t": {
                        "kind": "scores",
                        "title": "",
                        "source": "",
                        "score": "map",
                        "lines": {"a": {"title": "A"}},
                        "statements": [{"text": "", "first": "a", "second": "b"}],
                    }
                }
            },
            "statement on b, which is no line",
        ),
    ],
)
def test_what_is_refused(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        load_reproduction(written(tmp_path, **changes))


def test_unknown_names(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"neither one of .*cufs"):
        load_reproduction("cusf")
    with pytest.raises(InputError, match="does not exist"):
        load_reproduction(str(tmp_path / "no.yaml"))
    options = load_reproduction(written(tmp_path))
    assert list(chosen_items(options, None)) == ["table"]
    with pytest.raises(InputError, match=r"--only tabel: .* there is table"):
        chosen_items(options, ["tabel"])


@pytest.mark.parametrize(
    ("now", "old", "alike"),
    [
        ({"a": 1, "new": 3}, {"a": 1}, True),
        ({"a": 1}, {"a": 2}, False),
        ({"a": 1}, {"a": 1, "gone": 3}, False),
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1, 2]}}, True),
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1, 3]}}, False),
        ({"relu": None}, {"relu": True}, True),
        ({"relu": True}, {"relu": None}, False),
    ],
)
def test_same_options(now: Any, old: Any, alike: bool) -> None:
    assert same(now, old) is alike
