"""Direct comparison of features, without learning a common space."""

from __future__ import annotations

from typing import Any, ClassVar

from numpy.typing import NDArray

from cppcl.baselines.base import Baseline
from cppcl.baselines.links import Labels
from cppcl.errors import InputError
from cppcl.learning.preparation import Floating, Preparation
from cppcl.modality import Modality


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
                f"{images.shape[1]}: a direct comparison needs the same feature in both "
                "modalities; extract the same one, or use a method that learns a common space"
            )
        return {}

    def _code(self, modality: Modality, prepared: Floating) -> Floating:
        return prepared


class RawCosine(DirectBaseline):
    """The features themselves are the codes; both modalities need the same feature."""

    learns: ClassVar[bool] = False

    def __init__(self) -> None:
        super().__init__(preparation=Preparation(center=False, unit_norm=False))


class CentredCosine(DirectBaseline):
    """Codes are the features less the training mean of their modality, at unit norm.

    Both modalities need the same feature. The mean is what tells line drawings from pictures as
    such, so removing it lets the content decide.
    """

    def __init__(self) -> None:
        super().__init__()
