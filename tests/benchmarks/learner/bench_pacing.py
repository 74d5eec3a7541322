"""Seconds of the pacing step, against OSQP and Clarabel at no larger residual, and at full size.

Run from the project's folder::

    python tests/benchmarks/learner/bench_pacing.py [--json bench.json]
        [--only diagonal links knn large]

5,000 samples with 100,000 within-class pairs, coupled by class links, by these and neighbours
within the modalities, or not at all. Peers solve the same program with slack variables, OSQP to
1e-4 and Clarabel to its own 1e-8, each at most 300 s and, beyond a minute, once. Our tolerance is
the coarsest power of ten at which neither the residual of the optimality conditions
(`cppcl.optim.pacing.certificate.kkt_residual`, given each solver's own multipliers) nor the exact
objective is above the peer's. ``above`` is how far objectives lie above the best known one,
relative to it. Then 224,000 samples with 1,000,000 pairs, codes of 1,000 atoms and
14 million class links: seconds with the listing of links, and peak memory of the process.

Every measurement has a process of its own, without OPENBLAS_* settings and in one thread, and is
the median of five. ``processor_ratio`` compares the least processor times of the five, which
depend less on what else the machine does.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[3]))
sys.path.insert(0, str(Path(__file__).parents[1]))

from entries import ONCE_ABOVE, REPEATS, entry, in_process, report

SEED = 0
TIME_LIMIT = 300.0
PROBLEMS = ("diagonal", "links", "knn")
PEERS = {"osqp": "OSQP 1e-4", "clarabel": "Clarabel 1e-8"}
WANTED = {"diagonal": {"osqp": 15, "clarabel": 15}} | {
    name: {"osqp": 200, "clarabel": 50} for name in ("links", "knn")
}


def within_class_pairs(scores: Any, labels: Any, n_pairs: int, generator: Any) -> Any:
    """Distinct pairs (harder, easier) of samples of a class, about `n_pairs` in all."""
    import numpy as np

    pairs = []
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        first, second = np.triu_indices(len(members), 1)
        wanted = min(len(first), round(n_pairs * len(members) / len(labels)))
        chosen = generator.choice(len(first), wanted, replace=False)
        pair = np.column_stack([members[first[chosen]], members[second[chosen]]])
        swap = scores[pair[:, 0]] > scores[pair[:, 1]]
        pair[swap] = pair[swap, ::-1]
        pairs.append(pair)
    return np.concatenate(pairs)


def problem(
    kind: str,
    sizes: tuple[int, int] = (1000, 4000),
    n_classes: int = 20,
    n_pairs: int = 100_000,
    n_atoms: int = 50,
    dtype: str = "float64",
) -> tuple[Any, Any]:
    """A pacing problem without its graph term, and what that is made of."""
    import numpy as np

    from cppcl.curriculum.pairs import ExplicitPairs
    from cppcl.learning.affinity import within_weights
    from cppcl.learning.graph import Laplacian
    from cppcl.optim.pacing.options import Pacing
    from cppcl.optim.pacing.schedule import SelfPacing

    generator = np.random.default_rng(SEED)
    labels = [np.arange(sizes[0]) % n_classes, generator.integers(n_classes, size=sizes[1])]
    losses, curricula = [], []
    for of_side in labels:
        scores = generator.random(len(of_side))
        losses.append(np.exp(0.7 * generator.standard_normal(len(of_side)) - 1 - 0.8 * scores))
        share = round(n_pairs * len(of_side) / sum(sizes))
        pairs = within_class_pairs(scores, of_side, share, generator)
        curricula.append(ExplicitPairs(pairs, len(of_side)))
    centres = generator.standard_normal((n_classes, n_atoms), dtype=np.float32)
    centres *= generator.random((n_classes, n_atoms)) < 0.2
    codes = centres[np.concatenate(labels)]
    for first in range(0, len(codes), 8192):
        rows = slice(first, first + 8192)
        noise = generator.standard_normal(codes[rows].shape, dtype=np.float32)
        codes[rows] += 0.5 * noise * (generator.random(noise.shape, dtype=np.float32) < 0.2)
        codes[rows] /= 2 * np.linalg.norm(codes[rows], axis=1, keepdims=True)
    codes = codes.astype(dtype, copy=False)
    within = None
    if kind == "knn":
        K = sizes[0]
        within = tuple(
            within_weights(C, y, "knn")
            for C, y in zip((codes[:K], codes[K:]), labels, strict=True)
        )
    laplacian = Laplacian.from_labels(*labels, within=within, dtype=dtype)
    losses = np.concatenate(losses).astype(dtype)
    pacing = SelfPacing(
        sizes=sizes,
        curricula=curricula,
        laplacian=laplacian,
        options=Pacing(coupling="none" if kind == "diagonal" else "trace"),
    )
    pacing.gamma = 0.5 * float(np.median(losses))
    return pacing, (losses, codes)


def solve_by_osqp(program: Any) -> tuple[Any, Any, str]:
    """Solution, duals and status of OSQP at 1e-4 and else its own settings, but reproducibly."""
    import osqp

    solver = osqp.OSQP()
    solver.setup(
        *program,
        eps_abs=1e-4,
        eps_rel=1e-4,
        max_iter=100_000,
        adaptive_rho_interval=50,
        time_limit=TIME_LIMIT,
        verbose=False,
    )
    solution = solver.solve(raise_error=False)
    return solution.x, solution.y, str(solution.info.status)


def solve_by_clarabel(program: Any) -> tuple[Any, Any, str]:
    """Solution, duals (of finite upper bounds first) and status of Clarabel as it comes."""
    import clarabel
    import numpy as np
    from scipy import sparse

    above, below = np.isfinite(program.upper), np.isfinite(program.lower)
    rows = sparse.vstack([program.rows[above], -program.rows[below]], format="csc")
    bounds = np.concatenate([program.upper[above], -program.lower[below]])
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.time_limit, settings.max_threads = False, TIME_LIMIT, 1
    cones = [clarabel.NonnegativeConeT(len(bounds))]
    solver = clarabel.DefaultSolver(
        program.quadratic, program.linear, rows, bounds, cones, settings
    )
    solution = solver.solve()
    return np.array(solution.x), np.array(solution.z), str(solution.status)


def timed(work: Callable[[], object]) -> dict[str, float]:
    """Median wall time and least processor time of five calls, or of one that takes a minute."""
    wall, processor = [], []
    while len(wall) < REPEATS and not (wall and wall[-1] > ONCE_ABOVE):
        started = time.perf_counter(), time.process_time()
        work()
        wall.append(time.perf_counter() - started[0])
        processor.append(time.process_time() - started[1])
    return {"seconds": statistics.median(wall), "processor": min(processor)}


def peer(kind: str, name: str) -> dict[str, Any]:
    """Time a peer; its residual, objective and status."""
    import numpy as np

    from cppcl.optim.pacing.certificate import kkt_residual
    from cppcl.optim.pacing.programs import slack_program

    pacing, given = problem(kind)
    paced = pacing.problem(*given)
    n, P = len(paced.losses), len(paced.listed_pairs[0])
    scale = paced.gradient_scale(np.ones(n))
    program = slack_program(paced, scale)
    solve = {"osqp": solve_by_osqp, "clarabel": solve_by_clarabel}[name]
    found: dict[str, Any] = {}
    times = timed(lambda: found.update(solution=solve(program)))
    x, duals, status = found["solution"]
    v = np.clip(x[:n], 0, 1)
    residual = kkt_residual(paced, v, scale * duals[n : n + P])
    return {**times, "kkt": residual, "objective": paced.value(v), "status": status}


def ours(kind: str, residual: float, objective: float) -> dict[str, Any]:
    """Time our solver at the coarsest tolerance at which it is no worse than a peer's result."""
    import numpy as np

    from cppcl.optim.pacing.step import update_pacing

    pacing, given = problem(kind)
    paced = pacing.problem(*given)
    start = np.ones(len(paced.losses))
    best = update_pacing(paced, start=start, tol=1e-11)  # compiles, too
    tol = 1e-2
    result = update_pacing(paced, start=start, tol=tol)
    while result.kkt > residual or result.objective > max(objective, best.objective):
        tol /= 10
        result = update_pacing(paced, start=start, tol=tol)
    return {
        **timed(lambda: update_pacing(paced, start=start, tol=tol)),
        "kkt": result.kkt,
        "objective": result.objective,
        "best": best.objective,
        "tol": tol,
    }


def large() -> dict[str, Any]:
    """Time one step at full size, with the listing of links, and take its peak memory."""
    import resource

    import numpy as np

    small, given = problem("links", (100, 400), 5, 1000, 50, "float32")
    small.step(*given)  # compiles
    pacing, (losses, codes) = problem("links", (20_000, 204_000), 250, 1_000_000, 1000, "float32")

    def step() -> None:
        pacing.v = np.ones(len(losses), dtype=np.float32)
        pacing.step(losses, codes)

    return {
        **timed(step),
        "kkt": pacing.result.kkt,
        "gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9,
        "pairs": sum(map(len, pacing.curricula)),
        "links": pacing.laplacian.n_links(),
    }


def apart(work: str, *arguments: object) -> dict[str, Any]:
    """Run one of the functions above in a process of its own, in one thread."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}
    environment |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    found: dict[str, Any] = in_process(__file__, "--work", [work, *arguments], environment)
    return found


def measure(only: tuple[str, ...] = (*PROBLEMS, "large")) -> list[dict[str, Any]]:
    """Return an entry for every problem and peer; see `entries.entry`."""
    found = []
    for kind in (name for name in PROBLEMS if name in only):
        for name, label in PEERS.items():
            theirs = apart("peer", kind, name)
            mine = apart("ours", kind, theirs["kkt"], theirs["objective"])
            best = abs(mine["best"])
            found.append(
                entry(
                    f"pacing step, n 5000, 100k pairs, {kind}",
                    mine["seconds"],
                    label,
                    theirs["seconds"],
                    wanted_ratio=WANTED[kind][name],
                    processor=mine["processor"],
                    processor_ratio=theirs["processor"] / mine["processor"],
                    tol=mine["tol"],
                    kkt=mine["kkt"],
                    peer_kkt=theirs["kkt"],
                    above=(mine["objective"] - mine["best"]) / best,
                    peer_above=(theirs["objective"] - mine["best"]) / best,
                    peer_status=theirs["status"],
                )
            )
    if "large" in only:
        mine = apart("large")
        name = "pacing step, n 224000, 1M pairs, links"
        rest = {key: value for key, value in mine.items() if key != "seconds"}
        found.append(entry(name, mine["seconds"], wanted_s=60.0, wanted_gigabytes=4.0, **rest))
    return found


def main() -> None:
    """Measure and print; or do one piece of work for another process."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, metavar="PATH", help="add to this record")
    parser.add_argument("--only", nargs="+", choices=(*PROBLEMS, "large"), metavar="NAME")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work, *arguments = json.loads(options.work)
        print(json.dumps({"peer": peer, "ours": ours, "large": large}[work](*arguments)))
        return
    report(measure(tuple(options.only or (*PROBLEMS, "large"))), options.json)


if __name__ == "__main__":
    main()
