"""Choose a method's options by cross-validation inside training samples; test rows are not read.

Run an experiment first, then, for example::

    cppcl run emoji
    python tests/benchmarks/choose_parameters.py emoji --protocol instance --method cprl \
        --grid alpha=0.001,0.003 --grid n_atoms=60,100

Options that the grid leaves out are those of the experiment. Every split is searched by itself;
the last table is the mean over splits.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import yaml

sys.path.insert(0, str(Path(__file__).parents[2]))

from cppcl.methods import make_method
from cppcl.model_selection import grid_search
from storage import Artifact, Reference, Store
from tasks.build_curricula import open_curriculum, targets, training_rows
from tasks.extract import usable_rows
from tasks.fetch import open_pictures
from tasks.split import open_split
from tasks.workspace import Workspace

TARGETS = {"instance": "groups", "category": "labels"}


def main() -> None:
    """Search every split of a protocol and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("experiment")
    parser.add_argument("--workspace", type=Path, default=Path(".cppcl"))
    parser.add_argument("--protocol", choices=TARGETS, required=True)
    parser.add_argument("--method", default="cprl")
    parser.add_argument("--grid", action="append", default=[], metavar="NAME=VALUE,VALUE")
    parser.add_argument("--folds", type=int, default=3)
    options = parser.parse_args()
    grid = {
        name: [yaml.safe_load(value) for value in values.split(",")]
        for name, _, values in (item.partition("=") for item in options.grid)
    }
    workspace = Workspace(options.workspace)
    _, record = workspace.find_run(options.experiment)
    chosen = record["configuration"]["protocols"][options.protocol]["methods"][options.method]
    registered = chosen.pop("method")
    base = {name: value for name, value in chosen.items() if name not in grid}
    wanted = {"method": registered, "options": chosen, "target": TARGETS[options.protocol]}
    tables = []
    for model in trained(workspace.store, record, wanted):
        started = time.perf_counter()
        result = grid_search(
            partial(make_method, registered, **base),
            grid,
            **training_data(workspace.store, model),
            held_out="classes" if options.protocol == "instance" else "samples",
            n_folds=options.folds,
            score="rank_1" if options.protocol == "instance" else "map",
        )
        tables.append(result.mean)
        seconds = time.perf_counter() - started
        print(f"split {len(tables)}: best {result.best_options}, {seconds:.0f} s", flush=True)
    mean = np.mean(tables, axis=0)
    for index in np.argsort(-mean):
        print(f"{100 * mean[index]:6.2f}  {result.options[index]}")


def trained(store: Store, record: dict[str, Any], wanted: dict[str, Any]) -> Iterator[Artifact]:
    """Models of the latest run that were trained with these parameters, one a split."""
    for text in record["all_artifacts"]:
        stage, _, key = text.partition("/")
        if stage == "train":
            artifact = store.open(Reference(stage, key))
            if artifact.parameters == wanted:
                yield artifact


def training_data(store: Store, model: Artifact) -> dict[str, Any]:
    """Arguments of `grid_search` from what a model was trained on."""
    inputs = model.inputs
    table = open_pictures(store, inputs["table"]).table
    split = open_split(store, inputs["split"])
    data: dict[str, Any] = {}
    for modality in ("sketch", "image"):
        features = store.open(inputs[f"{modality}_features"])
        rows = training_rows(split, modality)
        kept = usable_rows(features)[rows]
        rows = rows[kept]
        data[f"{modality}_features"] = features.rows("features", rows)
        data[f"{modality}_labels"] = targets(table, modality, model.parameters["target"], rows)
        data[f"{modality}_groups"] = targets(table, modality, "groups", rows)
        if "curricula" in inputs:
            data[f"{modality}_curriculum"] = open_curriculum(
                store, inputs["curricula"], modality, kept
            )
    return data


if __name__ == "__main__":
    main()
