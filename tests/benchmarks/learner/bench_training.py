"""Seconds and memory of training at the sizes of the paper's data sets, on synthetic features.

Run from the project's folder::

    python tests/benchmarks/learner/bench_training.py [flickr15k] [cufs] [tuberlin] [growth] \
        [--device cuda] [--json bench.json]

Without names every part runs but 'tuberlin', which takes some minutes and 10 GB. 'growth' trains
ever more classes of 400 samples, with 5 curriculum pairs a sample. Every run is a
process of its own, whose peak memory is that of the operating system. With ``--device cuda`` code
and dictionary steps run on the GPU.

The limit of 'flickr15k' is the time of its matrix products alone at the rate that one product
reaches in the same run.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[3]))
sys.path.insert(0, str(Path(__file__).parents[1]))

from entries import PLAIN, clustered_features, entry, in_process, product_rate, report

SIZES: dict[str, dict[str, Any]] = {
    # pairs of one class each, pixels, and the paper's N
    "cufs": {
        "samples": (88, 88),
        "width": 1280,
        "classes": 88,
        "options": {"n_atoms": 50, "alpha": 0.01, "n_rounds": 15},
    },
    # 40 % of 330 sketches and 14,660 images
    "flickr15k": {
        "samples": (132, 5864),
        "width": 2400,
        "classes": 33,
        "options": {"n_atoms": 1000, "alpha": 0.05, "n_rounds": 50},
    },
    # 250 classes, 10 sketches of each held out
    "tuberlin": {
        "samples": (17_500, 204_000),
        "width": 1350,
        "classes": 250,
        "options": {
            "n_atoms": 1000,
            "alpha": 0.05,
            "n_rounds": 3,
            "initialization": {"n_initial_rounds": 3},
        },
    },
}
GROWTH = (2_000, 6_000, 20_000, 60_000, 200_000)
"""Samples of both modalities together."""


def train(
    samples: tuple[int, int], width: int, classes: int, options: dict[str, Any], pairs: int = 0
) -> dict[str, Any]:
    """Train once in this process, with so many pairs a sample; seconds, bytes and the history."""
    from cppcl import CPRL
    from cppcl.curriculum import ExplicitPairs
    from cppcl.learning.estimator import merged
    from cppcl.optim.alternation import Alternation

    # Compiled before the clock starts, as in every process after the first one of a machine.
    small, few = clustered_features(200, 8, 4)
    options = merged(PLAIN, options)
    once = merged(
        options, {"n_atoms": 4, "n_rounds": 1, "initialization": {"n_initial_rounds": 1}}
    )
    two_pairs = ExplicitPairs(np.array([[0, 1], [2, 3]]), 200) if pairs else None
    CPRL(**once).fit(small, small, few, few, two_pairs, two_pairs)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    sides = [clustered_features(n, width, classes, seed=side) for side, n in enumerate(samples)]
    if samples[0] == samples[1] == classes:
        sides = [(features, np.arange(classes)) for features, _ in sides]
    curricula = [None, None]
    if pairs:
        generator = np.random.default_rng(0)
        curricula = [
            ExplicitPairs(_within_class(labels, pairs * len(labels), generator), len(labels))
            for _, labels in sides
        ]
    times: dict[str, float] = {}
    for name in ("step_pacing", "step_codes", "step_dictionaries", "_record"):
        _time_calls(Alternation, name, times)
    started = time.perf_counter()
    model = CPRL(**merged(options, {"pacing": {"stop_when_selected": False}})).fit(
        *(F for F, _ in sides), *(labels for _, labels in sides), *curricula
    )
    seconds = time.perf_counter() - started
    history = model.history_
    return {
        "seconds": seconds,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "before": before,
        "rounds": len(history["objective"]),
        "initialisation_s": seconds - sum(times.values()),
        "sd_v": [
            round(float(x), 4)
            for x in history["image_sd_v"][:: max(1, len(history["image_sd_v"]) // 5)]
        ],
        **{f"{name.removeprefix('step_').strip('_')}_s": value for name, value in times.items()},
    }


def _time_calls(owner: type, name: str, times: dict[str, float]) -> None:
    plain = getattr(owner, name)
    times[name] = 0.0

    def timed(self: Any, *args: Any) -> Any:
        started = time.perf_counter()
        try:
            return plain(self, *args)
        finally:
            times[name] += time.perf_counter() - started

    setattr(owner, name, timed)


def _within_class(labels: Any, n_pairs: int, generator: np.random.Generator) -> Any:
    """Pairs of a random sample and a random other one of its class, ordered by random scores."""
    order = np.argsort(labels, kind="stable")
    ends = np.cumsum(np.bincount(labels))
    row = generator.integers(len(labels), size=n_pairs)
    own = labels[order[row]]
    partner = generator.integers(ends[own] - np.bincount(labels)[own], ends[own])
    pairs = np.stack([order[row], order[partner]], axis=1)[row != partner]
    scores = generator.random(len(labels))
    wrong = scores[pairs[:, 0]] > scores[pairs[:, 1]]
    pairs[wrong] = pairs[wrong][:, ::-1]
    return pairs


def products(samples: tuple[int, int], width: int, n_atoms: int, rounds: int) -> float:
    """Floating point operations of a round's matrix products that no method can do without.

    For each modality: features and atoms for the codes, codes and atoms for the losses, the
    moments of codes with themselves and with features, and 10 steps or sweeps of the dictionary
    on the moments (or on the samples, where they are fewer than half the atoms).
    """
    total = 0.0
    for n in samples:
        moments = n * n_atoms * (n_atoms + width)
        steps = 10 * n_atoms * width * min(n_atoms, 2 * n)
        total += 2.0 * (2 * n * n_atoms * width + moments + steps)
    return rounds * total


def measure(parts: list[str], device: str) -> list[dict[str, Any]]:
    """Run the parts that were asked for."""
    extra = {} if device == "cpu" else {"device": device, "coding": {"code_solver": "gradient"}}
    rate = product_rate()
    entries = []
    for name, size in SIZES.items():
        if name not in parts:
            continue
        settings = {**size, "options": {**size["options"], **extra}}
        result = in_process(__file__, "--one", settings)
        rounds, n_atoms = result["rounds"], size["options"]["n_atoms"]
        # Initial rounds are about as expensive as others.
        total = rounds + size["options"].get("initialization", {}).get("n_initial_rounds", 10)
        flops = products(size["samples"], size["width"], n_atoms, total)
        entries.append(
            entry(
                f"training, {name} size, {device}",
                result.pop("seconds"),
                limit=flops / rate if device == "cpu" else None,
                gigabytes=result.pop("peak") / 1e9,
                gflops_reached=flops / 1e9 / sum(v for k, v in result.items() if k.endswith("_s")),
                gflops_product=rate / 1e9,
                **result,
            )
        )
    if "growth" in parts:
        entries += growth(extra, device)
    return entries


def growth(extra: dict[str, Any], device: str) -> list[dict[str, Any]]:
    """Slopes of seconds and memory in the number of samples, on a double logarithmic scale."""
    entries, times, peaks = [], [], []
    for n in GROWTH:
        sketches = n // 10
        options = {"n_atoms": 200, "alpha": 0.05, "n_rounds": 5, **extra}
        options["initialization"] = {"n_initial_rounds": 3}
        settings = {"samples": (sketches, n - sketches), "width": 256, "classes": n // 400}
        result = in_process(__file__, "--one", {**settings, "options": options, "pairs": 5})
        times.append(result["seconds"])
        peaks.append(result["peak"] - result["before"])
        entries.append(
            entry(
                f"training, {n} samples, {device}",
                times[-1],
                gigabytes=result["peak"] / 1e9,
                **{key: value for key, value in result.items() if key.endswith("_s")},
            )
        )
    logs = np.log(np.array(GROWTH, dtype=float))
    slopes = [float(np.polyfit(logs, np.log(values), 1)[0]) for values in (times, peaks)]
    last = [
        math.log(values[-1] / values[-2]) / math.log(GROWTH[-1] / GROWTH[-2])
        for values in (times, peaks)
    ]
    names = ("time_slope", "memory_slope", "last_time_slope", "last_memory_slope")
    entries[-1] |= dict(zip(names, slopes + last, strict=True))
    return entries


def main() -> None:
    """Measure and report, or train once for the process that asks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", default=["cufs", "flickr15k", "growth"])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        settings = json.loads(options.one)
        settings["samples"] = tuple(settings["samples"])
        print(json.dumps(train(**settings)))
        return
    report(measure(options.parts, options.device), options.json)


if __name__ == "__main__":
    main()
