"""What the baselines share: preparation, links, and a linear map of each modality."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self

from numpy.typing import NDArray

from cppcl.baselines.links import ClassWeight, Labels, Links, class_links, given_links
from cppcl.errors import InputError
from cppcl.learning.agreement import Agreement, remembered_agreement
from cppcl.learning.graph import number_labels
from cppcl.learning.learner import Learner
from cppcl.learning.preparation import Floating, Preparation, check_matrix
from cppcl.modality import MODALITIES, Modality
from cppcl.validation import check_labels

SampleWeights = Literal["none", "agreement"]
"""What training samples weigh: all the same, or how probable it is that they are right."""


@dataclass(kw_only=True, eq=False, repr=False)
class Baseline(Learner):
    """Prepares the features of either modality, learns from them, and codes new ones.

    Options are the fields of a dataclass, checked in `__post_init__`. A subclass gives `_learn`,
    which returns what was learned as arrays, and `_code`, which codes the prepared features of one
    modality with them. Codes have the dtype of the features.

    Parameters
    ----------
    preparation : Preparation
        What is done to features first; see `cppcl.learning.preparation.Preparation`.
    """

    version: ClassVar[int] = 1

    preparation: Preparation = field(default_factory=Preparation)
    history_: dict[str, NDArray[Any]] = field(default_factory=dict, init=False)
    _weights: tuple[NDArray[Any], NDArray[Any]] | None = field(default=None, init=False)

    def fit(
        self,
        sketch_features: NDArray[Any],
        image_features: NDArray[Any],
        sketch_labels: Labels,
        image_labels: Labels,
        sketch_curriculum: object = None,
        image_curriculum: object = None,
        links: Any = None,
        *,
        agreement: Agreement | None = None,
    ) -> Self:
        """Learn from linked sketches and images.

        Parameters
        ----------
        sketch_features : ndarray, (K, m_s)
        image_features : ndarray, (L, m_i)
        sketch_labels : array_like, (K,)
        image_labels : array_like, (L,)
            Equal labels link a sketch with an image.
        sketch_curriculum, image_curriculum : object
            Accepted as every method does, and not used: samples are taken up all at once.
        links : array_like or sparse matrix, (K, L), optional
            Non-negative affinity that replaces the labels.
        agreement : Agreement, optional
            How well the samples agree, for a method that weighs them by it; judged here if None.

        Raises
        ------
        InputError
            For features that are not finite, lengths that do not agree, or what a particular
            baseline says.
        """
        features = {
            "sketch": check_matrix(sketch_features, "sketch_features"),
            "image": check_matrix(image_features, "image_features"),
        }
        sketch_names, image_names = (
            check_labels(labels, len(features[modality]), f"{modality}_labels")
            for modality, labels in zip(MODALITIES, (sketch_labels, image_labels), strict=True)
        )
        preparations = {modality: self._new_preparation() for modality in MODALITIES}
        sketches, images = (
            preparations[modality].fit_transform(features[modality], name=f"{modality}_features")
            for modality in MODALITIES
        )
        self.history_ = {}
        self._weights = None
        if self.uses_agreement:
            if links is not None:
                raise InputError(
                    "sample_weights='agreement' judges labels, not given links; use 'none'"
                )
            if agreement is None:
                numbers = number_labels(sketch_names, image_names)
                matrices = features["sketch"], features["image"]
                agreement = remembered_agreement(matrices, (numbers[0], numbers[1]))
            self._weights = agreement.probabilities
        arrays = self._learn(sketches, images, sketch_names, image_names, links)
        self._keep(arrays, preparations, self.history_)
        return self

    @abstractmethod
    def _learn(
        self,
        sketches: Floating,
        images: Floating,
        sketch_labels: Labels,
        image_labels: Labels,
        links: Any,
    ) -> dict[str, NDArray[Any]]:
        """Learn from prepared features and return the arrays to keep."""


@dataclass(kw_only=True, eq=False, repr=False)
class LinkedBaseline(Baseline):
    """A baseline that learns from links between the modalities.

    Attributes
    ----------
    class_weight : {'links', 'samples', 'equal'}
        What a class with k sketches and l images weighs: the number of links ``k * l``,
        ``sqrt(k * l)``, or the same for all.
    """

    class_weight: ClassWeight = field(default="links", init=False)

    def _links(self, sketch_labels: Labels, image_labels: Labels, links: Any) -> Links:
        if links is None:
            found = class_links(sketch_labels, image_labels, class_weight=self.class_weight)
            return found if self._weights is None else found.weighted(*self._weights)
        return given_links(links, len(sketch_labels), len(image_labels))


class LinearBaseline(LinkedBaseline):
    """Codes are a linear map of the prepared features less an offset.

    Parameters
    ----------
    class_weight : {'samples', 'links', 'equal'}
        What a class with k sketches and l images weighs: ``sqrt(k * l)``, the number of links
        ``k * l`` (which large classes dominate), or the same for all. Given `links` are taken as
        they are.
    """

    def _learn(
        self,
        sketches: Floating,
        images: Floating,
        sketch_labels: Labels,
        image_labels: Labels,
        links: Any,
    ) -> dict[str, NDArray[Any]]:
        arrays = self._maps(sketches, images, self._links(sketch_labels, image_labels, links))
        for modality, samples in zip(MODALITIES, (sketches, images), strict=True):
            for name in (f"{modality}_offset", f"{modality}_projection"):
                arrays[name] = arrays[name].astype(samples.dtype)
        return arrays

    @abstractmethod
    def _maps(self, sketches: Floating, images: Floating, links: Links) -> dict[str, NDArray[Any]]:
        """Return ``*_offset`` (m,) and ``*_projection`` (m, d) of both, and what else is kept."""

    def _code(self, modality: Modality, prepared: Floating) -> Floating:
        return linear_codes(
            prepared, self._fitted(f"{modality}_offset"), self._fitted(f"{modality}_projection")
        )


def linear_codes(prepared: Floating, offset: Floating, projection: Floating) -> Floating:
    """Codes (n, d) of prepared features (n, m) by an offset (m,) and a projection (m, d)."""
    dtype = prepared.dtype
    codes: Floating = (prepared - offset.astype(dtype, copy=False)) @ projection.astype(
        dtype, copy=False
    )
    return codes
