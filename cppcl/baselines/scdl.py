"""Semi-coupled dictionary learning: one modality's codes are mapped onto the other's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
from cppcl.validation import check_choice, check_number

Mapped = Literal["images", "sketches"]
"""The modality whose codes are mapped onto those of the other."""


@dataclass(kw_only=True, eq=False, repr=False)
class SCDL(DictionaryBaseline):
    r"""Semi-coupled dictionary learning: a linear map leads from the codes of one modality.

    With features X, codes A and dictionary D of the modality that is mapped, and Y, B, E of the
    other, it minimises

    ``|X - A D|^2 + |Y - B E|^2 + alpha (|A|_1 + |B|_1) + coupling |B - A W|^2
    + n_pairs map_ridge |W|^2``

    over atoms in the unit ball. Compared are ``A W`` and ``B``.

    Parameters
    ----------
    coupling : float
        Weight of the distance of mapped codes to the codes of their partners.
    map_ridge : float
        Weight of the squared norm of the map, a pair.
    mapped : {'images', 'sketches'}
        Modality whose codes are mapped onto those of the other.
    n_initial_rounds : int
        Alternations with shared codes before the first that are semi-coupled.

    The other options are those of `cppcl.baselines.dictionaries.DictionaryBaseline`.

    Notes
    -----
    Wang, Zhang, Liang, Pan, "Semi-coupled dictionary learning with applications to image
    super-resolution and photo-sketch synthesis", CVPR 2012. `history_` holds the objective.
    """

    coupling: float = 1.0
    map_ridge: float = 1e-3
    mapped: Mapped = "images"
    n_initial_rounds: int = 10

    def __post_init__(self) -> None:
        check_number("coupling", self.coupling, least=0)
        check_number("map_ridge", self.map_ridge, above=0, why=", or the map is not unique")
        check_number("n_initial_rounds", self.n_initial_rounds, least=0, whole=True)
        check_choice("mapped", self.mapped, Mapped)
        super().__post_init__()

    def _learn_pairs(
        self, views: list[Floating], dictionaries: list[Floating]
    ) -> tuple[list[Floating], dict[str, Floating]]:
        x = 1 if self.mapped == "images" else 0
        y = 1 - x
        n, root = len(views[0]), self.coupling**0.5
        F = views
        D, C = shared_start(F, dictionaries, self.alpha, self.n_initial_rounds)
        identity = np.eye(self.n_atoms, dtype=F[0].dtype)
        objective = []
        for _ in range(self.n_rounds):
            W = ridge_map(C[x], C[y], self.coupling, n * self.map_ridge)
            # A quadratic term in the codes is more rows of features and dictionary.
            C[x] = recode(
                np.hstack([F[x], root * C[y]]), C[x], np.hstack([D[x], root * W]), self.alpha
            )
            C[y] = recode(
                np.hstack([F[y], root * C[x] @ W]),
                C[y],
                np.hstack([D[y], root * identity]),
                self.alpha,
            )
            D = [refit(f, c, d) for f, c, d in zip(F, C, D, strict=True)]
            losses = sum(
                float(lasso_losses(f, c, d, self.alpha).sum())
                for f, c, d in zip(F, C, D, strict=True)
            )
            distance = float(np.square(C[y] - C[x] @ W, dtype=np.float64).sum())
            size = float(np.square(W, dtype=np.float64).sum())
            objective.append(losses + self.coupling * distance + n * self.map_ridge * size)
        self.history_ = {"objective": np.array(objective)}
        W = ridge_map(C[x], C[y], self.coupling, n * self.map_ridge)
        return D, {MODALITIES[x]: W}


def ridge_map(A: Floating, B: Floating, coupling: float, ridge: float) -> Floating:
    """W (N, N) that minimises ``coupling |B - A W|^2 + ridge |W|^2``, of the dtype of A."""
    wide = A.astype(np.float64, copy=False)
    gram = coupling * wide.T @ wide
    gram[np.diag_indices_from(gram)] += ridge
    W: Floating = np.linalg.solve(gram, coupling * wide.T @ B).astype(A.dtype, copy=False)
    return W
