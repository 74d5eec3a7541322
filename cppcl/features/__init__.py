"""Feature extractors and scores, by name.

Adding one is a file with a class that keeps the contract of `cppcl.features.base.Extractor`, and
a line in `EXTRACTORS`; being registered puts it under the contract tests.
"""

from __future__ import annotations

import inspect
import reprlib
from collections.abc import Mapping
from typing import Any, cast

from cppcl.errors import InputError
from cppcl.features.allocation import keep_freed_memory
from cppcl.features.base import Extractor, Picture
from cppcl.features.combination import (
    SEPARATOR,
    WEIGHTS,
    CombinedExtractor,
    check_part_options,
    part_names,
)
from cppcl.features.descriptors.bag_of_words.gf_hog import GfHog
from cppcl.features.descriptors.bag_of_words.shog import Shog
from cppcl.features.descriptors.bag_of_words.sift import Sift
from cppcl.features.descriptors.bag_of_words.ssim import SelfSimilarity
from cppcl.features.descriptors.bag_of_words.structure_tensors import StructureTensorWords
from cppcl.features.descriptors.hog import Hog
from cppcl.features.descriptors.line_hog import LineHog
from cppcl.features.descriptors.lks import Lks
from cppcl.features.descriptors.perceptual_edge import PerceptualEdgeLite
from cppcl.features.descriptors.pixels import Pixels
from cppcl.features.descriptors.shelo import Helo, Shelo
from cppcl.features.descriptors.structure_tensor import StructureTensor
from cppcl.features.networks.cnn import Cnn
from cppcl.features.networks.encoder_extractors import OpenClipEncoder, TimmEncoder
from cppcl.features.networks.lite_networks import CnnLite1, CnnLite2
from cppcl.features.precomputed import Precomputed
from cppcl.features.scores.colour_contrast import ColourContrast
from cppcl.features.scores.edge_boxes import EdgeBoxes
from cppcl.features.scores.edgeness import Edgeness
from cppcl.features.scores.objectness import Objectness
from cppcl.features.scores.stroke_length import StrokeLength
from cppcl.features.trained.adapter import Adapter
from cppcl.features.trained.gn_triplet import GoogLeNetTriplet
from cppcl.features.trained.san import SketchANet
from cppcl.features.trained.san_triplet import SketchANetTriplet
from cppcl.features.trained.shape3d import Shape3D
from cppcl.features.trained.siamese import Siamese
from cppcl.features.trained.tuned import TunedTransformer
from cppcl.plugin_modules import load_plugins
from cppcl.validation import suggestion

__all__ = [
    "EXTRACTORS",
    "CombinedExtractor",
    "Extractor",
    "Picture",
    "learning_part",
    "make_extractor",
]

EXTRACTORS: dict[str, type[Extractor]] = {
    extractor.name: extractor
    for extractor in (
        Adapter,
        Cnn,
        CnnLite1,
        CnnLite2,
        TimmEncoder,
        OpenClipEncoder,
        Hog,
        Pixels,
        Precomputed,
        ColourContrast,
        EdgeBoxes,
        Edgeness,
        GfHog,
        Helo,
        LineHog,
        Lks,
        Objectness,
        PerceptualEdgeLite,
        SelfSimilarity,
        Shelo,
        Shog,
        Siamese,
        Sift,
        SketchANet,
        SketchANetTriplet,
        GoogLeNetTriplet,
        Shape3D,
        StrokeLength,
        StructureTensor,
        StructureTensorWords,
        TunedTransformer,
    )
}
"""Every extractor by its name."""


def make_extractor(name: str, options: Mapping[str, Any] | None = None) -> Extractor:
    """Build a registered extractor, or a combination of some.

    Parameters
    ----------
    name : str
        A key of `EXTRACTORS`, or several joined by '+', such as 'lks+cnn'.
    options : mapping, optional
        Keyword arguments of its constructor; lists stand for tuples, so options read from YAML
        or JSON will do. Those of a combination are its `weights`, and the options of each part
        under its name.

    Raises
    ------
    InputError
        There is no such extractor, or it has no such option, or the option's value is wrong.

    Notes
    -----
    From the first one on, this process keeps some of the memory that arrays free
    (`cppcl.features.allocation.keep_freed_memory`).
    """
    if not isinstance(name, str):
        raise InputError(f"name={reprlib.repr(name)} must be that of a feature extractor")
    if not isinstance(options, Mapping | None):
        raise InputError(f"options={reprlib.repr(options)} must be values by name")
    given = options or {}
    if not EXTRACTORS.keys() >= {*name.split(SEPARATOR)}:
        load_plugins()
    if SEPARATOR in name:
        names = part_names(name, EXTRACTORS)
        check_part_options(name, names, given)
        parts = tuple(make_extractor(part, given.get(part)) for part in names)
        return CombinedExtractor(parts=parts, weights=given.get(WEIGHTS))
    if name not in EXTRACTORS:
        raise InputError(f"no feature extractor of name {name!r}{suggestion(name, EXTRACTORS)}")
    keep_freed_memory()
    extractor = EXTRACTORS[name]
    known = inspect.signature(extractor).parameters
    for option in given:
        if option not in known:
            raise InputError(
                f"feature extractor {name!r} has no option {option!r}{suggestion(option, known)}"
            )
    return cast(Any, extractor)(**given)  # type: ignore[no-any-return]


Adapter.make = make_extractor


def learning_part(
    name: str, options: Mapping[str, Any] | None = None
) -> tuple[str, dict[str, Any]]:
    """Name and options of what learns for an extractor.

    Returns
    -------
    name : str
        Of a combination the part that learns, or the combination of those that do; else that of
        the extractor itself.
    options : dict
        Those of `options` that it takes.
    """
    extractor, given = make_extractor(name, options), dict(options or {})
    if not isinstance(extractor, CombinedExtractor) or not extractor.learns:
        return name, given
    names = [part.name for part in extractor.learning]
    if len(names) == 1:
        return names[0], dict(given.get(names[0]) or {})
    return SEPARATOR.join(names), {part: given[part] for part in names if part in given}
