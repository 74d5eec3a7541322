"""Of as many training pairs, or labels, as are wrong: how many of the most suspect really are.

cppcl run emoji
python tests/benchmarks/audit_noise.py [WORKSPACE] [--experiment emoji] [--seeds 3]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from cppcl.audit.suspects import suspects_of
from cppcl.learning.agreement import agreement
from storage import Reference
from tasks.lineage import Lineage
from tasks.samples import part_widths, training_samples
from tasks.workspace import Workspace

SHARES = (0.05, 0.1, 0.2, 0.4)


def spoiled(targets: list[np.ndarray], kind: str, share: float, seed: int) -> list[np.ndarray]:
    """Targets of which a share is wrong: pairs change partners, labels are drawn anew."""
    rng = np.random.default_rng(seed)
    if kind == "pairs":
        sketches, images = targets
        wrong = rng.permutation(len(images))[: round(share * len(images))]
        images = images.copy()
        images[wrong] = images[np.roll(wrong, 1)]
        return [sketches, images]
    joined = np.concatenate(targets)
    names = np.unique(joined)
    for row in rng.permutation(len(joined))[: round(share * len(joined))]:
        joined[row] = rng.choice(names[names != joined[row]])
    return np.split(joined, [len(targets[0])])


def main() -> None:
    """Print a line for each protocol and share."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workspace", nargs="?", type=Path, default=Path(".cppcl"))
    parser.add_argument("--experiment", default="emoji")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--shares", type=float, nargs="+", default=SHARES)
    options = parser.parse_args()
    store = Workspace(options.workspace).store
    _, record = Workspace(options.workspace).find_run(options.experiment, "evaluate")
    for protocol, methods in record["evaluations"].items():
        for share in options.shares:
            precisions, estimates = [], []
            for reference in next(iter(methods.values())):
                lineage = Lineage.of_evaluation(store, Reference.parse(reference))
                target = lineage.training.parameters["target"]
                kind = "pairs" if target == "groups" else "labels"
                sides = training_samples(
                    store,
                    table=lineage.table,
                    split=lineage.split,
                    features=lineage.features,
                    target=target,
                )
                used = [lineage.features[side.modality] for side in sides]
                features = [s.features(store, f) for s, f in zip(sides, used, strict=True)]
                widths = [part_widths(store.open(f)) for f in used]
                truth = [side.labels for side in sides]
                for seed in range(options.seeds):
                    given = spoiled(truth, kind, share, seed)
                    found = agreement(*features, *given, kind=kind, spaces=(widths[0], widths[1]))
                    wrong = []
                    for one in suspects_of(found, given[0].tolist(), given[1].tolist()):
                        rows = (one.sketch, one.image)
                        known = {t[r] for t, r in zip(truth, rows, strict=True) if r is not None}
                        wrong.append(known != {one.given})
                    precisions.append(np.mean(wrong[: sum(wrong)]))
                    estimates.append(1 - found.right_share)
            print(
                f"{protocol}: {100 * share:.0f} % wrong {kind}: of as many "
                f"{100 * np.mean(precisions):.1f} ± {100 * np.std(precisions):.1f} % are wrong; "
                f"expected share {100 * np.mean(estimates):.1f} %; {len(precisions)} draws",
                flush=True,
            )


if __name__ == "__main__":
    main()
