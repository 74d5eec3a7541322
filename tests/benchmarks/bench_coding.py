"""Seconds to code samples sparsely, against scikit-learn and SPAMS at the same objective.

Run from the project's folder::

    python tests/benchmarks/bench_coding.py [--device cuda] [--json bench.json]

5,000 samples of 2,400 columns, 1,000 atoms. The limit is one product of features and atoms in the
same run, which every method needs. Peers need ``pip install -e '.[bench]'``. SPAMS solves by
least-angle regression, exactly; the objectives of all three are printed relative to the least.
With ``--device`` the samples are coded by accelerated proximal gradient there, and the peer is our
own coordinate descent on the processor.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parent))

from entries import clustered_features, entry, report, seconds

from cppcl.optim.code_problem import CodeProblem
from cppcl.optim.codes import encode, update_codes
from cppcl.optim.terms import CodeBlock

SAMPLES, WIDTH, ATOMS = 5000, 2400, 1000


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


def measure() -> list[dict[str, Any]]:
    """Time all three on both kinds of features."""
    import spams
    from sklearn.decomposition import sparse_encode

    entries = []
    both = {
        "clustered": (clustered_features(SAMPLES + ATOMS, WIDTH, 50)[0], 0.1),
        "low rank": (low_rank_features(SAMPLES + ATOMS), 0.1),
    }
    for kind, (stacked, alpha) in both.items():
        features, atoms = np.ascontiguousarray(stacked[:SAMPLES]), stacked[SAMPLES:].copy()
        limit = seconds(lambda features=features, atoms=atoms: features @ atoms.T)
        encode(features[:300], atoms, alpha)  # compiles
        found: dict[str, Any] = {}

        def ours(features=features, atoms=atoms, alpha=alpha, found=found) -> None:
            found["ours"] = encode(features, atoms, alpha, tol=1e-3).codes

        def sklearn(features=features, atoms=atoms, alpha=alpha, found=found) -> None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found["scikit-learn"] = sparse_encode(
                    features, atoms, algorithm="lasso_cd", alpha=alpha / 2, n_jobs=2
                )

        def lars(features=features, atoms=atoms, alpha=alpha, found=found) -> None:
            found["SPAMS"] = spams.lasso(
                np.asfortranarray(features.T),
                D=np.asfortranarray(atoms.T),
                lambda1=alpha / 2,
                mode=2,
                numThreads=2,
            ).T.toarray()

        times = {"scikit-learn": seconds(sklearn), "SPAMS": seconds(lars), "ours": seconds(ours)}
        values = {name: objective(features, atoms, codes, alpha) for name, codes in found.items()}
        least = min(values.values())
        for peer in ("scikit-learn", "SPAMS"):
            entries.append(
                entry(
                    f"lasso coding, {kind} features",
                    times["ours"],
                    peer,
                    times[peer],
                    limit=limit,
                    non_zeros=float((found["ours"] != 0).mean()),
                    ours_above_least=values["ours"] / least - 1,
                    peer_above_least=values[peer] / least - 1,
                )
            )
    return entries


def measure_device(device: str) -> list[dict[str, Any]]:
    """Time the code step on a device against the one on the processor."""
    entries = []
    both = {
        "clustered": (clustered_features(SAMPLES + ATOMS, WIDTH, 50)[0], 0.1),
        "low rank": (low_rank_features(SAMPLES + ATOMS), 0.1),
    }
    for kind, (stacked, alpha) in both.items():
        features, atoms = np.ascontiguousarray(stacked[:SAMPLES]), stacked[SAMPLES:].copy()
        problem = CodeProblem(
            [CodeBlock(slice(0, SAMPLES), features, atoms)],
            np.ones(SAMPLES, dtype=np.float32),
            alpha,
        )
        start = np.zeros((SAMPLES, ATOMS), dtype=np.float32)
        found: dict[str, Any] = {}

        def there(problem=problem, start=start, found=found) -> None:
            found["device"] = update_codes(
                problem, start=start, solver="gradient", device=device, max_iter=300, tol=1e-3
            )

        def here(features=features, atoms=atoms, alpha=alpha, found=found) -> None:
            found["processor"] = encode(features, atoms, alpha, tol=1e-3)

        there(), here()
        times = {"device": seconds(there), "processor": seconds(here)}
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
