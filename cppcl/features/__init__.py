"""Feature extractors and scores, by name.

Adding one is a file with a class that keeps the contract of `cppcl.features.base.Extractor`, and
a line in `EXTRACTORS`; being registered puts it under the contract tests.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, cast

from cppcl.errors import InputError
from cppcl.features.base import Extractor, Picture
from cppcl.features.cnn import Cnn
from cppcl.features.colour_contrast import ColourContrast
from cppcl.features.edgeness import Edgeness
from cppcl.features.gf_hog import GfHog
from cppcl.features.hog import Hog
from cppcl.features.lks import Lks
from cppcl.features.options import nearest_names
from cppcl.features.perceptual_edge import PerceptualEdgeLite
from cppcl.features.pixels import Pixels
from cppcl.features.precomputed import Precomputed
from cppcl.features.shelo import Helo, Shelo
from cppcl.features.shog import Shog
from cppcl.features.sift import Sift
from cppcl.features.ssim import SelfSimilarity
from cppcl.features.structure_tensor import StructureTensor

__all__ = ["EXTRACTORS", "Extractor", "Picture", "make_extractor"]

EXTRACTORS: dict[str, type[Extractor]] = {
    extractor.name: extractor
    for extractor in (
        Cnn,
        Hog,
        Pixels,
        Precomputed,
        ColourContrast,
        Edgeness,
        GfHog,
        Helo,
        Lks,
        PerceptualEdgeLite,
        SelfSimilarity,
        Shelo,
        Shog,
        Sift,
        StructureTensor,
    )
}
"""Every extractor by its name."""


def make_extractor(name: str, options: Mapping[str, Any] | None = None) -> Extractor:
    """Build a registered extractor.

    Parameters
    ----------
    name : str
        A key of `EXTRACTORS`.
    options : mapping, optional
        Keyword arguments of its constructor; lists stand for tuples, so options read from YAML
        or JSON will do.

    Raises
    ------
    InputError
        There is no such extractor, or it has no such option, or the option's value is wrong.
    """
    if name not in EXTRACTORS:
        raise InputError(f"no feature extractor {name!r}: {nearest_names(name, EXTRACTORS)}")
    extractor = EXTRACTORS[name]
    known = inspect.signature(extractor).parameters
    for option in options or {}:
        if option not in known:
            raise InputError(
                f"feature extractor {name!r} has no option {option!r}: "
                f"{nearest_names(option, known)}"
            )
    return cast(Any, extractor)(**(options or {}))  # type: ignore[no-any-return]
