"""Sparse codes of many samples that share a dictionary, by coordinate descent on active sets."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROWS_A_JOB = 128
"""Samples that a thread takes at once."""


def n_threads() -> int:
    """Threads of a parallel step: OMP_NUM_THREADS, else the processor cores allowed."""
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    if wanted.isdecimal() and int(wanted):
        return int(wanted)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def descend(
    gram: NDArray[Any],
    correlations: NDArray[Any],
    codes: NDArray[Any],
    thresholds: NDArray[Any],
    ridges: NDArray[Any],
    *,
    tol: float = 1e-4,
    max_iter: int = 1000,
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    r"""Minimise ``c G c / 2 - q c + t |c|_1 + r |c|_2^2 / 2`` for each row, in place.

    Each sample alternates between two steps until no atom violates the optimality conditions:
    cyclic coordinate descent restricted to its active atoms, on their part of the Gram matrix, to
    a small share of the largest violation, and a pass over all atoms that admits those which
    violate most. Work is proportional to the square of the number of active atoms, not of all.
    Every fourth sweep is followed by conjugate gradients at fixed signs, cut short where a code
    reaches zero, which nearly equal atoms need. No step raises the objective (but for rounding).

    Parameters
    ----------
    gram : (N, N) array
        G, inner products of the atoms.
    correlations : (n, N) array
        q, C-contiguous; overwritten by ``q - c G``.
    codes : (n, N) array
        c to start from, C-contiguous; overwritten by the solution.
    thresholds, ridges : (n,) arrays
        t and r, not negative. A row of infinite threshold is left as it is.
    tol : float, default 1e-4
        Largest violation of the optimality conditions, relative to the sample's largest
        correlation; rounding limits it to about 1e-6 for float32.
    max_iter : int, default 1000
        Sweeps over the active atoms of a sample, and steps of conjugate gradients.

    Returns
    -------
    sweeps : (n,) int64 array
        Sweeps and steps that each sample took.
    converged : (n,) bool array
        Which samples met the tolerance.
    """
    from cppcl.optim.coordinate_kernels import descend_rows

    n, dtype = len(codes), codes.dtype
    sweeps, converged = np.zeros(n, dtype=np.int64), np.ones(n, dtype=np.bool_)
    thresholds, ridges = thresholds.astype(dtype), ridges.astype(dtype)
    smallest = dtype.type(max(tol, 16 * float(np.finfo(dtype).eps)))

    def work(first: int) -> None:
        rows = slice(first, first + ROWS_A_JOB)
        descend_rows(
            gram,
            correlations[rows],
            codes[rows],
            thresholds[rows],
            ridges[rows],
            smallest,
            max_iter,
            sweeps[rows],
            converged[rows],
        )

    jobs = range(0, n, ROWS_A_JOB)
    threads = min(n_threads(), len(jobs))
    if threads <= 1:
        for first in jobs:
            work(first)
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(work, jobs))
    return sweeps, converged
