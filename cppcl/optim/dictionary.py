"""The dictionary step: least squares over atoms of at most unit norm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.optim.accelerated import Step, descend_from
from cppcl.optim.devices import placed, to_numpy
from cppcl.optim.terms import chunks, largest_eigenvalue

ATOMS_AT_ONCE = 64
"""Atoms whose residuals one product of matrices gives."""


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
        True if the solver met its tolerance.
    """

    dictionary: NDArray[Any]
    n_iter: int
    converged: bool


def project_atoms(dictionary: Any) -> Any:
    """Scale atoms, rows of an array or tensor, that are longer than 1 back to unit norm."""
    norms = (dictionary * dictionary).sum(axis=1, keepdims=True) ** 0.5
    return dictionary / norms.clip(1)


def update_dictionary(
    features: NDArray[Any],
    codes: NDArray[Any],
    v: NDArray[Any],
    *,
    start: NDArray[Any],
    device: str = "cpu",
    max_iter: int | None = None,
    tol: float | None = None,
) -> DictionaryResult:
    """Lower ``sum_p v_p^2 |f_p - c_p D|^2`` over atoms in the unit ball, warm-started.

    With at least as many samples as atoms, on the processor, by sweeps of block coordinate descent
    (Mairal, Bach, Ponce and Sapiro 2010) on the moments ``A = C^T V^2 C`` and ``B = C^T V^2 F``:
    given the other atoms, an atom's minimiser is the point of the unit ball nearest to
    ``d_k + (b_k - a_k D) / a_kk``. Atoms are taken 64 at a time, so that nearly all the work is in
    products of matrices. Otherwise by accelerated projected gradient with restart, on the moments
    or on fewer samples than atoms themselves: exact minimisers would make atoms equal that few
    samples use, and a GPU would wait for each atom. Never ends above its start (but for rounding).

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
    device : str, default 'cpu'
        A torch device; 'cpu' computes by numpy.
    max_iter : int, optional
        Iterations: by default 10 sweeps or 30 gradient steps. A step of an alternation need not
        converge.
    tol : float, optional
        Relative change of the dictionary, in Frobenius norm, that ends the step: by default 1e-2
        of a sweep or 1e-4 of a gradient step.
    """
    used = codes.any(axis=1) & (v > 0)
    if not used.any():
        return DictionaryResult(start, 0, True)
    few = int(used.sum()) < codes.shape[1]
    if device == "cpu" and not few:
        sweeps, share = 10 if max_iter is None else max_iter, 1e-2 if tol is None else tol
        return _sweep(_Moments(features, codes, v, device), start, sweeps, share)
    steps, share = 30 if max_iter is None else max_iter, 1e-4 if tol is None else tol
    objective = (
        _Samples(features[used], codes[used], v[used], device)
        if few
        else _Moments(features, codes, v, device)
    )
    curvature = largest_eigenvalue(to_numpy(objective.gram))
    if curvature <= 0:
        return DictionaryResult(start, 0, True)

    def step(Y: Any, D: Any) -> Step:
        gradient = objective.gradient(Y)
        D_new, ahead, change, size = _projected_step(Y, gradient, D, curvature, device)
        done = change <= share * share * size
        return Step(D_new, ahead, done, lambda share: _extrapolated(D_new, D, share, device))

    run = descend_from(placed(start, device), step, objective.value, max_iter=steps)
    return DictionaryResult(to_numpy(run.x), run.n_iter, run.converged)


def _sweep(moments: _Moments, start: NDArray[Any], max_iter: int, tol: float) -> DictionaryResult:
    from cppcl.optim.dictionary_kernels import minimise_atoms

    A, B = moments.gram, moments.target
    D = np.array(start, order="C")
    smallest = float(np.finfo(D.dtype).eps * A.diagonal().max())
    for n_iter in range(1, max_iter + 1):
        change = 0.0
        for first in range(0, len(D), ATOMS_AT_ONCE):
            block = slice(first, first + ATOMS_AT_ONCE)
            residual = B[block] - A[block] @ D
            change += minimise_atoms(A[block, block].copy(), residual, D[block], smallest)
        if change <= tol * tol * float(np.vdot(D, D)):
            return DictionaryResult(D, n_iter, True)
    return DictionaryResult(D, max_iter, False)


def _projected_step(
    Y: Any, gradient: Any, D: Any, curvature: float, device: str
) -> tuple[Any, float, float, float]:
    """Step from Y, projected: the atoms, how far it went against momentum, its and their size."""
    if device == "cpu":
        from cppcl.optim.dictionary_kernels import move_atoms

        D_new: Any = np.empty_like(D)
        return D_new, *move_atoms(Y, gradient, D, curvature, D_new)
    D_new = project_atoms(Y - gradient / curvature)
    change = D_new - D
    return (
        D_new,
        float(((Y - D_new) * change).sum()),
        float((change * change).sum()),
        float((D_new * D_new).sum()),
    )


def _extrapolated(D_new: Any, D: Any, share: float, device: str) -> Any:
    if device == "cpu":
        from cppcl.optim.dictionary_kernels import extrapolate

        Y = np.empty_like(D)
        extrapolate(D_new, D, share, Y)
        return Y
    return D_new + share * (D_new - D)


class _Moments:
    """The objective through moments: ``tr(D^T A D) - 2 tr(B^T D)``, less a constant."""

    def __init__(
        self, features: NDArray[Any], codes: NDArray[Any], v: NDArray[Any], device: str
    ) -> None:
        N = codes.shape[1]
        self.gram = placed(np.zeros((N, N), dtype=features.dtype), device)
        self.target = placed(np.zeros((N, features.shape[1]), dtype=features.dtype), device)
        for rows in chunks(len(codes)):
            weights = placed(v[rows, None], device)
            weighted = placed(codes[rows], device) * weights
            # The product of a matrix with its own transpose takes half the time.
            self.gram += weighted.T @ weighted
            weighted *= weights
            self.target += weighted.T @ placed(features[rows], device)

    def gradient(self, D: Any) -> Any:
        """Half the gradient."""
        return self.gram @ D - self.target

    def value(self, D: Any) -> float:
        """Value less a constant."""
        return float((D * (self.gram @ D - 2 * self.target)).sum())


class _Samples:
    """The objective through fewer samples than atoms: ``|S D - X|^2``."""

    def __init__(
        self, features: NDArray[Any], codes: NDArray[Any], v: NDArray[Any], device: str
    ) -> None:
        self._codes = placed(codes * v[:, None], device)
        self._features = placed(features * v[:, None], device)
        self.gram = self._codes @ self._codes.T
        """Inner products of the samples' codes: the same largest eigenvalue."""

    def gradient(self, D: Any) -> Any:
        """Half the gradient."""
        return self._codes.T @ (self._codes @ D - self._features)

    def value(self, D: Any) -> float:
        """Value."""
        residual = self._codes @ D - self._features
        return float((residual * residual).sum())


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
