"""CPRL: cross-modal, self-paced, partially ordered learning of coupled dictionaries."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import fields
from typing import Any, ClassVar, Self, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from cppcl.curriculum.base import Curriculum
from cppcl.errors import InputError
from cppcl.graph import Laplacian, Normalize, number_labels
from cppcl.optim.codes import L1Weight, encode
from cppcl.optim.dictionary import DictionarySolver
from cppcl.optim.initialization import AtomStart, Initialization, initial_dictionaries
from cppcl.optim.pacing import (
    Coupling,
    PacingSolver,
    Regularizer,
    Selection,
    check_options,
    group_sizes,
)
from cppcl.optim.training import Training, TrainingOptions
from cppcl.preparation import Preparation, check_matrix

Labels = Sequence[Hashable] | NDArray[Any]

Number = TypeVar("Number", int, float)
Option = TypeVar("Option")

_SIDES = ("sketch", "image")


class CPRL:
    r"""Coupled dictionaries of sketches and images, learned from easy samples to hard ones.

    Minimises, over two dictionaries of N atoms in the unit ball, codes C and pacing variables
    ``0 <= v <= 1``,

    ``sum_p v_p^2 (|f_p - c_p D|^2 + alpha |c_p|_1) + beta Tr((VC)^T L (VC)) + R_gamma(v)
    + mu sum_(i,j) max(0, v_i - v_j)``,

    by alternation, gamma growing each round. L ties sketches to images of the same label. New
    samples are coded by their own modality's dictionary alone, and ranked by the cosine of
    their codes.

    Parameters
    ----------
    n_atoms : int, default 100
        Atoms N of either dictionary; may exceed the number of samples.
    alpha : float, default 0.05
        Weight of the L1 norm, for features of unit norm (all codes vanish from 2 on).
    beta : float, default 1.0
        Weight of the graph.
    regularizer : {'B', 'A', 'none'}, default 'B'
        Self-paced regulariser; 'none' lets every sample count fully (V = I).
    gamma0 : float, optional
        First gamma; half the median loss where None.
    eta : float, default 1.3
        Growth of gamma a round, above 1.
    n_rounds : int, default 40
        Most rounds; fewer are run once every sample has been selected for a while.
    mu : float, default 0.5
        Weight of the curricula in units of gamma and of pairs a sample; 0 ignores them.
    l1_weight : {'v2', 'none'}, default 'v2'
        Whether pacing weighs the L1 norm too; 'none', as printed in the paper, zeroes the codes
        of samples that are not yet selected.
    coupling : {'trace', 'none', 'printed'}, default 'trace'
        Whether the graph acts on the pacing variables too. 'printed' is the form printed in the
        paper, for comparison: not convex, and not the term that the codes minimise.
    selection : {'relaxed', 'binary'}, default 'relaxed'
        Whether pacing variables lie between 0 and 1, or are either; the latter is the
        mixed-integer form of regulariser A.
    qp_solver : {'fista', 'osqp', 'cvxpy'}, default 'fista'
        Solver of the pacing step; the others take moderate numbers of samples only.
    dictionary_solver : {'gradient', 'dual'}, default 'gradient'
        Solver of the dictionary step; 'dual', the paper's, refuses fewer than 1.2 samples an atom.
    normalize : {'mean_degree', 'sym', 'none'}, default 'mean_degree'
        Scale of the graph's weights.
    initialization : {'joint', 'independent'}, default 'joint'
        Dictionaries from shared codes of linked pairs, or from each modality alone.
    atom_start : {'samples', 'principal', 'correlated'}, default 'samples'
        What initialisation starts from: random samples, principal directions of linked pairs,
        or the directions in which linked samples agree most, each as long as its relative
        strength (with whitening: the canonical directions and correlations).
    n_initial_rounds : int, default 10
        Alternations of the initialisation.
    center : bool, default True
        Subtract the training mean from either modality's features; this and the options down to
        `ridge` are those of `cppcl.preparation.Preparation`.
    unit_norm : bool, default True
        Scale features to unit norm.
    n_components : int, optional
        Principal axes of the features that are kept; all where None.
    whiten : bool, default False
        Scale principal axes to unit variance.
    ridge : float, default 1e-3
        Regularises whitening, relative to the largest variance.
    code_ridge : float, default 0
        Weight of the squared norm of a new sample's code. It stands for the graph, whose term
        ``beta |c - partner's code|^2`` is ``beta |c|^2`` where the partner is unknown.
    center_codes : bool, default False
        Subtract the mean code of the modality's training samples from codes.
    seed : int, default 0
        Seed of every draw: the same seed gives the same bytes.

    Attributes
    ----------
    sketch_dictionary_, image_dictionary_ : (N, m_k) arrays
        Atoms as rows, in the space of the prepared features.
    sketch_pacing_, image_pacing_ : (n_k,) arrays
        Pacing variables after training.
    history_ : dict of (rounds,) arrays
        For each round: `objective` (its own, at its gamma), `reconstruction_objective` (every
        sample counting fully: comparable between settings), `gamma`, and for each modality
        `*_mean_v`, `*_selected` (share above 0.5), `*_sd_v` and `*_unused_atoms`.

    Raises
    ------
    InputError
        For an option out of range.
    """

    version: ClassVar[int] = 1

    def __init__(
        self,
        *,
        n_atoms: int = 100,
        alpha: float = 0.05,
        beta: float = 1.0,
        regularizer: Regularizer = "B",
        gamma0: float | None = None,
        eta: float = 1.3,
        n_rounds: int = 40,
        mu: float = 0.5,
        l1_weight: L1Weight = "v2",
        coupling: Coupling = "trace",
        selection: Selection = "relaxed",
        qp_solver: PacingSolver = "fista",
        dictionary_solver: DictionarySolver = "gradient",
        normalize: Normalize = "mean_degree",
        initialization: Initialization = "joint",
        atom_start: AtomStart = "samples",
        n_initial_rounds: int = 10,
        center: bool = True,
        unit_norm: bool = True,
        n_components: int | None = None,
        whiten: bool = False,
        ridge: float = 1e-3,
        code_ridge: float = 0.0,
        center_codes: bool = False,
        seed: int = 0,
    ) -> None:
        self.n_atoms = _at_least("n_atoms", n_atoms, 1)
        self.alpha = _at_least("alpha", alpha, 0)
        self.beta = _at_least("beta", beta, 0)
        self.regularizer = _one_of("regularizer", regularizer, Regularizer)
        if gamma0 is not None and not (np.isfinite(gamma0) and gamma0 > 0):
            raise InputError(
                f"gamma0={gamma0} must be above 0 (or None for half the median loss); "
                "to switch pacing off use regularizer='none'"
            )
        self.gamma0 = gamma0
        if not (np.isfinite(eta) and eta > 1):
            raise InputError(f"eta={eta} must be above 1, so that gamma grows")
        self.eta = eta
        self.n_rounds = _at_least("n_rounds", n_rounds, 1)
        self.mu = _at_least("mu", mu, 0)
        self.l1_weight = _one_of("l1_weight", l1_weight, L1Weight)
        self.coupling = _one_of("coupling", coupling, Coupling)
        self.selection = _one_of("selection", selection, Selection)
        self.qp_solver = _one_of("qp_solver", qp_solver, PacingSolver)
        check_options(regularizer, coupling, selection, qp_solver)
        self.dictionary_solver = _one_of("dictionary_solver", dictionary_solver, DictionarySolver)
        self.normalize = _one_of("normalize", normalize, Normalize)
        self.initialization = _one_of("initialization", initialization, Initialization)
        self.atom_start = _one_of("atom_start", atom_start, AtomStart)
        self.n_initial_rounds = _at_least("n_initial_rounds", n_initial_rounds, 0)
        self.code_ridge = _at_least("code_ridge", code_ridge, 0)
        self.center_codes = center_codes
        self.seed = _at_least("seed", seed, 0)
        self._preparations = {
            side: Preparation(
                center=center,
                unit_norm=unit_norm,
                n_components=n_components,
                whiten=whiten,
                ridge=ridge,
            )
            for side in _SIDES
        }
        self._arrays: dict[str, NDArray[Any]] = {}
        self.history_: dict[str, NDArray[np.float64]] = {}

    def fit(
        self,
        sketch_features: NDArray[Any],
        image_features: NDArray[Any],
        sketch_labels: Labels,
        image_labels: Labels,
        sketch_curriculum: Curriculum | None = None,
        image_curriculum: Curriculum | None = None,
        links: Any = None,
    ) -> Self:
        """Learn both dictionaries.

        Parameters
        ----------
        sketch_features, image_features : (K, m_s) and (L, m_i) arrays
            One sample a row. float32 and float64 are kept (the wider of the two).
        sketch_labels, image_labels : sequences of K and L hashables
            A sketch and an image of equal label are linked; a class of one modality is fine.
        sketch_curriculum, image_curriculum : Curriculum, optional
            Pairs (harder, easier) of row numbers into either matrix.
        links : (K, L) sparse non-negative matrix, optional
            Affinities that replace the links by label.

        Raises
        ------
        InputError
            For features that are not finite, lengths that differ, fewer than two samples of a
            modality, curricula of another size, or no link at all.
        """
        features = self._prepared(sketch_features, image_features, fit=True)
        dtype = features[0].dtype
        labels = (sketch_labels, image_labels)
        curricula = (sketch_curriculum, image_curriculum)
        for side, F, of_side, curriculum in zip(_SIDES, features, labels, curricula, strict=True):
            _check_side(side, len(F), of_side, curriculum)
        laplacian = self._laplacian(labels, links, dtype)
        rng = np.random.default_rng(self.seed)
        training = Training(
            features,
            initial_dictionaries(
                features,
                laplacian,
                self.n_atoms,
                alpha=self.alpha,
                initialization=self.initialization,
                start=self.atom_start,
                n_rounds=self.n_initial_rounds,
                rng=rng,
            ),
            laplacian,
            np.concatenate([group_sizes(number_labels(of_side)[0]) for of_side in labels]).astype(
                dtype
            ),
            curricula,
            TrainingOptions(
                **{option.name: getattr(self, option.name) for option in fields(TrainingOptions)}
            ),
        )
        self.history_ = training.run(rng)
        self._arrays = {}
        for side, F, D, rows in zip(
            _SIDES, features, training.dictionaries, training.rows, strict=True
        ):
            self._arrays[f"{side}_dictionary"] = D
            self._arrays[f"{side}_pacing"] = training.v[rows]
            if self.center_codes:
                mean = encode(F, D, self.alpha, ridge=self.code_ridge).codes.mean(
                    axis=0, dtype=np.float64
                )
                self._arrays[f"{side}_code_mean"] = mean.astype(dtype)
        return self

    def encode_sketches(self, features: NDArray[Any]) -> NDArray[np.float32]:
        """Codes of sketches (n, m_s) by the sketch dictionary alone, (n, n_atoms) float32."""
        return self._encode(features, "sketch")

    def encode_images(self, features: NDArray[Any]) -> NDArray[np.float32]:
        """Codes of images (n, m_i) by the image dictionary alone, (n, n_atoms) float32."""
        return self._encode(features, "image")

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return what `fit` learned, by name."""
        self._fitted("sketch_dictionary")
        arrays = dict(self._arrays)
        for side, preparation in self._preparations.items():
            for name, array in preparation.to_arrays().items():
                arrays[f"{side}_preparation_{name}"] = array
        return arrays | {f"history_{name}": array for name, array in self.history_.items()}

    def from_arrays(self, arrays: dict[str, NDArray[Any]]) -> Self:
        """Restore what `to_arrays` returned, on a model constructed with the same options."""
        self._arrays, self.history_ = {}, {}
        prepared: dict[str, dict[str, NDArray[Any]]] = {side: {} for side in _SIDES}
        for name, array in arrays.items():
            side, _, rest = name.partition("_")
            if side == "history":
                self.history_[rest] = np.asarray(array)
            elif rest.startswith("preparation_"):
                prepared[side][rest.removeprefix("preparation_")] = np.asarray(array)
            else:
                self._arrays[name] = np.asarray(array)
        n_atoms = len(self._fitted("sketch_dictionary"))
        if n_atoms != self.n_atoms:
            raise InputError(
                f"the arrays hold {n_atoms} atoms but the model was made with "
                f"n_atoms={self.n_atoms}; construct it with the options it was trained with"
            )
        for side, preparation in self._preparations.items():
            preparation.from_arrays(prepared[side])
        return self

    @property
    def sketch_dictionary_(self) -> NDArray[Any]:
        """Sketch atoms (n_atoms, m_s), in the space of the prepared features."""
        return self._fitted("sketch_dictionary")

    @property
    def image_dictionary_(self) -> NDArray[Any]:
        """Image atoms (n_atoms, m_i), in the space of the prepared features."""
        return self._fitted("image_dictionary")

    @property
    def sketch_pacing_(self) -> NDArray[Any]:
        """Pacing variables of the training sketches, (K,)."""
        return self._fitted("sketch_pacing")

    @property
    def image_pacing_(self) -> NDArray[Any]:
        """Pacing variables of the training images, (L,)."""
        return self._fitted("image_pacing")

    def _prepared(
        self, sketch_features: NDArray[Any], image_features: NDArray[Any], *, fit: bool
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        matrices = [
            check_matrix(features, f"{side}_features")
            for side, features in zip(_SIDES, (sketch_features, image_features), strict=True)
        ]
        dtype = np.result_type(*matrices)
        sketches, images = (
            self._preparations[side].fit_transform(
                matrix.astype(dtype, copy=False), name=f"{side}_features"
            )
            for side, matrix in zip(_SIDES, matrices, strict=True)
        )
        return sketches, images

    def _laplacian(self, labels: tuple[Labels, Labels], links: Any, dtype: Any) -> Laplacian:
        if links is None:
            return Laplacian.from_labels(*labels, normalize=self.normalize, dtype=dtype)
        shape = (len(labels[0]), len(labels[1]))
        if tuple(np.shape(links)) != shape:
            raise InputError(
                f"links has shape {np.shape(links)}, but there are {shape[0]} sketches and "
                f"{shape[1]} images"
            )
        return Laplacian.from_links(links, normalize=self.normalize, dtype=dtype)

    def _encode(self, features: NDArray[Any], side: str) -> NDArray[np.float32]:
        D = self._fitted(f"{side}_dictionary")
        prepared = self._preparations[side].transform(features, name=f"{side}_features")
        codes = encode(prepared, D, self.alpha, ridge=self.code_ridge).codes
        if self.center_codes:
            codes = codes - self._fitted(f"{side}_code_mean")
        return codes.astype(np.float32, copy=False)

    def _fitted(self, name: str) -> NDArray[Any]:
        try:
            return self._arrays[name]
        except KeyError:
            raise InputError(
                f"the model holds no {name}: call fit, or from_arrays with all of its arrays"
            ) from None


def _at_least(name: str, value: Number, least: int) -> Number:
    if not (np.isfinite(value) and value >= least):
        raise InputError(f"{name}={value} must be a number of at least {least}")
    return value


def _one_of(name: str, value: Option, options: Any) -> Option:
    if value not in get_args(options):
        raise InputError(f"{name}={value!r} is not one of {get_args(options)}")
    return value


def _check_side(side: str, n: int, labels: Labels, curriculum: Curriculum | None) -> None:
    if n < 2:
        raise InputError(f"{side}_features holds {n} sample; training needs at least 2")
    if len(labels) != n:
        raise InputError(f"{side}_labels has {len(labels)} entries for {n} rows of features")
    if curriculum is not None and curriculum.n_samples != n:
        raise InputError(
            f"{side}_curriculum is over {curriculum.n_samples} samples, "
            f"but {side}_features has {n} rows"
        )
