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

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[2]))

from storage import Reference, Store
from tasks.workspace import Workspace

DRAWS = 2000


def main() -> None:
    """Print one line a method and protocol."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("experiment")
    parser.add_argument("--workspace", type=Path, default=Path(".cppcl"))
    options = parser.parse_args()
    workspace = Workspace(options.workspace)
    _, record = workspace.find_run(options.experiment, "evaluate")
    protocols = record["configuration"]["protocols"]
    for name, methods in record["evaluations"].items():
        rule = protocols[name]["split"]["rule"]
        values = {
            method: per_query(workspace.store, [Reference.parse(text) for text in texts], rule)
            for method, texts in methods.items()
        }
        first, reference = next(iter(values.items()))
        for method, others in values.items():
            if method != first:
                print(f"{name}: {first} minus {method}: {difference(reference, others)}")


def per_query(store: Store, evaluations: list[Reference], rule: str) -> list[NDArray[np.float64]]:
    """Score of every query, one array a split, in the order of the splits' keys."""
    found: dict[Reference, NDArray[np.float64]] = {}
    for artifact in map(store.open, evaluations):
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
