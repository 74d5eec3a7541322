"""What the baselines share: preparation and a linear map of each modality."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cppcl.baselines.links import Labels, Links, class_links, given_links
from cppcl.errors import InputError
from cppcl.preparation import Floating, Preparation, check_matrix

SIDES = ("sketch", "image")


class LinearBaseline:
    """Codes that are a linear map of the prepared features of each modality.

    A subclass says how features are prepared and, where it learns from links, overrides
    `_learn`; without a map the prepared features are the codes.

    Parameters
    ----------
    sketch_preparation, image_preparation : Preparation
        Not fitted; one for each modality.
    """

    version: ClassVar[int] = 1

    def __init__(self, sketch_preparation: Preparation, image_preparation: Preparation) -> None:
        self._preparations = {"sketch": sketch_preparation, "image": image_preparation}
        self._arrays: dict[str, NDArray[Any]] = {}
        self.history_: dict[str, NDArray[Any]] = {}

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
        """Learn the maps.

        Parameters
        ----------
        sketch_features : ndarray, (K, m_s)
        image_features : ndarray, (L, m_i)
        sketch_labels : array_like, (K,)
        image_labels : array_like, (L,)
            Equal labels link a sketch with an image.
        sketch_curriculum, image_curriculum : object
            Accepted as every method does, and not used: a closed form takes samples all at once.
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
        for side, labels in (("sketch", sketch_labels), ("image", image_labels)):
            if len(labels) != len(features[side]):
                raise InputError(
                    f"{side}_labels has {len(labels)} entries, but {side}_features has "
                    f"{len(features[side])} rows"
                )
        prepared = {
            side: self._preparations[side].fit_transform(features[side], name=f"{side}_features")
            for side in SIDES
        }
        self._arrays = self._learn(
            prepared["sketch"], prepared["image"], sketch_labels, image_labels, links
        )
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
        return arrays | self._arrays

    def from_arrays(self, arrays: dict[str, NDArray[Any]]) -> Self:
        """Restore what `to_arrays` returned, on an object with the same options."""
        rest = {name: np.asarray(array) for name, array in arrays.items()}
        for side in SIDES:
            prefix = f"{side}_preparation_"
            own = {name: rest.pop(name) for name in list(rest) if name.startswith(prefix)}
            self._preparations[side].from_arrays(
                {name.removeprefix(prefix): array for name, array in own.items()}
            )
        self._arrays = rest
        return self

    def _learn(
        self,
        sketches: Floating,
        images: Floating,
        sketch_labels: Labels,
        image_labels: Labels,
        links: Any,
    ) -> dict[str, NDArray[Any]]:
        """Return ``<side>_offset`` (m,) and ``<side>_projection`` (m, d), or nothing."""
        if sketches.shape[1] != images.shape[1]:
            raise InputError(
                f"sketch_features has {sketches.shape[1]} columns and image_features "
                f"{images.shape[1]}: a direct comparison needs the same feature on both sides; "
                "extract the same one, or use a method that learns a common space"
            )
        return {}

    def _encode(self, side: str, features: NDArray[Any]) -> Floating:
        prepared = self._preparations[side].transform(features, name=f"{side} features")
        if f"{side}_projection" not in self._arrays:
            return prepared
        offset = self._arrays[f"{side}_offset"].astype(prepared.dtype, copy=False)
        projection = self._arrays[f"{side}_projection"].astype(prepared.dtype, copy=False)
        codes: Floating = (prepared - offset) @ projection
        return codes


class CanonicalBaseline(LinearBaseline):
    """Ridge canonical correlation analysis of samples linked by label, or by given links.

    Parameters
    ----------
    n_directions : int
        Length of the codes, at most the number of directions that correlate.
    ridge : float
        Added to each covariance, relative to its largest eigenvalue.
    correlation_power : float
        Directions are scaled by their canonical correlation to this power, so that the cosine
        trusts them accordingly; 0 weighs all alike, the textbook's form.
    center : bool
        Subtract the training mean from either modality's features; this and the options below
        are those of `cppcl.preparation.Preparation`. The analysis itself always takes covariances
        about the mean.
    unit_norm : bool
        Scale features to unit norm.
    n_components : int, optional
        Principal axes of the features that are kept; all where None.
    whiten : bool
        Scale principal axes to unit variance.
    whitening_ridge : float
        Regularises whitening, relative to the largest variance.
    """

    def __init__(
        self,
        *,
        n_directions: int = 64,
        ridge: float = 0.03,
        correlation_power: float = 0.0,
        center: bool = True,
        unit_norm: bool = True,
        n_components: int | None = None,
        whiten: bool = False,
        whitening_ridge: float = 1e-3,
    ) -> None:
        if n_directions < 1:
            raise InputError(f"n_directions={n_directions} must be at least 1")
        if not (np.isfinite(ridge) and ridge >= 0):
            raise InputError(f"ridge={ridge} must be finite and not negative")
        self.n_directions = n_directions
        if not (np.isfinite(correlation_power) and correlation_power >= 0):
            raise InputError(
                f"correlation_power={correlation_power} must be finite and not negative"
            )
        self.ridge = ridge
        self.correlation_power = correlation_power
        self.center = center
        self.unit_norm = unit_norm
        self.n_components = n_components
        self.whiten = whiten
        self.whitening_ridge = whitening_ridge
        super().__init__(*(self._preparation() for _ in SIDES))

    @property
    def correlations_(self) -> NDArray[np.float64]:
        """Canonical correlations of the directions, largest first, (d,)."""
        if "correlations" not in self._arrays:
            raise InputError(f"this {type(self).__name__} is not fitted yet; call fit first")
        return self._arrays["correlations"]

    def _preparation(self) -> Preparation:
        return Preparation(
            center=self.center,
            unit_norm=self.unit_norm,
            n_components=self.n_components,
            whiten=self.whiten,
            ridge=self.whitening_ridge,
        )

    def _links(self, sketch_labels: Labels, image_labels: Labels, links: Any) -> Links:
        if links is None:
            return class_links(sketch_labels, image_labels)
        return given_links(links, len(sketch_labels), len(image_labels))

    def _learn(
        self,
        sketches: Floating,
        images: Floating,
        sketch_labels: Labels,
        image_labels: Labels,
        links: Any,
    ) -> dict[str, NDArray[Any]]:
        from cppcl.baselines.cca import canonical_correlation

        linked = self._links(sketch_labels, image_labels, links)
        arrays = canonical_correlation(
            sketches, images, linked, n_directions=self.n_directions, ridge=self.ridge
        )
        for side, samples in zip(SIDES, (sketches, images), strict=True):
            scale = (arrays["correlations"] ** self.correlation_power).astype(samples.dtype)
            arrays[f"{side}_projection"] = arrays[f"{side}_projection"] * scale
        return arrays
