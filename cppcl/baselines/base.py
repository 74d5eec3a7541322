"""What the baselines share: preparation, links, and a linear map of each modality."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cppcl.baselines.links import ClassWeight, Labels, Links, class_links, given_links
from cppcl.errors import InputError, NotFittedError
from cppcl.learning.estimator import Estimator
from cppcl.learning.preparation import Floating, Preparation, check_matrix
from cppcl.validation import check_labels

SIDES = ("sketch", "image")


@dataclass(kw_only=True, eq=False, repr=False)
class Baseline(Estimator, ABC):
    """Prepares the features of either modality, learns from them, and codes new ones.

    Options are the fields of a dataclass, checked in `__post_init__`. A subclass gives `_learn`,
    which returns what was learned as arrays, and `_code`, which codes the prepared features of one
    modality with them.

    Parameters
    ----------
    center : bool
        Subtract the training mean from either modality's features; this and the options below
        are those of `cppcl.learning.preparation.Preparation`.
    unit_norm : bool
        Scale features to unit norm.
    n_components : int, optional
        Principal axes of the features that are kept; all where None.
    whiten : bool
        Scale principal axes to unit variance.
    whitening_ridge : float
        Regularises whitening, relative to the largest variance.
    power : float
        Power of the entries of the features, signs kept, before they are centred.

    Attributes
    ----------
    history_ : dict of str to ndarray
        One value a round of training; empty for closed forms.
    """

    version: ClassVar[int] = 1

    center: bool = True
    unit_norm: bool = True
    n_components: int | None = None
    whiten: bool = False
    whitening_ridge: float = 1e-3
    power: float = 1.0
    history_: dict[str, NDArray[Any]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._preparations = self._make_preparations()  # which checks their options
        self._arrays: dict[str, NDArray[Any]] = {}

    def fit(
        self,
        sketch_features: NDArray[Any],
        image_features: NDArray[Any],
        sketch_labels: Labels,
        image_labels: Labels,
        sketch_curriculum: object = None,
        image_curriculum: object = None,
        links: Any = None,
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
            check_labels(of_side, len(features[side]), f"{side}_labels")
            for side, of_side in zip(SIDES, (sketch_labels, image_labels), strict=True)
        )
        preparations = self._make_preparations()
        sketches, images = (
            preparations[side].fit_transform(features[side], name=f"{side}_features")
            for side in SIDES
        )
        self.history_ = {}
        self._arrays = self._learn(sketches, images, sketch_names, image_names, links)
        self._preparations = preparations
        return self

    def encode_sketches(self, features: NDArray[Any]) -> Floating:
        """Codes (n, d) of sketch features (n, m_s), in the dtype of the features."""
        return self._encode("sketch", features)

    def encode_images(self, features: NDArray[Any]) -> Floating:
        """Codes (n, d) of image features (n, m_i), in the dtype of the features."""
        return self._encode("image", features)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return what `fit` learned, by name."""
        arrays = {
            f"{side}_preparation_{name}": array
            for side in SIDES
            for name, array in self._preparations[side].to_arrays().items()
        }
        history = {f"history_{name}": array for name, array in self.history_.items()}
        return arrays | self._arrays | history

    def from_arrays(self, arrays: dict[str, NDArray[Any]]) -> Self:
        """Restore what `to_arrays` returned, on an object with the same options."""
        rest = {name: np.asarray(array) for name, array in arrays.items()}

        def take(prefix: str) -> dict[str, NDArray[Any]]:
            return {
                name.removeprefix(prefix): rest.pop(name)
                for name in list(rest)
                if name.startswith(prefix)
            }

        self._preparations = self._make_preparations()
        for side in SIDES:
            self._preparations[side].from_arrays(take(f"{side}_preparation_"))
        self.history_ = take("history_")
        self._arrays = rest
        return self

    def _make_preparations(self) -> dict[str, Preparation]:
        return {
            side: Preparation(
                center=self.center,
                unit_norm=self.unit_norm,
                n_components=self.n_components,
                whiten=self.whiten,
                ridge=self.whitening_ridge,
                power=self.power,
            )
            for side in SIDES
        }

    @abstractmethod
    def _learn(
        self,
        sketches: Floating,
        images: Floating,
        sketch_labels: Labels,
        image_labels: Labels,
        links: Any,
    ) -> dict[str, NDArray[Any]]:
        """Learn from prepared features; what is returned is kept in `_arrays`."""

    @abstractmethod
    def _code(self, side: str, prepared: Floating) -> Floating:
        """Codes (n, d) of prepared features (n, m) of one modality."""

    def _fitted(self, name: str) -> NDArray[Any]:
        try:
            return self._arrays[name]
        except KeyError:
            raise NotFittedError(
                f"this {type(self).__name__} is not fitted yet, it holds no {name}; call fit, or "
                "from_arrays with all of its arrays"
            ) from None

    def _encode(self, side: str, features: NDArray[Any]) -> Floating:
        return self._code(
            side, self._preparations[side].transform(features, name=f"{side} features")
        )


class DirectBaseline(Baseline):
    """The prepared features are the codes; both modalities need the same feature."""

    def _learn(
        self,
        sketches: Floating,
        images: Floating,
        sketch_labels: Labels,
        image_labels: Labels,
        links: Any,
    ) -> dict[str, NDArray[Any]]:
        if sketches.shape[1] != images.shape[1]:
            raise InputError(
                f"sketch_features has {sketches.shape[1]} columns and image_features "
                f"{images.shape[1]}: a direct comparison needs the same feature on both sides; "
                "extract the same one, or use a method that learns a common space"
            )
        return {}

    def _code(self, side: str, prepared: Floating) -> Floating:
        return prepared


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
            return class_links(sketch_labels, image_labels, class_weight=self.class_weight)
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
        for side, samples in zip(SIDES, (sketches, images), strict=True):
            for name in (f"{side}_offset", f"{side}_projection"):
                arrays[name] = arrays[name].astype(samples.dtype)
        return arrays

    @abstractmethod
    def _maps(self, sketches: Floating, images: Floating, links: Links) -> dict[str, NDArray[Any]]:
        """Return ``<side>_offset`` (m,), ``<side>_projection`` (m, d), and what else is kept."""

    def _code(self, side: str, prepared: Floating) -> Floating:
        return linear_codes(
            prepared, self._fitted(f"{side}_offset"), self._fitted(f"{side}_projection")
        )


def linear_codes(prepared: Floating, offset: Floating, projection: Floating) -> Floating:
    """Codes (n, d) of prepared features (n, m) by an offset (m,) and a projection (m, d)."""
    dtype = prepared.dtype
    codes: Floating = (prepared - offset.astype(dtype, copy=False)) @ projection.astype(
        dtype, copy=False
    )
    return codes
