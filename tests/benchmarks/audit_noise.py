"""Of as many training pairs, or labels, as are wrong: how many of the most suspect really are.

cppcl run emoji
python tests/benchmarks/audit_noise.py [WORKSPACE] [--experiment emoji] [--seeds 3]

``--bound`` adds, for labels, what a logistic regression of scikit-learn tells that was trained on
the right labels of the other samples, the same spaces: no audit has those.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from cppcl.audit.suspects import suspects_of
from cppcl.learning.agreement import agreement
from cppcl.learning.preparation import unit_rows
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


def right_posterior(sides: list[list[np.ndarray]], labels: np.ndarray) -> np.ndarray:
    """Logarithm of each label's posterior (n, G) out of fold, by models of right labels."""
    spaces = [
        [unit_rows(np.sign(F) * np.sqrt(np.abs(F.astype(float)))) for F in side] for side in sides
    ]
    rows = np.vstack([np.hstack([unit_rows(F - F.mean(axis=0)) for F in side]) for side in spaces])
    model = LogisticRegression(C=10.0, max_iter=300)
    found: np.ndarray = cross_val_predict(model, rows, labels, cv=5, method="predict_log_proba")
    return found


def bound(posterior: np.ndarray, truth: np.ndarray, given: np.ndarray) -> float:
    """Share of wrong samples among as many of the least likely as are wrong."""
    known = np.unique(truth)
    scores = posterior[np.arange(len(given)), np.searchsorted(known, given)]
    wrong = given != truth
    return float(wrong[np.argsort(scores, kind="stable")[: wrong.sum()]].mean())


def main() -> None:
    """Print a line for each protocol and share."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workspace", nargs="?", type=Path, default=Path(".cppcl"))
    parser.add_argument("--experiment", default="emoji")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--shares", type=float, nargs="+", default=SHARES)
    parser.add_argument("--protocols", nargs="+", help="these alone")
    parser.add_argument("--bound", action="store_true")
    options = parser.parse_args()
    store = Workspace(options.workspace).store
    _, record = Workspace(options.workspace).find_run(options.experiment, "evaluate")
    for protocol, methods in record["evaluations"].items():
        if protocol not in (options.protocols or record["evaluations"]):
            continue
        for share in options.shares:
            precisions, estimates, bounds = [], [], []
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
                if options.bound and kind == "labels":
                    spaces = [
                        np.split(F, np.cumsum(w)[:-1], axis=1)
                        for F, w in zip(features, widths, strict=True)
                    ]
                    posterior = right_posterior(spaces, np.concatenate(truth))
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
                    if options.bound and kind == "labels":
                        joined = np.concatenate(truth), np.concatenate(given)
                        bounds.append(bound(posterior, *joined))
            print(
                f"{protocol}: {100 * share:.0f} % wrong {kind}: of as many "
                f"{100 * np.mean(precisions):.1f} ± {100 * np.std(precisions):.1f} % are wrong; "
                f"expected share {100 * np.mean(estimates):.1f} %; {len(precisions)} draws"
                + (f"; bound {100 * np.mean(bounds):.1f} %" if bounds else ""),
                flush=True,
            )


if __name__ == "__main__":
    main()
