"""Dictionaries to start from: learned jointly on linked pairs, or for each modality alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import InputError
from cppcl.optim.codes import CodeBlock, CodeProblem, update_codes
from cppcl.optim.dictionary import perturbed_atoms, project_atoms, update_dictionary

AtomStart = Literal["samples", "principal"]
"""Atoms before any learning: random samples, or principal directions of the stacked views."""


def starting_atoms(
    views: Sequence[NDArray[Any]], n_atoms: int, *, start: AtomStart, rng: np.random.Generator
) -> list[NDArray[Any]]:
    """Atoms that the views share, (N, m_k) for each view (P, m_k) with paired rows.

    Principal directions that run out (N beyond the rank) are continued by samples, and samples
    that run out by perturbed copies.
    """
    if start not in get_args(AtomStart):
        raise InputError(f"atom_start={start!r} is not one of {get_args(AtomStart)}")
    stacked = np.hstack(views)
    atoms = np.empty((0, stacked.shape[1]), dtype=stacked.dtype)
    if start == "principal":
        _, values, directions = np.linalg.svd(stacked, full_matrices=False)
        kept = values > 1e-6 * values.max(initial=0.0)
        # Either view of a direction has norm about 2^-1/2; sqrt(K) makes it about 1.
        atoms = directions[kept][:n_atoms] * float(len(views)) ** 0.5
    missing = n_atoms - len(atoms)
    order = np.concatenate(
        [rng.permutation(len(stacked)) for _ in range(-(-missing // len(stacked)))]
        or [np.empty(0, dtype=np.int64)]
    )[:missing]
    dictionaries, first = [], 0
    for view in views:
        of_view = atoms[:, first : first + view.shape[1]]
        first += view.shape[1]
        samples = perturbed_atoms(view[order], rng=rng)
        dictionaries.append(np.vstack([project_atoms(of_view), samples]))
    return dictionaries


def learn_shared_codes(
    views: Sequence[NDArray[Any]],
    n_atoms: int,
    *,
    alpha: float,
    start: AtomStart,
    n_rounds: int,
    rng: np.random.Generator,
) -> list[NDArray[Any]]:
    """Learn dictionaries of paired views that share one code a pair.

    Minimises ``sum_k |F_k - C D_k|^2 + K alpha |C|_1`` over codes and atoms in the unit ball
    (joint dictionary learning, Yang et al. 2010, for K = 2 views; plain dictionary learning for
    one), by alternation.

    Parameters
    ----------
    views : sequence of (P, m_k) arrays
        Features of P pairs, one matrix a view.
    n_atoms : int
        Number of atoms N.
    alpha : float
        Weight of the L1 norm for one view.
    start : {'samples', 'principal'}
        Atoms before learning.
    n_rounds : int
        Alternations; 0 returns the starting atoms.
    rng : numpy Generator
        Source of the draws.

    Returns
    -------
    list of (N, m_k) arrays
        One dictionary a view.
    """
    dictionaries = starting_atoms(views, n_atoms, start=start, rng=rng)
    n = len(views[0])
    ones = np.ones(n, dtype=views[0].dtype)
    codes = np.zeros((n, n_atoms), dtype=views[0].dtype)
    for _ in range(n_rounds):
        gram = sum((D @ D.T for D in dictionaries), start=np.zeros((), codes.dtype))
        correlations = sum(
            (F @ D.T for F, D in zip(views, dictionaries, strict=True)),
            start=np.zeros((), codes.dtype),
        )
        problem = CodeProblem(
            correlations, [CodeBlock(slice(0, n), gram)], ones, alpha * len(views)
        )
        codes = update_codes(problem, start=codes).codes
        dictionaries = [
            update_dictionary(F, codes, ones, start=D).dictionary
            for F, D in zip(views, dictionaries, strict=True)
        ]
    return dictionaries
