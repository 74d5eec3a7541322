"""Ridge canonical correlation analysis of class links."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from cppcl.baselines.base import SIDES, linear_codes
from cppcl.baselines.canonical import CanonicalBaseline
from cppcl.baselines.links import ClassWeight, Labels
from cppcl.errors import InputError
from cppcl.learning.graph import number_labels
from cppcl.learning.preparation import Floating
from cppcl.learning.soft_links import group_codes, soft_targets
from cppcl.validation import check_choice, check_number


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
    soft_links : float
        Weight of the mean codes of the classes of training that a new sample's code resembles,
        against that code's own: what `cppcl.CPRL` does in coding, for comparison. 0 for none.
    link_temperature : float
        The smaller, the more the nearest class counts; in units of the cosine.

    The other options are those of `cppcl.baselines.canonical.CanonicalBaseline`.

    Notes
    -----
    Rasiwasia, Mahajan, Mahadevan, Aggarwal, "Cluster canonical correlation analysis",
    AISTATS 2014 (there with ``links``), with a ridge.
    """

    class_weight: ClassWeight = "samples"
    soft_links: float = 0.0
    link_temperature: float = 0.1

    def __post_init__(self) -> None:
        check_choice("class_weight", self.class_weight, ClassWeight)
        check_number("soft_links", self.soft_links, least=0)
        check_number("link_temperature", self.link_temperature, above=0)
        super().__post_init__()

    def _learn(
        self,
        sketches: Floating,
        images: Floating,
        sketch_labels: Labels,
        image_labels: Labels,
        links: Any,
    ) -> dict[str, NDArray[Any]]:
        if self.soft_links and links is not None:
            raise InputError(
                f"soft_links={self.soft_links} is for classes, not for given links; use 0"
            )
        learned = super()._learn(sketches, images, sketch_labels, image_labels, links)
        if self.soft_links:
            codes = [
                linear_codes(F, learned[f"{side}_offset"], learned[f"{side}_projection"])
                for side, F in zip(SIDES, (sketches, images), strict=True)
            ]
            numbers = number_labels(sketch_labels, image_labels)
            means = group_codes((codes[0], codes[1]), (numbers[0], numbers[1]))
            learned |= {f"{side}_group_codes": m for side, m in zip(SIDES, means, strict=True)}
        return learned

    def _code(self, side: str, prepared: Floating) -> Floating:
        codes = super()._code(side, prepared)
        if not self.soft_links:
            return codes
        other = SIDES[1 - SIDES.index(side)]
        own, partner = (self._fitted(f"{name}_group_codes") for name in (side, other))
        target = soft_targets(codes, own, partner, self.link_temperature)
        linked: Floating = (codes + self.soft_links * target) / (1 + self.soft_links)
        return linked
