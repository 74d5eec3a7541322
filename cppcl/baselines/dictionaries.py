"""What the baselines that learn a dictionary of each modality share."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cppcl.baselines.base import LinkedBaseline
from cppcl.baselines.links import Labels
from cppcl.errors import ConvergenceWarning
from cppcl.learning.preparation import Floating, principal_axes
from cppcl.modality import MODALITIES, Modality
from cppcl.optim.codes import encode
from cppcl.optim.dictionary import update_dictionary
from cppcl.optim.initialization import learn_shared_codes, starting_atoms
from cppcl.validation import check_number


@dataclass(kw_only=True, eq=False, repr=False)
class DictionaryBaseline(LinkedBaseline):
    """Sparse codes by a dictionary of each modality, learned from linked pairs.

    Where a sample has several partners, as under class labels, pairs are drawn, at least one for
    each linked sample. New samples are coded by the dictionary of their modality alone.

    Parameters
    ----------
    n_atoms : int
        Atoms of either dictionary; may exceed the number of pairs.
    alpha : float
        Weight of the L1 norm of a sample's code, for features of unit norm.
    n_rounds : int
        Alternations of codes and dictionaries.
    code_ridge : float
        Weight of the squared norm of a new sample's code; 0 is the published form.
    seed : int
        Seed of the pairs and of the samples that atoms start from.

    Attributes
    ----------
    sketch_dictionary_, image_dictionary_ : ndarray, (n_atoms, m_s) and (n_atoms, m_i)
        Atoms in the unit ball, as rows, in the space of the prepared features.
    """

    zero_codes_hint: ClassVar[str] = "a smaller alpha leaves fewer"

    n_atoms: int = 100
    alpha: float = 0.01
    n_rounds: int = 20
    code_ridge: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        check_number("n_atoms", self.n_atoms, least=1, whole=True)
        check_number("alpha", self.alpha, least=0)
        check_number("n_rounds", self.n_rounds, least=1, whole=True)
        check_number("code_ridge", self.code_ridge, least=0)
        check_number("seed", self.seed, least=0, whole=True)
        super().__post_init__()

    @property
    def sketch_dictionary_(self) -> Floating:
        """Sketch atoms (n_atoms, m_s), in the space of the prepared features."""
        return self._fitted("sketch_dictionary")

    @property
    def image_dictionary_(self) -> Floating:
        """Image atoms (n_atoms, m_i), in the space of the prepared features."""
        return self._fitted("image_dictionary")

    def _learn(
        self,
        sketches: Floating,
        images: Floating,
        sketch_labels: Labels,
        image_labels: Labels,
        links: Any,
    ) -> dict[str, NDArray[Any]]:
        rng = np.random.default_rng(self.seed)
        rows = self._links(sketch_labels, image_labels, links).draw_pairs(rng)
        dtype = np.result_type(sketches, images)
        views = [
            samples[of_modality].astype(dtype, copy=False)
            for samples, of_modality in zip((sketches, images), rows, strict=True)
        ]
        bases = [span(view) for view in views]
        reduced = [view @ basis for view, basis in zip(views, bases, strict=True)]
        atoms = starting_atoms(reduced, self.n_atoms, start="samples", rng=rng)
        dictionaries, maps = self._learn_pairs(reduced, atoms)
        return {
            f"{modality}_dictionary": D @ basis.T
            for modality, D, basis in zip(MODALITIES, dictionaries, bases, strict=True)
        } | {f"{modality}_map": U for modality, U in maps.items()}

    @abstractmethod
    def _learn_pairs(
        self, views: list[Floating], dictionaries: list[Floating]
    ) -> tuple[list[Floating], dict[str, Floating]]:
        """Learn from paired sketches and images (P, m_k), starting from dictionaries (N, m_k).

        Returns
        -------
        dictionaries : list of ndarray, (N, m_k)
        maps : dict of str to ndarray, (N, d)
            What codes of a modality, 'sketch' or 'image', are multiplied by; may be left out.
        """

    def _code(self, modality: Modality, prepared: Floating) -> Floating:
        codes: Floating = encode(
            prepared, self._fitted(f"{modality}_dictionary"), self.alpha, ridge=self.code_ridge
        ).codes
        if f"{modality}_map" not in self._arrays:
            return codes
        return codes @ self._arrays[f"{modality}_map"].astype(codes.dtype, copy=False)


class JDL(DictionaryBaseline):
    """Joint dictionary learning: the sketch and the image of a pair share one code.

    Minimises ``|F_s - C D_s|^2 + |F_i - C D_i|^2 + 2 alpha |C|_1`` over shared codes C and atoms
    in the unit ball.

    The options are those of `DictionaryBaseline`.

    Notes
    -----
    Yang, Wright, Huang, Ma, "Image super-resolution via sparse representation", IEEE Trans. Image
    Processing 2010, section III-C, with unit-norm features in place of a weight by dimension.
    """

    def _learn_pairs(
        self, views: list[Floating], dictionaries: list[Floating]
    ) -> tuple[list[Floating], dict[str, Floating]]:
        return (
            learn_shared_codes(views, dictionaries, alpha=self.alpha, n_rounds=self.n_rounds),
            {},
        )


def lasso_losses(
    features: Floating, codes: Floating, dictionary: Floating, alpha: float
) -> NDArray[np.float64]:
    """``|f - c D|^2 + alpha |c|_1`` of each sample, (n,) float64."""
    residual = features - codes @ dictionary
    squares = np.einsum("pm,pm->p", residual, residual, dtype=np.float64)
    losses: NDArray[np.float64] = squares + alpha * np.abs(codes).sum(axis=1, dtype=np.float64)
    return losses


def recode(features: Floating, start: Floating, dictionary: Floating, alpha: float) -> Floating:
    """Lasso codes (n, N) of features (n, m), never worse for a sample than those to start from.

    The solver stops at a tolerance, which near the end of an alternation may be more than there
    is left to gain. A step of an alternation need not converge, so there is no warning where it
    did not.
    """
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        codes = encode(features, dictionary, alpha).codes
    better = lasso_losses(features, codes, dictionary, alpha) <= lasso_losses(
        features, start, dictionary, alpha
    )
    chosen: Floating = np.where(better[:, None], codes, start)
    return chosen


def first_codes(features: Floating, dictionary: Floating, alpha: float) -> Floating:
    """Lasso codes (n, N) of features (n, m), without any to start from."""
    zeros = np.zeros((len(features), len(dictionary)), dtype=features.dtype)
    return recode(features, zeros, dictionary, alpha)


def shared_start(
    views: list[Floating], dictionaries: list[Floating], alpha: float, n_rounds: int
) -> tuple[list[Floating], list[Floating]]:
    """Dictionaries learned with shared codes, and the codes of each view by its own dictionary."""
    learned = learn_shared_codes(views, dictionaries, alpha=alpha, n_rounds=n_rounds)
    return learned, [first_codes(F, D, alpha) for F, D in zip(views, learned, strict=True)]


def refit(features: Floating, codes: Floating, dictionary: Floating) -> Floating:
    """Dictionary step (N, m) from the atoms to start from, every sample counting fully."""
    ones = np.ones(len(features), dtype=features.dtype)
    return update_dictionary(features, codes, ones, start=dictionary).dictionary


def span(samples: Floating) -> Floating:
    """Orthonormal basis (m, r) of the span of the samples (n, m); the identity where n >= m.

    Least squares leaves atoms in the span of the samples, so that learning there is the same,
    and faster where columns are many.
    """
    n, m = samples.shape
    basis = principal_axes(samples)[0] if n < m else np.empty((m, 0))
    return (basis if basis.size else np.eye(m)).astype(samples.dtype, copy=False)
