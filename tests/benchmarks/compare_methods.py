"""Paired differences between the methods of a run, with bootstrap intervals over queries.

Run an experiment first, then::

    cppcl run emoji
    python tests/benchmarks/compare_methods.py emoji

For each protocol, every method is compared with the first one on the same queries of all splits:
rank-1 for instances, average precision for categories. An interval that holds 0 says that the
difference could be chance; queries are drawn with replacement within each split.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[2]))

from storage import Reference, Store
from tasks.workspace import Workspace

DRAWS = 2000
TARGETS = {"instance": "groups", "category": "labels"}


def main() -> None:
    """Print one line a method and protocol."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("experiment")
    parser.add_argument("--workspace", type=Path, default=Path(".cppcl"))
    options = parser.parse_args()
    workspace = Workspace(options.workspace)
    _, record = workspace.find_run(options.experiment, "evaluate")
    for name, protocol in record["configuration"]["protocols"].items():
        rule = protocol["split"]["rule"]
        values = {
            method: per_query(workspace.store, record, arguments, rule)
            for method, arguments in protocol["methods"].items()
        }
        first, reference = next(iter(values.items()))
        for method, others in values.items():
            if method != first:
                print(f"{name}: {first} minus {method}: {difference(reference, others)}")


def per_query(
    store: Store, record: dict[str, Any], arguments: dict[str, Any], rule: str
) -> list[NDArray[np.float64]]:
    """Score of every query, one array a split, in the order of the splits' keys."""
    options = {name: value for name, value in arguments.items() if name != "method"}
    wanted = {"method": arguments["method"], "options": options, "target": TARGETS[rule]}
    found: dict[Reference, NDArray[np.float64]] = {}
    for text in record["all_artifacts"]:
        stage, _, key = text.partition("/")
        if stage != "evaluate":
            continue
        artifact = store.open(Reference(stage, key))
        model = store.open(store.open(artifact.inputs["codes"]).inputs["model"])
        if model.parameters == wanted:
            name = "first_relevant_rank" if rule == "instance" else "average_precision"
            values = artifact.array(name)
            found[artifact.inputs["split"]] = (values == 1) * 1.0 if rule == "instance" else values
    return [found[split] for split in sorted(found)]


def difference(first: list[NDArray[np.float64]], second: list[NDArray[np.float64]]) -> str:
    """Mean difference in per cent with its 95 % interval."""
    generator = np.random.default_rng(0)
    splits = [a - b for a, b in zip(first, second, strict=True)]
    splits = [d[np.isfinite(d)] for d in splits]
    draws = np.mean(
        [d[generator.integers(len(d), size=(DRAWS, len(d)))].mean(axis=1) for d in splits], axis=0
    )
    low, high = np.quantile(draws, [0.025, 0.975])
    mean = np.mean([d.mean() for d in splits])
    return f"{100 * mean:+.2f} [{100 * low:+.2f}, {100 * high:+.2f}]"


if __name__ == "__main__":
    main()
