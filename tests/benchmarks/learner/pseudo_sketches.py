"""What 0, 1 and 5 sketches of a class bring on PACS, with and without contours of photos.

cppcl run pacs-pseudo
python tests/benchmarks/learner/pseudo_sketches.py [WORKSPACE] [--figure FILE.png]

Differences are of the same queries in the same splits; intervals over queries are bootstrapped,
those over splits are Student's.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cppcl.report.style import COLOURS, defaults, png, tidy
from cppcl.retrieval.comparison import interval_over_splits, paired_difference
from storage import Reference
from tasks.stages.evaluate import open_evaluation
from tasks.workspace import Workspace

METHODS = ("class_cca", "logistic_regression", "cprl")
WITH = {0: "contours", 1: "one_and_contours", 5: "five_and_contours"}
WITHOUT = {1: "one", 5: "five"}
Scores = list[NDArray[np.float64]]


def scores(
    workspace: Workspace, evaluations: dict[str, list[str]], method: str
) -> tuple[Scores, list[NDArray[np.int64]]]:
    """Average precision of every query of each split, and which queries these are."""
    store = workspace.store
    references = [Reference.parse(text) for text in evaluations[method]]
    values = [open_evaluation(store, reference).average_precision for reference in references]
    return values, [store.open(reference).array("query_rows") for reference in references]


def mean(values: Scores) -> float:
    """In per cent, over splits."""
    return 100 * float(np.mean([np.nanmean(split) for split in values]))


def figure(curves: dict[str, tuple[dict[int, float], dict[int, float]]]) -> bytes:
    """Mean average precision over the number of sketches of a class that train."""
    from matplotlib.figure import Figure

    with defaults():
        drawing = Figure(figsize=(6.4, 3.8), layout="constrained")
        axes = drawing.subplots()
        tidy(axes)
        for colour, (method, (with_contours, without)) in zip(
            COLOURS, curves.items(), strict=False
        ):
            places = {0: 0, 1: 1, 5: 2}
            for values, dash, marker, words in (
                (with_contours, "-", "o", "with contours"),
                (without, "--", "s", "sketches alone"),
            ):
                axes.plot(
                    [places[n] for n in values],
                    list(values.values()),
                    color=colour,
                    linestyle=dash,
                    marker=marker,
                    label=f"{method}, {words}",
                )
        axes.set_xticks([0, 1, 2], ["0", "1", "5"])
        axes.set_xlabel("sketches of a class that train")
        axes.set_ylabel("mAP (%)")
        axes.legend(fontsize="small", frameon=False)
        return png(drawing)


def main() -> None:
    """Print the scores and the differences, and write the figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workspace", nargs="?", type=Path, default=Path(".cppcl"))
    parser.add_argument("--figure", type=Path, default=Path("pseudo-sketches.png"))
    options = parser.parse_args()
    workspace = Workspace(options.workspace)
    _, record = workspace.find_run("pacs-pseudo", "evaluate")
    evaluations = record["evaluations"]
    curves = {}
    for method in filter(evaluations["one"].__contains__, METHODS):
        found = {p: scores(workspace, evaluations[p], method) for p in evaluations}
        curves[method] = (
            {n: mean(found[p][0]) for n, p in WITH.items()},
            {n: mean(found[p][0]) for n, p in WITHOUT.items()},
        )
        print(method, {p: round(mean(values), 1) for p, (values, _) in found.items()})
        pairs = [("contours", "one"), *((WITH[n], WITHOUT[n]) for n in WITHOUT)]
        for first, second in pairs:
            (ours, queries), (theirs, _) = found[first], found[second]
            over_queries = paired_difference(ours, theirs, queries)
            each = [np.nanmean(a) - np.nanmean(b) for a, b in zip(ours, theirs, strict=True)]
            over_splits = interval_over_splits(each)
            print(
                f"  {first} minus {second}: {100 * over_queries.mean:+.1f} "
                f"[{100 * over_queries.low:+.1f}, {100 * over_queries.high:+.1f}] over queries, "
                f"[{100 * over_splits.low:+.1f}, {100 * over_splits.high:+.1f}] over "
                f"{len(each)} splits"
            )
    if "raw_cosine" in evaluations[WITH[0]]:
        direct = mean(scores(workspace, evaluations[WITH[0]], "raw_cosine")[0])
        print(f"raw_cosine, which does not train: {direct:.1f}")
    options.figure.write_bytes(figure(curves))


if __name__ == "__main__":
    main()
