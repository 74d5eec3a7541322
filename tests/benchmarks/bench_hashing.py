"""Time and memory of supervised hashing against the number of pictures, made rows.

python tests/benchmarks/bench_hashing.py [--most 200000] [--kernel] [--paced]
"""

from __future__ import annotations

import argparse
import resource
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.hashing.dsh import DSH

SLOPE = 1.1
"""Of the logarithm of time against that of the number of pictures, at most."""
N_CLASSES, WIDTH, BITS, N_ROUNDS = 250, 128, 64, 4
LEAST, N_STEPS = 12_500, 5


def made_rows(n: int, seed: int = 0) -> list[NDArray[Any]]:
    """Features of n / 2 sketches and as many images, and their classes."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(N_CLASSES, WIDTH)).astype(np.float32)
    labels = [rng.integers(0, N_CLASSES, n // 2) for _ in range(2)]
    noise = [rng.normal(size=(n // 2, WIDTH)).astype(np.float32) for _ in range(2)]
    return [centres[of] + 3 * e for of, e in zip(labels, noise, strict=True)] + labels


def seconds_of(n: int, options: dict[str, Any]) -> tuple[float, int]:
    """Seconds of a training with n pictures, and its rounds."""
    samples = made_rows(n)
    started = time.process_time()
    # A small weight of labels, so that bits change in every round.
    method = DSH(bits=BITS, n_rounds=N_ROUNDS, label_weight=0.01, **options).fit(*samples)
    return time.process_time() - started, len(method.history_["objective"])


def main() -> None:
    """Print a line a size, and the slope."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=200_000)
    parser.add_argument("--kernel", action="store_true", help="300 anchors")
    parser.add_argument("--paced", action="store_true", help="regulariser B, its own loss")
    asked = parser.parse_args()
    options: dict[str, Any] = {}
    if asked.kernel:
        options["functions"] = {"kind": "kernel", "n_anchors": 300}
    if asked.paced:
        options["pacing"] = {"regularizer": "B"}
    seconds_of(LEAST // 4, options)  # imports and compilation
    sizes = np.geomspace(LEAST, asked.most, N_STEPS).round().astype(int)
    times = []
    print(f"{WIDTH} features, {N_CLASSES} classes, {BITS} bits, {options or 'linear'}")
    for n in sizes.tolist():
        taken, n_rounds = seconds_of(n, options)
        times.append(taken)
        # Sizes grow, so that the largest so far is that of this one.
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
        print(f"{n:>9,} pictures: {taken:7.1f} s of processor, {n_rounds} rounds, {peak:,.0f} MiB")
    slope = np.polyfit(np.log(sizes), np.log(times), 1)[0]
    print(f"slope {slope:.3f}, at most {SLOPE}: {'met' if slope <= SLOPE else 'missed'}")


if __name__ == "__main__":
    main()
