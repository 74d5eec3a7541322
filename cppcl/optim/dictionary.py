"""The dictionary step: least squares over atoms of at most unit norm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cppcl.optim.codes import largest_eigenvalue

DictionarySolver = Literal["gradient", "dual"]
"""Projected gradient, or the Lagrange dual of `cppcl.optim.dictionary_dual`."""


@dataclass(frozen=True)
class DictionaryResult:
    """Outcome of a dictionary step.

    Attributes
    ----------
    dictionary : (N, m) array
        One atom a row, none longer than 1.
    n_iter : int
        Iterations taken.
    converged : bool
        Whether the solver met its tolerance.
    """

    dictionary: NDArray[Any]
    n_iter: int
    converged: bool


def project_atoms(dictionary: NDArray[Any]) -> NDArray[Any]:
    """Scale atoms (rows) longer than 1 back to unit norm."""
    norms = np.linalg.norm(dictionary, axis=1, keepdims=True)
    projected: NDArray[Any] = dictionary / np.maximum(norms, 1)
    return projected


def update_dictionary(
    features: NDArray[Any],
    codes: NDArray[Any],
    v: NDArray[Any],
    *,
    start: NDArray[Any],
    max_iter: int = 30,
    tol: float = 1e-5,
) -> DictionaryResult:
    """Lower ``sum_p v_p^2 |f_p - c_p D|^2`` over atoms in the unit ball, warm-started.

    Accelerated projected gradient on the (N, N) and (N, m) moments, with gradient restart; never
    ends above its start.

    Parameters
    ----------
    features : (n, m) array
        Samples of one modality.
    codes : (n, N) array
        Their codes.
    v : (n,) array
        Their pacing variables.
    start : (N, m) array
        Dictionary to start from, atoms in the unit ball.
    max_iter : int, default 30
        Iterations; a step of an alternation need not converge.
    tol : float, default 1e-5
        Relative change of the dictionary, in Frobenius norm, that ends the step.
    """
    weighted = codes * (v * v)[:, None]
    A, B = weighted.T @ codes, weighted.T @ features
    curvature = largest_eigenvalue(A)
    if curvature <= 0:
        return DictionaryResult(start, 0, True)

    def value(D: NDArray[Any]) -> float:
        return float(np.vdot(D, A @ D - 2 * B))

    def accelerate(momentum: bool) -> DictionaryResult:
        D, Y, t = start, start, 1.0
        for iteration in range(1, max_iter + 1):
            D_new = project_atoms(Y - (A @ Y - B) / curvature)
            change = D_new - D
            if momentum and float(np.vdot(Y - D_new, change)) > 0:
                t = 1.0
            t_new = (1 + (1 + 4 * t * t) ** 0.5) / 2
            Y = D_new + ((t - 1) / t_new) * change if momentum else D_new
            D, t = D_new, t_new
            if np.linalg.norm(change) <= tol * np.linalg.norm(D):
                return DictionaryResult(D, iteration, True)
        return DictionaryResult(D, max_iter, False)

    result = accelerate(momentum=True)
    if value(result.dictionary) <= value(start):
        return result
    return accelerate(momentum=False)


def unused_atoms(codes: NDArray[Any]) -> NDArray[np.int64]:
    """Return the atoms that no sample uses, given codes (n, N) of one modality."""
    mass = np.einsum("pn,pn->n", codes, codes)
    return np.flatnonzero(mass <= 1e-10 * mass.max(initial=0.0))


def replace_unused_atoms(
    dictionary: NDArray[Any],
    codes: NDArray[Any],
    features: NDArray[Any],
    weighted_losses: NDArray[Any],
    *,
    rng: np.random.Generator,
    largest_share: float = 0.05,
    noise: float = 1e-2,
) -> NDArray[Any]:
    """Give unused atoms the worst represented samples, slightly perturbed.

    No sample's code uses those atoms, so the objective stays as it is.

    Parameters
    ----------
    dictionary : (N, m) array
        Atoms of one modality; not changed.
    codes : (n, N) array
        Codes of its samples.
    features : (n, m) array
        Its samples.
    weighted_losses : (n,) array
        Pacing variable times reconstruction error.
    rng : numpy Generator
        Source of the perturbation.
    largest_share : float, default 0.05
        Share of the atoms (at least one atom) that may be replaced at once.
    noise : float, default 0.01
        Norm of the perturbation relative to the sample.
    """
    dead = unused_atoms(codes)[: max(1, int(largest_share * len(dictionary)))]
    worst = np.argsort(-weighted_losses, kind="stable")[: len(dead)]
    worst = worst[np.linalg.norm(features[worst], axis=1) > 0]
    dead = dead[: len(worst)]
    replaced = dictionary.copy()
    replaced[dead] = perturbed_atoms(features[worst], rng=rng, noise=noise)
    return replaced


def perturbed_atoms(
    samples: NDArray[Any], *, rng: np.random.Generator, noise: float = 1e-2
) -> NDArray[Any]:
    """Unit-norm atoms from samples (N, m), each with Gaussian noise of relative norm `noise`."""
    norms = np.linalg.norm(samples, axis=1, keepdims=True)
    jitter = rng.standard_normal(samples.shape).astype(samples.dtype)
    jitter *= noise / samples.shape[1] ** 0.5
    atoms = samples / np.where(norms > 0, norms, 1) + jitter
    norms = np.linalg.norm(atoms, axis=1, keepdims=True)
    unit: NDArray[Any] = atoms / np.where(norms > 0, norms, 1)
    return unit
