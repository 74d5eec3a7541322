"""Descriptions of reproductions: those that come along, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from cppcl.datasets import DATASETS
from cppcl.errors import InputError
from flows.configuration.load import load_experiment
from flows.reproduction.config import (
    ScoresItem,
    SensitivityItem,
    SurfaceItem,
    chosen_items,
    load_reproduction,
    reproductions,
)
from flows.reproduction.runs import Runs, recorded, with_methods
from tasks.workspace import Workspace


def changes_of(item: Any, quick: bool) -> list[list[str]]:
    """Changes at the ends of every axis of an item."""
    if isinstance(item, SensitivityItem):
        return [
            axis.changes(value)
            for axis in item.axes
            for value in (axis.chosen(quick)[0], axis.chosen(quick)[-1])
        ]
    if isinstance(item, SurfaceItem):
        x, y = item.x.chosen(quick), item.y.chosen(quick)
        return [item.changes(a, b) for a, b in ((x[0], y[0]), (x[-1], y[0]), (x[0], y[-1]))]
    return [[]]


@pytest.mark.parametrize("name", reproductions())
def test_every_run_line_and_value_of_those_that_come_along_can_be(name, tmp_path):
    options = load_reproduction(name)
    assert options.name == name
    assert options.dataset in DATASETS
    runs = Runs(Workspace(tmp_path), quick=True)
    asked: dict[tuple[str, ...], set[str]] = {}
    for item in options.items.values():
        if isinstance(item, ScoresItem):
            for line in item.lines.values():
                if line.run:
                    asked.setdefault((line.run,), set()).add(str(line.method))
            continue
        methods = {item.method} if hasattr(item, "method") else set(item.methods)
        for quick in (True, False):
            for changes in changes_of(item, quick):
                asked.setdefault((item.run, *changes), set()).update(methods)
    for (run, *changes), methods in asked.items():
        experiment = runs.experiment(options.runs[run], changes)
        included = run.partition("_")[0]
        dataset = included if included in options.include else options.dataset
        assert experiment.dataset.registered_name == dataset
        with_methods(experiment, options.runs[run].protocol, sorted(methods))


def table(**changes: Any) -> dict[str, Any]:
    """The items of a description: one table."""
    head = {"kind": "scores", "title": "t", "source": "s", "score": "map"}
    return {"items": {"table": head | changes}}


def written(tmp_path: Path, **changes: Any) -> str:
    data: dict[str, Any] = {
        "name": "tiny",
        "title": "Tiny",
        "dataset": "emoji",
        "runs": {"cv": {"experiment": "emoji", "protocol": "category"}},
        **table(lines={"a": {"title": "A", "printed": 0.5, "run": "cv", "method": "cprl"}}),
    }
    path = tmp_path / "tiny.yaml"
    path.write_text(yaml.safe_dump({**data, **changes}))
    return str(path)


def test_experiments_lie_beside_a_description(tmp_path):
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
        (table(lines={"a": {"title": "A", "errata": [99]}}), "erratum 99 is not known"),
        (
            table(
                lines={"a": {"title": "A"}}, statements=[{"text": "", "first": "a", "second": "b"}]
            ),
            "statement on b, which is no line",
        ),
    ],
)
def test_what_is_refused(changes, message, tmp_path):
    with pytest.raises(InputError, match=message):
        load_reproduction(written(tmp_path, **changes))


def test_unknown_names(tmp_path):
    with pytest.raises(InputError, match=r"neither one of .*cufs"):
        load_reproduction("cusf")
    with pytest.raises(InputError, match="does not exist"):
        load_reproduction(str(tmp_path / "no.yaml"))
    options = load_reproduction(written(tmp_path))
    assert list(chosen_items(options, None)) == ["table"]
    with pytest.raises(InputError, match=r"--only tabel: .* there is table"):
        chosen_items(options, ["tabel"])


def test_items_of_other_descriptions_are_shown_whole(tmp_path):
    options = load_reproduction(written(tmp_path, include={"cufs": ["table1", "costs"]}))
    cufs = load_reproduction("cufs")
    assert list(options.items) == ["table", "cufs_table1", "cufs_costs"]
    table: Any = options.items["cufs_table1"]
    used = {"cufs_cv", "cufs_paper", "cufs_paper_unit"}
    assert {line.run for line in table.lines.values()} == used
    assert table.statements == cufs.items["table1"].statements
    assert set(options.runs) - used == set(load_reproduction(written(tmp_path)).runs)
    assert cufs.runs["cv"].quick
    for name in ("cv", "paper"):
        assert options.runs[f"cufs_{name}"] == cufs.runs[name].model_copy(update={"quick": ()})
    with pytest.raises(InputError, match=r"include\.cufs tabel: .* there is table1, "):
        load_reproduction(written(tmp_path, include={"cufs": ["tabel"]}))
    with pytest.raises(InputError, match=r"'cusf' is neither one of .*did you mean 'cufs'"):
        load_reproduction(written(tmp_path, include={"cusf": []}))


def test_a_recorded_run_with_the_same_options_is_found():
    experiment = load_experiment("emoji", ["seeds=[2, 0]"])
    whole = json.loads(load_experiment("emoji").model_dump_json())
    methods = whole["protocols"]["category"]["methods"]
    keys = {name: [f"evaluate/{n:032x}" for n in range(3)] for name in methods}
    record = {"configuration": whole, "evaluations": {"category": keys}}
    only = with_methods(experiment, "category", ["cprl", "class_cca"])
    found = recorded(record, only, "category")
    assert found is not None
    assert {name: [r.key[-1] for r in refs] for name, refs in found.items()} == {
        "cprl": ["2", "0"],
        "class_cca": ["2", "0"],
    }
    # Options that were not known when it was made had what is their default now,
    del methods["cprl"]["coding"]["link_model"], whole["block_rows"]
    assert recorded(record, only, "category") == found
    # and nothing else; nor is null the same as a value.
    for change in ("link_model=linear", "cprl.preparation.n_components=null", "cprl.seed=1"):
        changed = load_experiment("emoji", ["seeds=[2, 0]", change])
        changed = with_methods(changed, "category", ["cprl", "class_cca"])
        assert recorded(record, changed, "category") is None
    gone = {**whole, "features": {**whole["features"], "gone": {}}}
    assert recorded({**record, "configuration": gone}, only, "category") is None
    assert recorded(record, only, "instance") is None
    assert recorded({"evaluations": {}}, only, "category") is None
    other = with_methods(load_experiment("emoji", ["seeds=[9]"]), "category", ["cprl"])
    assert recorded(record, other, "category") is None
    methods["cprl"]["beta"] = 0.5
    assert recorded(record, only, "category") is None
    alone = with_methods(experiment, "category", ["class_cca"])
    assert recorded(record, alone, "category") == {"class_cca": found["class_cca"]}
    whole["features"]["image"]["network"] = "another"
    assert recorded(record, alone, "category") is None
