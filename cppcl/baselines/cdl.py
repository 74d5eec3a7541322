"""Coupled dictionary and feature space learning: codes meet in a common space."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cppcl.baselines.dictionaries import (
    DictionaryBaseline,
    lasso_losses,
    recode,
    refit,
    shared_start,
)
from cppcl.learning.preparation import Floating
from cppcl.modality import MODALITIES
from cppcl.validation import check_number


@dataclass(kw_only=True, eq=False, repr=False)
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

    n_directions: int = 50
    coupling: float = 1.0
    map_ridge: float = 1e-3
    n_initial_rounds: int = 10

    def __post_init__(self) -> None:
        check_number("n_directions", self.n_directions, least=1, whole=True)
        check_number("coupling", self.coupling, least=0)
        check_number("map_ridge", self.map_ridge, above=0, why=", or maps are not unique")
        check_number("n_initial_rounds", self.n_initial_rounds, least=0, whole=True)
        super().__post_init__()

    def _learn_pairs(
        self, views: list[Floating], dictionaries: list[Floating]
    ) -> tuple[list[Floating], dict[str, Floating]]:
        F = views
        D, C = shared_start(F, dictionaries, self.alpha, self.n_initial_rounds)
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
        return D, dict(zip(MODALITIES, U, strict=True))


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
