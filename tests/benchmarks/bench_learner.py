"""CPRL's time and memory beside scikit-learn's dictionary learning on the same features.

Run from the project's folder::

    OMP_NUM_THREADS=1 python tests/benchmarks/bench_learner.py [--pairs 457] [--columns 300]

The peer learns one plain dictionary of the stacked views, without graph, pacing or curricula; at
equal numbers of passes over the data it does less than CPRL.
"""

from __future__ import annotations

import argparse
import sys
import time
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from cppcl.curriculum import pairs_from_scores
from cppcl.learning.cprl import CPRL

ROUNDS = 12


def measured(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds, and peak megabytes of a second run."""
    started = time.perf_counter()
    work()
    seconds = time.perf_counter() - started
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return seconds, peak


def main() -> None:
    """Time both on two noisy views of shared sparse codes."""
    from sklearn.decomposition import MiniBatchDictionaryLearning
    from sklearn.exceptions import ConvergenceWarning

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=457)
    parser.add_argument("--columns", type=int, default=300)
    parser.add_argument("--atoms", type=int, default=100)
    options = parser.parse_args()
    generator = np.random.default_rng(0)
    n, m, N = options.pairs, options.columns, options.atoms
    codes = generator.standard_normal((n, N)) * (generator.random((n, N)) < 0.1)
    views = [
        (
            codes @ generator.standard_normal((N, m)) + 0.1 * generator.standard_normal((n, m))
        ).astype(np.float32)
        for _ in range(2)
    ]
    stacked = np.hstack([view / np.linalg.norm(view, axis=1, keepdims=True) for view in views])
    labels = np.arange(n)
    pairs = pairs_from_scores(generator.random(n), labels)

    def peer() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            MiniBatchDictionaryLearning(
                N, alpha=0.005, fit_algorithm="cd", max_iter=ROUNDS, batch_size=256, random_state=0
            ).fit(stacked)

    unit, unit_peak = measured(peer)
    print(f"{'scikit-learn':14} {unit:7.2f} s, ratio 1     {unit_peak:7.1f} MB, ratio 1")
    for name, settings, curriculum in (
        ("CPRL, V = I", {"regularizer": "none"}, None),
        ("CPRL, B", {"regularizer": "B"}, None),
        ("CPRL, B, pairs", {"regularizer": "B"}, pairs),
    ):

        def fit(settings: dict[str, str] = settings, curriculum: object = curriculum) -> None:
            CPRL(n_atoms=N, alpha=0.01, n_rounds=ROUNDS, pacing={**settings, "eta": 2.0}).fit(
                *views, labels, labels, curriculum, curriculum
            )

        seconds, peak = measured(fit)
        print(
            f"{name:14} {seconds:7.2f} s, ratio {seconds / unit:5.2f} "
            f"{peak:7.1f} MB, ratio {peak / unit_peak:5.2f}"
        )


if __name__ == "__main__":
    main()
