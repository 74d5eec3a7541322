"""How steadily results stay in their places while one draws, and what that costs.

cppcl run emoji-on-the-fly
python tests/benchmarks/drawings/bench_settling.py [WORKSPACE]

For each slack, of 24 places: the share that keep their picture from one step of a drawing to the
next, and the share of sketches whose right picture is within the first 10 places, as a mean over
the steps and at the end. The slack is chosen on every other test concept and reported on the rest.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from cppcl.datasets.unfinished import drawn_shares
from cppcl.retrieval.exact import nearest
from cppcl.retrieval.settling import settled
from storage import Reference
from tasks.samples import open_pictures
from tasks.stages.evaluate import open_test_set
from tasks.workspace import Workspace

SLACKS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)
PLACES, WITHIN = 24, 10


def main() -> None:
    """Print a line for each slack and half of the concepts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workspace", nargs="?", type=Path, default=Path(".cppcl"))
    parser.add_argument("--protocol", default="unfinished")
    parser.add_argument("--method", default="ridge_cca")
    options = parser.parse_args()
    workspace = Workspace(options.workspace)
    store = workspace.store
    _, record = workspace.find_run("emoji-on-the-fly", "evaluate")
    evaluations = record["evaluations"][options.protocol][options.method]
    half: dict[str, dict[float, list[np.ndarray]]] = {"chosen on": {}, "reported": {}}
    for text in evaluations:
        scored = store.open(Reference.parse(text))
        inputs = scored.inputs
        test = open_test_set(store, inputs["codes"], inputs["split"], inputs["table"], "groups")
        table = open_pictures(store, inputs["table"]).table
        shares = drawn_shares(table.column("ids", "sketch"))[test.query_rows]
        found, similar = nearest(
            test.query_codes, test.gallery_codes, 2 * PLACES, metric=scored.parameters["metric"]
        )
        for number, concept in enumerate(np.unique(test.query_labels)):
            steps = np.flatnonzero(test.query_labels == concept)
            steps = steps[np.argsort(shares[steps])]
            part = half["reported" if number % 2 else "chosen on"]
            for slack in SLACKS:
                shown: list[int] = []
                kept, right = [], []
                for step in steps:
                    rows = found[step].tolist()
                    at = settled(rows, similar[step].tolist(), shown, PLACES, slack)
                    places = [rows[k] for k in at]
                    if shown:
                        kept.append(np.mean(np.array(places) == np.array(shown)))
                    shown = places
                    right.append(concept in test.gallery_labels[places[:WITHIN]])
                part.setdefault(slack, []).append(
                    np.array([np.mean(kept), np.mean(right), right[-1]])
                )
    for name, by_slack in half.items():
        for slack, values in by_slack.items():
            kept, right, end = 100 * np.mean(values, axis=0)
            print(
                f"{name}, slack {slack:.2f}: {kept:.1f} % of places kept, right within {WITHIN} "
                f"{right:.1f} % over all steps, {end:.1f} % at the end"
            )


if __name__ == "__main__":
    main()
