"""Seconds to code samples sparsely, against scikit-learn and SPAMS at the same objective.

Run from the project's folder::

    python tests/benchmarks/learner/bench_coding.py [--device cuda] [--json bench.json]

5,000 samples of 2,400 columns, 1,000 atoms. The limit is one product of features and atoms in the
same run, which every method needs. Peers need ``pip install -e '.[bench]'``. SPAMS solves by
least-angle regression, exactly; the objectives of all three are printed relative to the least.
With ``--device`` the samples are coded by accelerated proximal gradient there, and the peer is our
own coordinate descent on the processor.
"""

from __future__ import annotations

import argparse
import functools
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[3]))
sys.path.insert(0, str(Path(__file__).parents[1]))

from entries import clustered_features, entry, report, seconds

from cppcl.optim.code_problem import CodeProblem
from cppcl.optim.codes import encode, update_codes
from cppcl.optim.terms import CodeBlock

SAMPLES, WIDTH, ATOMS, ALPHA = 5000, 2400, 1000, 0.1


def low_rank_features(n: int, *, rank: int = 100, seed: int = 0) -> NDArray[np.float32]:
    """Unit-norm features near a subspace: any two atoms are correlated."""
    generator = np.random.default_rng(seed)
    basis = generator.standard_normal((rank, WIDTH), dtype=np.float32)
    features = generator.standard_normal((n, rank), dtype=np.float32) @ basis
    features += 3 * generator.standard_normal((n, WIDTH), dtype=np.float32)
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    return features


def objective(
    features: NDArray[Any], atoms: NDArray[Any], codes: NDArray[Any], alpha: float
) -> float:
    """Sum over samples in float64."""
    total = 0.0
    for first in range(0, len(features), 500):
        rows = slice(first, first + 500)
        C = np.asarray(codes[rows], dtype=np.float64)
        residual = features[rows] - C @ atoms.astype(np.float64)
        total += float((residual**2).sum()) + alpha * float(np.abs(C).sum())
    return total


def problems() -> Iterator[tuple[str, NDArray[np.float32], NDArray[np.float32]]]:
    """Kind, features and atoms."""
    for kind, stacked in (
        ("clustered", clustered_features(SAMPLES + ATOMS, WIDTH, 50)[0]),
        ("low rank", low_rank_features(SAMPLES + ATOMS)),
    ):
        yield kind, np.ascontiguousarray(stacked[:SAMPLES]), stacked[SAMPLES:].copy()


def timed(work: dict[str, Callable[[], Any]]) -> tuple[dict[str, float], dict[str, Any]]:
    """Seconds and results of calls by name."""
    found: dict[str, Any] = {}
    times = {
        name: seconds(lambda name=name, call=call: found.update({name: call()}))
        for name, call in work.items()
    }
    return times, found


def scikit_learn(features: NDArray[Any], atoms: NDArray[Any]) -> NDArray[Any]:
    """Codes by scikit-learn."""
    from sklearn.decomposition import sparse_encode

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sparse_encode(features, atoms, algorithm="lasso_cd", alpha=ALPHA / 2, n_jobs=2)


def lars(features: NDArray[Any], atoms: NDArray[Any]) -> NDArray[Any]:
    """Codes by SPAMS."""
    import spams

    columns, D = np.asfortranarray(features.T), np.asfortranarray(atoms.T)
    return spams.lasso(columns, D=D, lambda1=ALPHA / 2, mode=2, numThreads=2).T.toarray()


def measure() -> list[dict[str, Any]]:
    """Time all three on both kinds of features."""
    entries = []
    for kind, features, atoms in problems():
        given = features, atoms
        limit = seconds(lambda given=given: given[0] @ given[1].T)
        encode(features[:300], atoms, ALPHA)  # compiles
        times, found = timed(
            {
                "scikit-learn": functools.partial(scikit_learn, *given),
                "SPAMS": functools.partial(lars, *given),
                "ours": lambda given=given: encode(*given, ALPHA, tol=1e-3).codes,
            }
        )
        values = {name: objective(*given, codes, ALPHA) for name, codes in found.items()}
        least = min(values.values())
        rest = {
            "non_zeros": float((found["ours"] != 0).mean()),
            "ours_above_least": values["ours"] / least - 1,
        }
        for peer in ("scikit-learn", "SPAMS"):
            above = values[peer] / least - 1
            name = f"lasso coding, {kind} features"
            both = times["ours"], peer, times[peer]
            entries.append(entry(name, *both, limit=limit, **rest, peer_above_least=above))
    return entries


def measure_device(device: str) -> list[dict[str, Any]]:
    """Time the code step on a device against the one on the processor."""
    entries = []
    for kind, features, atoms in problems():
        block = CodeBlock(slice(0, SAMPLES), features, atoms)
        problem = CodeProblem([block], np.ones(SAMPLES, dtype=np.float32), ALPHA)
        start = np.zeros((SAMPLES, ATOMS), dtype=np.float32)
        options = {"solver": "gradient", "device": device, "max_iter": 300, "tol": 1e-3}
        work: dict[str, Callable[[], Any]] = {
            "device": functools.partial(update_codes, problem, start=start, **options),
            "processor": functools.partial(encode, features, atoms, ALPHA, tol=1e-3),
        }
        for call in work.values():
            call()
        times, found = timed(work)
        values = {name: problem.value(result.codes) for name, result in found.items()}
        least = min(values.values())
        entries.append(
            entry(
                f"code step, {kind} features, {device}",
                times["device"],
                "coordinate descent",
                times["processor"],
                iterations=found["device"].n_iter,
                ours_above_least=values["device"] / least - 1,
                peer_above_least=values["processor"] / least - 1,
            )
        )
    return entries


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", help="such as cuda")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    entries = measure_device(options.device) if options.device else measure()
    report(entries, options.json)


if __name__ == "__main__":
    main()
