"""Milliseconds of one core from a sketch to its nearest pictures, and memory of a gallery.

Run from the project's folder::

    OMP_NUM_THREADS=1 python tests/benchmarks/bench_retrieval.py [--json bench.json]

A query is a made sketch: described by LKS (2,400 values), coded by a dictionary of 1,000 atoms as
CPRL codes new samples, searched for in a gallery of 15,000 and of 204,000 made codes: sparse ones
of 1,000 atoms, a few of which are not zero, and dense ones of 100; and in one of a million dense
codes of 150. Search is exact; its peers are a plain product with all codes and a sort, and
scikit-learn's brute force. The paper prints 1.18 s a query on a machine of its own.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parent))

from bench_descriptors import sketches
from entries import PLAIN, clustered_features, entry, report, seconds_each

from cppcl import CPRL
from cppcl.features import make_extractor
from cppcl.learning.estimator import merged
from cppcl.retrieval.gallery import Gallery

PAPER_QUERY = 1.18
SPARSE, DENSE = ("sparse", 1000, 0.02), ("dense", 100, 1.0)
GALLERIES = (
    *((15_000, *SPARSE), (15_000, *DENSE), (204_000, *SPARSE), (204_000, *DENSE)),
    (1_000_000, "dense", 150, 1.0),
)
"""Codes, their kind, their width, and the share of entries that are not zero."""
N_QUERIES = 50
TOTAL_LIMIT, SEARCH_LIMIT = 0.1, 0.01
K = 10


def codes(n: int, width: int, share: float, seed: int) -> NDArray[np.float32]:
    """Codes (n, width) around 250 centres, of which a share of the entries is not zero."""
    generator = np.random.default_rng(seed)
    centres = np.random.default_rng(99).standard_normal((250, width), dtype=np.float32)
    centres *= np.random.default_rng(98).random((250, width)) < share
    made = np.empty((n, width), np.float32)
    for first in range(0, n, 8192):
        part = made[first : first + 8192]
        part[:] = centres[generator.integers(250, size=len(part))]
        noise = 0.5 * generator.standard_normal(part.shape, dtype=np.float32)
        part += noise * ((part != 0) | (generator.random(part.shape) < share / 20))
    return made


def plain(gallery: NDArray[np.float32]) -> Callable[[Any], object]:
    """Product with all normalised codes, then a full sort."""
    unit = gallery / np.maximum(np.linalg.norm(gallery, axis=1, keepdims=True), 1e-12)
    return lambda query: np.argsort(unit @ query[0])[::-1][:K]


def scikit_learn(gallery: NDArray[np.float32]) -> Callable[[Any], object]:
    """Brute force of scikit-learn."""
    from sklearn.neighbors import NearestNeighbors

    model = NearestNeighbors(n_neighbors=K, algorithm="brute", metric="cosine").fit(gallery)
    return lambda query: model.kneighbors(query)


def before_search() -> tuple[float, float]:
    """Seconds to describe a sketch by LKS, and to code it with 1,000 atoms."""
    learned = make_extractor("lks").fit(sketches(60, seed=1))
    asked = sketches(N_QUERIES, seed=2)
    feature = seconds_each(learned.transform, asked)
    training, labels = clustered_features(2000, 2400, 50)
    once = {"initialization.n_initial_rounds": 1, "pacing.regularizer": "none"}
    model = CPRL(n_atoms=1000, alpha=0.05, n_rounds=1, **merged(PLAIN, once))
    model.fit(training[:1000], training[1000:], labels[:1000], labels[1000:])
    return feature, seconds_each(model.encode_sketches, clustered_features(N_QUERIES, 2400, 50)[0])


def searches(n: int, kind: str, width: int, share: float) -> tuple[list[dict[str, Any]], float]:
    """Entries of one gallery, and the seconds of an exact search."""
    gallery, queries = codes(n, width, share, 0), codes(N_QUERIES, width, share, 1)
    started = time.perf_counter()
    prepared = Gallery(gallery)
    built = time.perf_counter() - started
    ours = seconds_each(lambda query: prepared.nearest(query, K), queries)
    name = f"search, {n:,} {kind} codes of {width}"
    limit = SEARCH_LIMIT if n < 1_000_000 else TOTAL_LIMIT
    entries = [
        entry(
            name,
            ours,
            peer,
            seconds_each(make(gallery), queries),
            limit=limit,
            preparation_s=built,
        )
        for peer, make in (("plain product", plain), ("scikit-learn", scikit_learn))
    ]
    return entries, ours


def main() -> None:
    """Time the parts of a query."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="record that entries are added to")
    options = parser.parse_args()
    feature, encode = before_search()
    entries = [entry("describe a sketch, LKS", feature), entry("code it, 1,000 atoms", encode)]
    for n, kind, width, share in GALLERIES:
        found, search = searches(n, kind, width, share)
        entries += found
        if kind == "sparse":
            total = feature + encode + search
            entries.append(entry(f"query, {n:,}", total, "paper", PAPER_QUERY, limit=TOTAL_LIMIT))
    report(entries, options.json)


if __name__ == "__main__":
    main()
