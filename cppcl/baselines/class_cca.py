"""Ridge canonical correlation analysis of class links."""

from __future__ import annotations

from dataclasses import dataclass

from cppcl.baselines.canonical import CanonicalBaseline
from cppcl.baselines.links import ClassWeight
from cppcl.validation import check_choice


@dataclass(kw_only=True, eq=False, repr=False)
class ClassCCA(CanonicalBaseline):
    """Canonical correlation analysis of every sketch with every image of its class.

    Samples of a class that the other modality lacks weigh nothing. With one pair a class it is
    `RidgeCCA`. G classes give at most G - 1 directions.

    Parameters
    ----------
    class_weight : {'samples', 'links', 'equal'}
        What a class with k sketches and l images weighs: ``sqrt(k * l)``, the number of links
        ``k * l`` (the plain analysis of all linked pairs, which large classes dominate), or the
        same for all. Given `links` are taken as they are.

    The other options are those of `cppcl.baselines.canonical.CanonicalBaseline`.

    Notes
    -----
    Rasiwasia, Mahajan, Mahadevan, Aggarwal, "Cluster canonical correlation analysis",
    AISTATS 2014 (there with ``links``), with a ridge.
    """

    class_weight: ClassWeight = "samples"

    def __post_init__(self) -> None:
        check_choice("class_weight", self.class_weight, ClassWeight)
        super().__post_init__()
