"""The dictionary step through its Lagrange dual, as in the paper."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import InputError
from cppcl.optim.dictionary import DictionaryResult, project_atoms

SAMPLES_PER_ATOM = 1.2
"""Fewest samples with codes for each atom."""
WORST_CONDITION = 1e10
"""Largest condition number of the codes' moments."""
NEARLY_ZERO = 1e-3
"""Dual variables below this share of the atom's mass count as zero if the gradient agrees."""
UNUSED = 1e-10
"""Atoms with less than this share of the most used atom's mass stay as they are."""


def update_dictionary_dual(
    features: NDArray[Any],
    codes: NDArray[Any],
    v: NDArray[Any],
    *,
    start: NDArray[Any],
    max_iter: int = 100,
    tol: float = 1e-10,
    name: str = "features",
) -> DictionaryResult:
    """Minimise ``sum_p v_p^2 |f_p - c_p D|^2`` over atoms in the unit ball, exactly.

    With ``A = C^T V^2 C`` and ``B = C^T V^2 F`` the minimiser is ``D = (A + diag(lambda))^-1 B``,
    where lambda >= 0 minimises ``tr(B^T D) + sum(lambda)`` (Lee, Battle, Raina and Ng, 2006):
    a convex problem in one variable an atom, solved by projected Newton steps in float64, with
    gradient ``1 - |d_i|^2`` and Hessian ``2 (D D^T) o (A + diag(lambda))^-1``. It needs A to be
    well conditioned: with fewer samples than atoms, D would leave the ball however exactly the
    dual is solved. Never ends above its start.

    Parameters
    ----------
    features : (n, m) array
        Samples of one modality.
    codes : (n, N) array
        Their codes.
    v : (n,) array
        Their pacing variables.
    start : (N, m) array
        Dictionary that is kept where it is better (to rounding), and gives unused atoms.
    max_iter : int, default 100
        Newton steps.
    tol : float, default 1e-10
        Largest violation of the optimality conditions, for squared norms of atoms.
    name : str, default 'features'
        What errors call the samples.

    Raises
    ------
    InputError
        For fewer than 1.2 samples with codes an atom, or moments with a condition number above
        1e10: use the projected gradient (`cppcl.optim.dictionary.update_dictionary`) there.
    """
    weights = v.astype(np.float64)[:, None]
    S, F = weights * codes, weights * features
    n_used = int(S.any(axis=1).sum())
    if n_used < SAMPLES_PER_ATOM * codes.shape[1]:
        raise InputError(
            f"{name}: printed 'dual' needs {SAMPLES_PER_ATOM} samples with codes for "
            f"each of {codes.shape[1]} atoms, but there are {n_used}: the dual's dictionary would "
            "leave the unit ball; leave 'dual' out, or use fewer atoms"
        )
    mass = np.einsum("pn,pn->n", S, S)
    used = np.flatnonzero(mass > UNUSED * mass.max())
    S = S[:, used]
    A, B = S.T @ S, S.T @ F
    eigenvalues = np.linalg.eigvalsh(A)
    if not eigenvalues[0] * WORST_CONDITION > eigenvalues[-1]:
        raise InputError(
            f"{name}: printed 'dual' needs codes whose moments have a condition number "
            f"below {WORST_CONDITION:g}: their eigenvalues lie between {eigenvalues[0]:.3g} and "
            f"{eigenvalues[-1]:.3g}; leave 'dual' out, or use fewer atoms"
        )
    atoms, n_iter, converged = _newton(A, B, max_iter, tol)
    atoms = project_atoms(atoms)

    def value(D: NDArray[Any]) -> float:
        return float(np.vdot(D, A @ D - 2 * B))

    if value(atoms) > value(start[used].astype(np.float64)):
        return DictionaryResult(start, n_iter, converged)
    dictionary = start.copy()
    dictionary[used] = atoms
    return DictionaryResult(dictionary, n_iter, converged)


def _newton(
    A: NDArray[np.float64], B: NDArray[np.float64], max_iter: int, tol: float
) -> tuple[NDArray[np.float64], int, bool]:
    """Projected Newton steps with backtracking (Bertsekas 1982) on the dual."""

    def primal(x: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
        inverse: NDArray[np.float64] = np.linalg.inv(A + np.diag(x)).astype(np.float64)
        D = inverse @ B
        return inverse, D, float(np.vdot(B, D) + x.sum())

    x = np.maximum(np.linalg.norm(B, axis=1) - np.diag(A), 0)
    inverse, D, value = primal(x)
    for n_iter in range(max_iter):
        gram = D @ D.T
        gradient = 1 - np.diag(gram)
        # At the minimum the gradient vanishes where lambda is positive, and is not negative
        # where it is zero.
        if np.abs(gradient[(x > 0) | (gradient < 0)]).max(initial=0.0) <= tol:
            return D, n_iter, True
        # Variables about to reach zero go there, lest they cut the other ones' steps short.
        free = (x > NEARLY_ZERO * np.diag(A)) | (gradient < 0)
        hessian = 2 * (gram * inverse)[np.ix_(free, free)]
        step = -x
        step[free] = -np.linalg.lstsq(hessian, gradient[free])[0]
        length = 1.0
        while True:
            x_new = np.maximum(x + length * step, 0)
            inverse, D, new_value = primal(x_new)
            # Close to the minimum the decrease is lost in the rounding of the values.
            if new_value <= value + 1e-4 * float(gradient @ (x_new - x)) + 1e-13 * abs(value):
                break
            length /= 2
            if length < 1e-12:
                return primal(x)[1], n_iter, False
        x, value = x_new, new_value
    return D, max_iter, False
