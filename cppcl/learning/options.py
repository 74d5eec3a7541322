"""Groups of CPRL's options: the graph, the first dictionaries, and the codes.

Those of pacing are in `cppcl.optim.pacing.options`, those of features in
`cppcl.learning.preparation`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import InputError
from cppcl.learning.affinity import within_weights
from cppcl.learning.estimator import Estimator
from cppcl.learning.graph import Laplacian
from cppcl.learning.graph import Normalize as LinkScale
from cppcl.learning.soft_links import (
    expected_group_codes,
    group_codes,
    linear_prediction,
    soft_targets,
)
from cppcl.learning.training_data import TrainingData
from cppcl.modality import MODALITIES, Modality
from cppcl.optim.codes import CodeSolver, encode
from cppcl.optim.initialization import AtomStart, DictionaryStart
from cppcl.optim.printed import Printed
from cppcl.validation import (
    Auto,
    Floating,
    check_choice,
    check_flag,
    check_number,
    check_number_or_auto,
)

Normalize = Literal["mean_degree", "sym"]
"""Scale of the graph's weights: over their mean degree, or symmetrically over both degrees."""
Within = Literal["none", "knn"]
"""Which samples of a modality are linked: none, or neighbours of a class."""
LinkModel = Literal["groups", "linear"]
"""What is expected of the samples that a new one would be linked to."""
StartChoice = Literal["auto", "samples", "principal", "correlated"]
"""Atoms before any learning, or whichever go with the dictionaries."""

CLASS_LINKS = 3.0
"""Weight of soft links where it is 'auto' and labels are classes."""
LINK_ARRAYS = frozenset({"sketch_group_codes", "code_prediction"})
"""Of which soft links leave one among what was learned."""


@dataclass(kw_only=True, repr=False)
class Graph(Estimator):
    """The graph that ties sketches to images.

    Parameters
    ----------
    normalize : {'mean_degree', 'sym'}, default 'mean_degree'
        Scale of the graph's weights: over their mean degree, so that one beta means the same on
        every data set, or symmetrically over the degrees of both samples.
    within : {'none', 'knn'}, default 'none'
        Gaussian weights within a modality: none, or between neighbours of the same class.
    n_neighbors : int, default 10
        Neighbours of 'knn'.
    sigma : float, default 1
        Width of the Gaussian, for features of unit norm.
    """

    normalize: Normalize = "mean_degree"
    within: Within = "none"
    n_neighbors: int = 10
    sigma: float = 1.0

    def __post_init__(self) -> None:
        check_choice("normalize", self.normalize, Normalize)
        check_choice("within", self.within, Within)
        check_number("n_neighbors", self.n_neighbors, least=1, whole=True)
        check_number("sigma", self.sigma, above=0)

    def check_printed(self, printed: Collection[Printed]) -> None:
        """Refuse printed forms beside options that they replace."""
        if "unscaled_graph" in printed and self.normalize != "mean_degree":
            raise InputError(
                f"printed 'unscaled_graph' replaces normalize={self.normalize!r}; leave one out"
            )
        if "dense_graph" in printed and self.within != "none":
            raise InputError(
                f"printed 'dense_graph' replaces within={self.within!r}; leave one out"
            )

    def laplacian(
        self,
        data: TrainingData,
        features: tuple[Floating, Floating],
        printed: Collection[Printed] = (),
        members: tuple[Any, Any] | None = None,
    ) -> Laplacian:
        """Graph over training samples, whose prepared features weigh links within a modality.

        Members, the probability of each class of every sample, replace the labels.
        """
        within = [
            within_weights(
                F,
                labels,
                "dense" if "dense_graph" in printed else self.within,
                n_neighbors=self.n_neighbors,
                sigma=self.sigma,
            )
            for F, labels in zip(features, data.labels, strict=True)
        ]
        normalize: LinkScale = "none" if "unscaled_graph" in printed else self.normalize
        return data.laplacian(normalize, within, members)


@dataclass(kw_only=True, repr=False)
class Initialization(Estimator):
    """Dictionaries before the first round.

    Parameters
    ----------
    dictionaries : {'joint', 'independent'}, default 'joint'
        Learn them from shared codes of linked pairs, or from each modality alone.
    atom_start : {'auto', 'samples', 'principal', 'correlated'}, default 'auto'
        What learning them starts from: random samples, principal directions of linked pairs,
        or the directions in which linked samples agree most, each as long as its relative
        strength (with whitening: the canonical directions and correlations). 'auto' is
        'correlated' for joint dictionaries, and 'samples' for independent ones.
    n_initial_rounds : int or 'auto', default 'auto'
        Alternations of codes and dictionaries. 'auto' is 0 where atoms start from correlated
        directions, else 10.
    """

    dictionaries: DictionaryStart = "joint"
    atom_start: StartChoice = "auto"
    n_initial_rounds: int | Auto = "auto"

    def __post_init__(self) -> None:
        check_choice("dictionaries", self.dictionaries, DictionaryStart)
        check_choice("atom_start", self.atom_start, StartChoice)
        check_number_or_auto("n_initial_rounds", self.n_initial_rounds, least=0, whole=True)

    @property
    def settled_start(self) -> AtomStart:
        """What learning starts from, 'auto' replaced."""
        if self.atom_start != "auto":
            return self.atom_start
        return "correlated" if self.dictionaries == "joint" else "samples"

    @property
    def settled_rounds(self) -> int:
        """Alternations, 'auto' replaced."""
        if self.n_initial_rounds != "auto":
            return self.n_initial_rounds
        return 0 if self.settled_start == "correlated" else 10


@dataclass(kw_only=True, repr=False)
class Coding(Estimator):
    """Codes in training, and of new samples.

    Parameters
    ----------
    code_solver : {'coordinate', 'gradient'}, default 'coordinate'
        Solver of the code step: coordinate descent, or accelerated proximal gradient.
    code_ridge : float, default 0.3
        Weight of the squared norm of a new sample's code. It stands for the graph, whose term
        ``beta |c - partner's code|^2`` is ``beta |c|^2`` where the partner is unknown.
    soft_links : float or 'auto', default 'auto'
        Weight of the links of a new sample, which are not known: the graph's term, in expectation.
        Its code stays near the one that is expected of the samples that it would be linked to.
        'auto' is 3 where labels are classes, that is, where those that link samples have several
        images each on the average; else 0, since new samples then have labels of their own.
    link_model : {'groups', 'linear'}, default 'groups'
        What is expected of them. 'groups': the mean codes of the classes of training, each
        weighted by how much the code that the sample has alone resembles it; for classes seen in
        training. 'linear': a linear prediction from that code, learned from the linked samples of
        training (`cppcl.learning.soft_links.linear_prediction`); for new instances.
    link_temperature : float, default 0.1
        The smaller, the more the nearest class counts; in units of the cosine.
    center_codes : bool, default False
        Subtract the mean code of the modality's training samples from codes.
    """

    code_solver: CodeSolver = "coordinate"
    code_ridge: float = 0.3
    soft_links: float | Auto = "auto"
    link_model: LinkModel = "groups"
    link_temperature: float = 0.1
    center_codes: bool = False

    def __post_init__(self) -> None:
        check_choice("code_solver", self.code_solver, CodeSolver)
        check_number("code_ridge", self.code_ridge, least=0)
        check_number_or_auto("soft_links", self.soft_links, least=0)
        check_choice("link_model", self.link_model, LinkModel)
        check_number("link_temperature", self.link_temperature, above=0)
        check_flag("center_codes", self.center_codes)

    def settled(self, data: TrainingData) -> Coding:
        """Options for these training samples, 'auto' replaced."""
        return self._with_links(CLASS_LINKS if data.has_classes else 0.0)

    def settled_by(self, learned: Mapping[str, NDArray[Any]]) -> Coding:
        """Options that something was learned with, 'auto' replaced."""
        return self._with_links(CLASS_LINKS if LINK_ARRAYS & learned.keys() else 0.0)

    def _with_links(self, soft_links: float) -> Coding:
        if self.soft_links != "auto":
            return self
        return Coding(**self.get_params() | {"soft_links": soft_links})

    def check_labels(self, data: TrainingData) -> None:
        """Refuse training samples without the labels that soft links to groups need."""
        if not self.soft_links or self.link_model != "groups":
            return
        if not data.labelled:
            raise InputError(
                f"soft_links={self.soft_links} needs sketch_labels and image_labels, also where "
                "links are given: new samples are linked to groups; or use link_model='linear', "
                "or soft_links=0"
            )
        if not np.intersect1d(*data.labels).size:
            raise InputError(
                f"soft_links={self.soft_links}: no label occurs in both sketch_labels and "
                "image_labels, so there is no group to link new samples to; use soft_links=0"
            )

    def learned(
        self,
        features: tuple[Floating, Floating],
        dictionaries: Mapping[str, NDArray[Any]],
        laplacian: Laplacian,
        labels: tuple[NDArray[np.int64], NDArray[np.int64]],
        alpha: float,
        weights: tuple[Floating, Floating] | None = None,
        members: tuple[Any, Any] | None = None,
    ) -> dict[str, NDArray[Any]]:
        """What coding needs of the training samples, beside the dictionaries.

        Weights are those of samples in the means of their groups, members the probability of
        each group, which replaces the labels.
        Options must be settled. There are ``*_group_codes`` (G, N) with soft links to groups,
        ``code_prediction`` (N, N) with linear ones, and ``*_code_mean`` (N,) where codes are
        centred.
        """
        arrays: dict[str, NDArray[Any]] = {}
        pairs = list(zip(MODALITIES, features, strict=True))
        if self.soft_links:
            sketches, images = (
                encode(F, dictionaries[f"{m}_dictionary"], alpha, ridge=self.code_ridge).codes
                for m, F in pairs
            )
            if self.link_model == "linear":
                stacked = np.concatenate([sketches, images])
                arrays["code_prediction"] = linear_prediction(stacked, laplacian)
            else:
                alone = sketches, images
                means = (
                    group_codes(alone, labels, weights)
                    if members is None
                    else expected_group_codes(alone, labels, members)
                )
                arrays |= {f"{m}_group_codes": C for m, C in zip(MODALITIES, means, strict=True)}
        if self.center_codes:
            for m, F in pairs:
                codes = self._codes(F, m, {**dictionaries, **arrays}, alpha)
                mean = codes.mean(axis=0, dtype=np.float64)
                arrays[f"{m}_code_mean"] = mean.astype(F.dtype)
        return arrays

    def codes(
        self,
        prepared: Floating,
        modality: Modality,
        learned: Mapping[str, NDArray[Any]],
        alpha: float,
    ) -> Floating:
        """Codes (n, N) of new samples, prepared, by the dictionary of their modality alone.

        Options must be settled.
        """
        codes = self._codes(prepared, modality, learned, alpha)
        return codes - learned[f"{modality}_code_mean"] if self.center_codes else codes

    def _codes(
        self,
        prepared: Floating,
        modality: Modality,
        learned: Mapping[str, NDArray[Any]],
        alpha: float,
    ) -> Floating:
        D = learned[f"{modality}_dictionary"]
        codes: Floating = encode(prepared, D, alpha, ridge=self.code_ridge).codes
        if not self.soft_links:
            return codes
        if self.link_model == "linear":
            target = codes @ learned["code_prediction"]
        else:
            other = "image" if modality == "sketch" else "sketch"
            own, partner = (learned[f"{name}_group_codes"] for name in (modality, other))
            target = soft_targets(codes, own, partner, self.link_temperature)
        weight = float(self.soft_links)
        linked: Floating = encode(prepared, D, alpha, ridge=weight, target=target).codes
        return linked
