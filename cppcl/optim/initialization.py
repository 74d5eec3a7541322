"""Dictionaries to start from: learned jointly on linked pairs, or for each modality alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import InputError
from cppcl.learning.graph import Laplacian
from cppcl.optim.code_problem import CodeProblem
from cppcl.optim.codes import CODE_TOLERANCE, CodeSolver, update_codes
from cppcl.optim.dictionary import perturbed_atoms, project_atoms, update_dictionary
from cppcl.optim.terms import CodeBlock

AtomStart = Literal["samples", "principal", "correlated"]
"""Atoms before any learning: random samples, principal directions of the stacked views, or the
directions in which linked samples of the two modalities agree most."""
SAMPLES_PER_ATOM = 50
"""Most samples (or pairs) that initial dictionaries are learned from."""
DictionaryStart = Literal["joint", "independent"]
"""Start of the dictionaries: shared codes of linked pairs, or each modality alone."""


def initial_dictionaries(
    features: tuple[NDArray[Any], NDArray[Any]],
    laplacian: Laplacian,
    n_atoms: int,
    *,
    alpha: float,
    initialization: DictionaryStart,
    start: AtomStart,
    n_rounds: int,
    rng: np.random.Generator,
    code_solver: CodeSolver = "coordinate",
    device: str = "cpu",
    weights: tuple[NDArray[Any], NDArray[Any]] | None = None,
) -> list[NDArray[Any]]:
    """Learn a dictionary of each modality to start training from.

    Parameters
    ----------
    features : pair of (n_k, m_k) arrays
        Prepared features, sketches first.
    laplacian : Laplacian
        The graph, from which pairs are drawn.
    n_atoms : int
        Number of atoms N.
    alpha : float
        Weight of the L1 norm.
    initialization : {'joint', 'independent'}
        Shared codes of linked pairs, or each modality on its own.
    start : {'samples', 'principal', 'correlated'}
        Atoms before learning.
    n_rounds : int
        Alternations of codes and dictionaries.
    rng : numpy Generator
        Source of the draws.
    code_solver, device
        As in `cppcl.optim.codes.update_codes`.
    weights : pair of (n_k,) arrays, optional
        Weight of each sample, from 0 to 1, in the directions that correlate; other atoms start
        from samples, or pairs, of at least half.

    Returns
    -------
    list of two (N, m_k) arrays
        Dictionaries with atoms in the unit ball, learned from at most 50 samples or pairs an
        atom.

    Raises
    ------
    InputError
        When `start` is 'correlated' but the modalities are initialised independently.
    """
    if initialization == "independent":
        if start == "correlated":
            raise InputError(
                "atom_start='correlated' needs linked pairs; use dictionaries='joint'"
            )
        if weights is not None:
            features = tuple(map(_trusted, features, weights))  # type: ignore[assignment]
        alone = [[F[_some(len(F), n_atoms, rng)]] for F in features]
        started = [starting_atoms(views, n_atoms, start=start, rng=rng) for views in alone]
    else:
        sketches, images = laplacian.sample_pairs(rng)
        if weights is not None:
            sketches, images = (
                _trusted(rows, weights[0][sketches] * weights[1][images])
                for rows in (sketches, images)
            )
        some = _some(len(sketches), n_atoms, rng)
        sketches, images = sketches[some], images[some]
        alone = [[features[0][sketches], features[1][images]]]
        if start == "correlated":
            weighted = features
            if weights is not None:
                of_sketch, of_image = (
                    F * w[:, None] for F, w in zip(features, weights, strict=True)
                )
                weighted = of_sketch, of_image
            left, strengths, right = laplacian.correlated_directions(*weighted)
            # Coded with a large ridge, an atom's length is its weight in the cosine of codes.
            lengths = strengths / strengths.max()
            kept = lengths > 1e-5
            leading = [(lengths[:, None] * directions)[kept] for directions in (left, right)]
            started = [complete_atoms(leading, alone[0], n_atoms, rng=rng)]
        else:
            started = [starting_atoms(alone[0], n_atoms, start=start, rng=rng)]
    return [
        D
        for views, atoms in zip(alone, started, strict=True)
        for D in learn_shared_codes(
            views,
            atoms,
            alpha=alpha,
            n_rounds=n_rounds,
            code_solver=code_solver,
            device=device,
        )
    ]


def _trusted(rows: NDArray[Any], weights: NDArray[Any]) -> NDArray[Any]:
    """Rows of a weight of at least half, or all where there are none."""
    kept = weights >= 0.5
    return rows[kept] if kept.any() else rows


def _some(n: int, n_atoms: int, rng: np.random.Generator) -> Any:
    """Rows to learn from: all of n, or a sorted draw of as many as are enough."""
    enough = SAMPLES_PER_ATOM * n_atoms
    if n <= enough:
        return slice(None)
    return np.sort(rng.choice(n, size=enough, replace=False))


def starting_atoms(
    views: Sequence[NDArray[Any]], n_atoms: int, *, start: AtomStart, rng: np.random.Generator
) -> list[NDArray[Any]]:
    """Atoms that the views share, (N, m_k) for each view (P, m_k) with paired rows."""
    edges = np.cumsum([view.shape[1] for view in views])[:-1]
    leading = np.empty((0, sum(view.shape[1] for view in views)), dtype=views[0].dtype)
    if start == "principal":
        _, values, directions = np.linalg.svd(np.hstack(views), full_matrices=False)
        # A view's part of a direction has norm about K^-1/2; this makes it about 1.
        leading = directions[values > 1e-5 * values.max(initial=0.0)] * float(len(views)) ** 0.5
    return complete_atoms(np.split(leading, edges, axis=1), views, n_atoms, rng=rng)


def complete_atoms(
    leading: Sequence[NDArray[Any]],
    views: Sequence[NDArray[Any]],
    n_atoms: int,
    *,
    rng: np.random.Generator,
) -> list[NDArray[Any]]:
    """Fill up with samples where there are too few directions, then with copies of samples.

    Parameters
    ----------
    leading : sequence of (r, m_k) arrays
        Directions to start with, paired between views; brought into the unit ball.
    views : sequence of (P, m_k) arrays
        Paired samples.
    n_atoms : int
        Atoms wanted.
    rng : numpy Generator
        Order of the samples, and the perturbation that tells copies apart.
    """
    n = len(views[0])
    missing = max(0, n_atoms - len(leading[0]))
    orders = [rng.permutation(n) for _ in range(-(-missing // n))]
    order = np.concatenate([np.empty(0, dtype=np.int64), *orders])[:missing]
    return [
        np.vstack([project_atoms(first[:n_atoms]), perturbed_atoms(view[order], rng=rng)])
        for first, view in zip(leading, views, strict=True)
    ]


def learn_shared_codes(
    views: Sequence[NDArray[Any]],
    dictionaries: Sequence[NDArray[Any]],
    *,
    alpha: float,
    n_rounds: int,
    code_solver: CodeSolver = "coordinate",
    device: str = "cpu",
) -> list[NDArray[Any]]:
    """Learn dictionaries of paired views that share one code a pair.

    Minimises ``sum_k |F_k - C D_k|^2 + K alpha |C|_1`` over codes and atoms in the unit ball
    (joint dictionary learning, Yang et al. 2010, for K = 2 views; plain dictionary learning for
    one), by alternation.

    Parameters
    ----------
    views : sequence of (P, m_k) arrays
        Features of P pairs, one matrix a view.
    dictionaries : sequence of (N, m_k) arrays
        Atoms to start from.
    alpha : float
        Weight of the L1 norm for one view.
    n_rounds : int
        Alternations; 0 returns the starting atoms.
    code_solver, device
        As in `cppcl.optim.codes.update_codes`.

    Returns
    -------
    list of (N, m_k) arrays
        One dictionary a view.
    """
    dictionaries = list(dictionaries)
    n, dtype = len(views[0]), views[0].dtype
    ones = np.ones(n, dtype=dtype)
    codes = np.zeros((n, len(dictionaries[0])), dtype=dtype)
    stacked = np.hstack(views) if len(views) > 1 else views[0]
    for _ in range(n_rounds):
        # Shared codes see the stacked views and atoms.
        atoms = np.hstack(dictionaries)
        block = CodeBlock(slice(0, n), stacked, atoms)
        problem = CodeProblem([block], ones, alpha * len(views))
        codes = update_codes(
            problem, start=codes, solver=code_solver, device=device, tol=CODE_TOLERANCE
        ).codes
        dictionaries = [
            update_dictionary(F, codes, ones, start=D, device=device).dictionary
            for F, D in zip(views, dictionaries, strict=True)
        ]
    return dictionaries
