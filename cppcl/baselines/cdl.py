"""Coupled dictionary and feature space learning: codes meet in a common space."""

from __future__ import annotations

import numpy as np

from cppcl.baselines.base import SIDES, check_at_least
from cppcl.baselines.dictionaries import (
    DictionaryBaseline,
    first_codes,
    lasso_losses,
    recode,
    refit,
)
from cppcl.errors import InputError
from cppcl.optim.initialization import learn_shared_codes
from cppcl.preparation import Floating


class CDL(DictionaryBaseline):
    r"""Coupled dictionaries whose codes are mapped into a space that both modalities share.

    Minimises, k being sketches and images,

    ``sum_k |F_k - C_k D_k|^2 + alpha |C_k|_1 + coupling |P - C_k U_k|^2
    + n_pairs map_ridge |U_k|^2``

    over atoms in the unit ball, maps U and the common representations P of the pairs. Columns of P
    are orthogonal, with mean squares that sum to 1, as those of unit-norm features do: free ones
    would shrink to nothing. Compared are ``C_k U_k``.

    Parameters
    ----------
    n_directions : int
        Dimension of the common space and length of the codes, at most the number of atoms and of
        pairs.
    coupling : float
        Weight of the distance of mapped codes to the common representation.
    map_ridge : float
        Weight of the squared norm of a map, a pair.
    n_initial_rounds : int
        Alternations with shared codes before the first that are coupled.

    The other options are those of `cppcl.baselines.dictionaries.DictionaryBaseline`.

    Notes
    -----
    Huang, Wang, "Coupled dictionary and feature space learning with applications to cross-domain
    image synthesis and recognition", ICCV 2013, with the orthogonal P of the generalised canonical
    correlations of codes. `history_` holds the objective.
    """

    def __init__(
        self,
        *,
        n_atoms: int = 100,
        alpha: float = 0.01,
        n_directions: int = 50,
        coupling: float = 1.0,
        map_ridge: float = 1e-3,
        n_rounds: int = 20,
        n_initial_rounds: int = 10,
        code_ridge: float = 0.0,
        seed: int = 0,
        center: bool = True,
        unit_norm: bool = True,
        n_components: int | None = None,
        whiten: bool = False,
        whitening_ridge: float = 1e-3,
    ) -> None:
        check_at_least("n_directions", n_directions, 1)
        check_at_least("coupling", coupling, 0)
        if not map_ridge > 0:
            raise InputError(f"map_ridge={map_ridge} must be above 0, or maps are not unique")
        check_at_least("map_ridge", map_ridge, 0)
        check_at_least("n_initial_rounds", n_initial_rounds, 0)
        self.n_directions = n_directions
        self.coupling = coupling
        self.map_ridge = map_ridge
        self.n_initial_rounds = n_initial_rounds
        super().__init__(
            n_atoms=n_atoms,
            alpha=alpha,
            n_rounds=n_rounds,
            code_ridge=code_ridge,
            seed=seed,
            center=center,
            unit_norm=unit_norm,
            n_components=n_components,
            whiten=whiten,
            whitening_ridge=whitening_ridge,
        )

    def _learn_pairs(
        self, views: list[Floating], dictionaries: list[Floating]
    ) -> tuple[list[Floating], dict[str, Floating]]:
        F, D = (
            views,
            learn_shared_codes(
                views, dictionaries, alpha=self.alpha, n_rounds=self.n_initial_rounds
            ),
        )
        C = [first_codes(f, d, self.alpha) for f, d in zip(F, D, strict=True)]
        n, root = len(F[0]), self.coupling**0.5
        ridge = n * self.map_ridge
        objective = []
        for _ in range(self.n_rounds):
            P, U = common_space(C, self.n_directions, self.coupling, ridge)
            # A quadratic term in the codes is more rows of features and dictionary.
            C = [
                recode(np.hstack([f, root * P]), c, np.hstack([d, root * u]), self.alpha)
                for f, c, d, u in zip(F, C, D, U, strict=True)
            ]
            D = [refit(f, c, d) for f, c, d in zip(F, C, D, strict=True)]
            objective.append(
                sum(
                    float(lasso_losses(f, c, d, self.alpha).sum())
                    + self.coupling * float(np.square(P - c @ u, dtype=np.float64).sum())
                    + ridge * float(np.square(u, dtype=np.float64).sum())
                    for f, c, d, u in zip(F, C, D, U, strict=True)
                )
            )
        self.history_ = {"objective": np.array(objective)}
        _, U = common_space(C, self.n_directions, self.coupling, ridge)
        return D, dict(zip(SIDES, U, strict=True))


def common_space(
    codes: list[Floating], n_directions: int, coupling: float, ridge: float
) -> tuple[Floating, list[Floating]]:
    """Best orthogonal representation of pairs, and maps of both modalities' codes onto it.

    Minimises ``sum_k coupling |P - C_k U_k|^2 + ridge |U_k|^2`` subject to
    ``P^T P = (n / d) I``: the columns of P are leading left singular vectors of the whitened
    codes side by side.

    Parameters
    ----------
    codes : list of ndarray, (n, N)
    n_directions : int
        Columns of P, at most n and N.
    coupling, ridge : float
        Weights; the ridge is above 0.

    Returns
    -------
    P : ndarray, (n, d)
    maps : list of ndarray, (N, d)
    """
    wide = [c.astype(np.float64, copy=False) for c in codes]
    n, n_atoms = wide[0].shape
    d = min(n_directions, n, n_atoms)
    spectra = [np.linalg.svd(c, full_matrices=False) for c in wide]
    shrinkage = [coupling * s**2 / (coupling * s**2 + ridge) for _, s, _ in spectra]
    left, _, _ = np.linalg.svd(
        np.hstack(
            [u * np.sqrt(share) for (u, _, _), share in zip(spectra, shrinkage, strict=True)]
        ),
        full_matrices=False,
    )
    P = left[:, :d]
    P = P * np.where(P[np.abs(P).argmax(axis=0), np.arange(d)] < 0, -1.0, 1.0) * (n / d) ** 0.5
    maps = [(v.T * (coupling * s / (coupling * s**2 + ridge))) @ (u.T @ P) for u, s, v in spectra]
    dtype = codes[0].dtype
    return P.astype(dtype, copy=False), [m.astype(dtype, copy=False) for m in maps]
