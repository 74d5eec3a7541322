"""Rank-1 over the share of a sketch that is drawn, with and without curricula, as a figure.

cppcl run emoji-drawn
cppcl run emoji-drawn --set name=emoji-drawn-edgeness --set sketch_source=scores
python tests/benchmarks/drawings/half_drawn.py [WORKSPACE] [--figure FILE.png]

Thinned or jittered drawings in place of unfinished ones: ``--set dataset.way=thinned`` and another
name in both commands, and here ``--run NAME``. Runs that are not there are left out.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cppcl.datasets.unfinished import drawn_share
from cppcl.errors import InputError
from cppcl.report.style import defaults, line, png, tidy
from cppcl.retrieval.comparison import mean_interval, paired_difference
from storage import Reference
from tasks.lineage import Lineage
from tasks.samples import open_pictures
from tasks.stages.evaluate import open_evaluation
from tasks.workspace import Workspace

PLAIN, SHORT = "no curriculum", "3 rounds, no curriculum"
ROWS = {
    "fuller is easier": ("", "cprl", PLAIN),
    "fuller is easier, 10 mu": ("", "cprl_strong_curriculum", PLAIN),
    "edgeness": ("-edgeness", "cprl", PLAIN),
    "no pacing": ("", "cprl_no_pacing", PLAIN),
    PLAIN: ("", "cprl_no_curriculum", ""),
    "3 rounds, fuller is easier": ("", "cprl_short", SHORT),
    "a tenth of the pairs": ("-tenth", "cprl", PLAIN),
    "simulated annotator": ("-simulated", "cprl", PLAIN),
    "3 rounds, edgeness": ("-edgeness", "cprl_short", SHORT),
    SHORT: ("", "cprl_short_no_curriculum", ""),
    "ridge CCA": ("", "ridge_cca", PLAIN),
}
"""End of the run's name, method of each curve, and the curve that it is compared with."""

SHOWN = ("fuller is easier", PLAIN, "no pacing", "3 rounds, fuller is easier", "ridge CCA")
"""Curves of the figure; others lie on one of them."""

Found = list[NDArray[np.float64]]
"""Of each split: 1 where the right picture came first, (n_shares, n_concepts)."""


def found_first(
    workspace: Workspace, run: str, method: str
) -> tuple[list[float], Found, list[NDArray[np.str_]]]:
    """Shares, what was found, and the concepts of each split."""
    store = workspace.store
    _, record = workspace.find_run(run, "evaluate")
    found: Found = []
    concepts = []
    for reference in record["evaluations"]["instance"][method]:
        lineage = Lineage.of_evaluation(store, Reference.parse(reference))
        table = open_pictures(store, lineage.table).table
        rows = store.open(Reference.parse(reference)).array("query_rows")
        ids, groups = table.column("ids", "sketch"), np.array(table.column("groups", "sketch"))
        shares = np.array([drawn_share(ids[row]) for row in rows.tolist()])
        right = open_evaluation(store, Reference.parse(reference)).first_relevant_rank == 1
        known = np.unique(shares)
        order = np.argsort(groups[rows], kind="stable")
        by_share = [right[order][shares[order] == share] for share in known]
        found.append(np.array(by_share, dtype=float))
        concepts.append(np.unique(groups[rows]))
    return known.tolist(), found, concepts


def figure(shares: list[float], curves: dict[str, list[float]]) -> bytes:
    """Rank-1 of every method over the share drawn."""
    from matplotlib.figure import Figure

    with defaults():
        drawing = Figure(figsize=(6.4, 3.6), layout="constrained")
        axes = drawing.subplots()
        tidy(axes)
        for number, (name, values) in enumerate(curves.items()):
            axes.plot([100 * s for s in shares], values, **line(number, name))
        axes.set_xlabel("strokes drawn (%)")
        axes.set_ylabel("rank-1 (%)")
        axes.set_ylim(bottom=0)
        axes.legend(fontsize="small")
        return png(drawing)


def main() -> None:
    """Print the curves and the differences, and write the figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workspace", nargs="?", type=Path, default=Path(".cppcl"))
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--run", default="emoji-drawn")
    options = parser.parse_args()
    workspace = Workspace(options.workspace)
    found = {}
    for name, (end, method, _) in ROWS.items():
        try:
            found[name] = found_first(workspace, options.run + end, method)
        except InputError as error:
            print(f"{name}: {error}")
    shares, _, concepts = found[PLAIN]
    numbers = np.unique(np.concatenate(concepts), return_inverse=True)[1]
    queries = np.split(numbers, np.cumsum([len(split) for split in concepts])[:-1])
    curves: dict[str, list[float]] = {}
    for name, (_, right, _) in found.items():
        rows = range(len(shares))
        curves[name] = [
            100 * mean_interval([split[k] for split in right], queries).mean for k in rows
        ]
        values = " ".join(f"{value:5.1f}" for value in curves[name])
        print(f"{name:32s} {values}  mean {np.mean(curves[name]):5.2f}")
        if not (other := ROWS[name][2]):
            continue
        for what, of in [("all", slice(None)), *((f"{100 * shares[k]:.0f} %", k) for k in rows)]:
            both = [
                [split[of].reshape(-1, split.shape[1]).mean(axis=0) for split in side]
                for side in (right, found[other][1])
            ]
            d = paired_difference(both[0], both[1], queries)
            print(f"  {what:6s} {100 * d.mean:+6.2f} [{100 * d.low:+.2f}, {100 * d.high:+.2f}]")
    if options.figure:
        options.figure.write_bytes(figure(shares, {name: curves[name] for name in SHOWN}))


if __name__ == "__main__":
    main()
