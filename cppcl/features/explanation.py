"""Layers that show how an extractor arrives at its vector."""

from __future__ import annotations

from cppcl.errors import NotFittedError
from cppcl.features.base import Extractor, Picture
from cppcl.features.layers import Layer, Numbers, Seen


def explanation(extractor: Extractor, picture: Picture) -> list[Layer]:
    """Everything to look at: the decoded picture, what is seen in it, and the vector.

    Raises
    ------
    InputError
        The extractor refuses the picture.
    """
    height, width = picture.shape[:2]
    return [Seen(f"picture, {width} x {height}", picture), *extracted_layers(extractor, picture)]


def extracted_layers(extractor: Extractor, picture: Picture) -> list[Layer]:
    """What an extractor sees of a picture, and its vector unless that is among the layers.

    The vector is left out while the extractor is not fitted.
    """
    layers = list(extractor.explain(picture))
    if not any(isinstance(layer, Numbers) for layer in layers):
        try:
            (vector,) = extractor.transform([picture])
        except NotFittedError:
            return layers
        layers.append(Numbers("vector", vector))
    return layers
