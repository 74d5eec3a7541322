"""What benchmarks of the learner share: synthetic features, timing, and their record."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

REPEATS = 5
PLAIN: dict[str, Any] = {
    "beta": 1.0,
    "pacing": {"eta": 1.3},
    "initialization": {"atom_start": "samples"},
    "preparation": {"n_components": None, "whiten": False, "power": 1.0},
    "coding": {"code_ridge": 0.0, "soft_links": 0.0},
}
"""Options of CPRL on features as they are: what is timed is the paper's learner."""
ONCE_ABOVE = 60.0
"""Seconds above which a measurement is not repeated."""


def seconds(
    work: Callable[[], object],
    repeats: int = REPEATS,
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """Median time of a call, which is not repeated where it takes over a minute."""
    times: list[float] = []
    while len(times) < repeats and not (times and times[-1] > ONCE_ABOVE):
        started = clock()
        work()
        times.append(clock() - started)
    return statistics.median(times)


def seconds_each(
    work: Callable[[Any], object],
    items: Sequence[Any],
    repeats: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """Median time of an item, after a first that warms up."""
    work(items[:1])
    rows = [*range(len(items))] * repeats
    times = [seconds(lambda row=row: work(items[row : row + 1]), 1, clock) for row in rows]
    return statistics.median(times)


def in_process(
    program: str, flag: str, payload: Any, environment: dict[str, str] | None = None
) -> Any:
    """What a benchmark prints last, as JSON, when it is run with a flag and a payload of JSON."""
    command = [sys.executable, program, flag, json.dumps(payload)]
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def clustered_features(
    n: int, width: int, n_clusters: int, *, seed: int = 0, noise: float = 1.0
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Unit-norm features (n, width) around non-negative centres, less their mean, and clusters."""
    generator = np.random.default_rng(seed)
    centres = np.abs(generator.standard_normal((n_clusters, width), dtype=np.float32))
    labels = generator.integers(n_clusters, size=n)
    features = np.empty((n, width), dtype=np.float32)
    for first in range(0, n, 8192):
        rows = slice(first, first + 8192)
        drawn = generator.standard_normal((len(labels[rows]), width), dtype=np.float32)
        features[rows] = np.maximum(centres[labels[rows]] + noise * drawn, 0)
    features -= features.mean(axis=0)
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    return features, labels


def product_rate(n: int = 5000, width: int = 2400, n_atoms: int = 1000) -> float:
    """Floating point operations a second of a matrix product of this size, in float32."""
    left = np.ones((n, width), dtype=np.float32)
    right = np.ones((n_atoms, width), dtype=np.float32)
    return 2.0 * n * width * n_atoms / seconds(lambda: left @ right.T)


def entry(
    name: str,
    ours: float,
    peer: str | None = None,
    peer_seconds: float | None = None,
    *,
    limit: float | None = None,
    **rest: Any,
) -> dict[str, Any]:
    """One line of the record.

    ``ratio`` is how many times faster than the peer we are, ``share_of_limit`` the share of our
    time that the limit alone would take.
    """
    return {
        "name": name,
        "ours_s": ours,
        "peer": peer,
        "peer_s": peer_seconds,
        "ratio": None if peer_seconds is None else peer_seconds / ours,
        "limit": limit,
        "share_of_limit": None if limit is None else limit / ours,
        **rest,
    }


def report(entries: Sequence[dict[str, Any]], record: Path | None) -> None:
    """Print entries as a table; replace those of the same name and peer in a JSON record."""
    main = ("name", "ours_s", "peer", "peer_s", "ratio", "limit", "share_of_limit")
    for item in entries:
        cells = [f"{item['name']:44}", f"{item['ours_s']:9.3f} s"]
        if item["peer"]:
            cells.append(f"{item['peer']:18} {item['peer_s']:9.2f} s, {item['ratio']:7.1f} x")
        if item["limit"] is not None:
            cells.append(f"limit {item['limit']:.3f} s, {100 * item['share_of_limit']:.0f} %")
        cells += [f"{name} {_short(value)}" for name, value in item.items() if name not in main]
        print("  ".join(cells), flush=True)
    if record is None:
        return
    known = json.loads(record.read_text()) if record.exists() else []
    fresh = {(item["name"], item["peer"]) for item in entries}
    kept = [item for item in known if (item["name"], item["peer"]) not in fresh]
    record.write_text(json.dumps([*kept, *entries], indent=1) + "\n")


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
