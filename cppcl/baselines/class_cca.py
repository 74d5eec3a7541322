"""Ridge canonical correlation analysis of class links."""

from __future__ import annotations

from typing import Any, get_args

from cppcl.baselines.base import CanonicalBaseline
from cppcl.baselines.links import ClassWeight, Labels, Links, class_links
from cppcl.errors import InputError


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

    The other options are those of `cppcl.baselines.base.CanonicalBaseline`.

    Notes
    -----
    Rasiwasia, Mahajan, Mahadevan, Aggarwal, "Cluster canonical correlation analysis",
    AISTATS 2014 (there with ``links``), with a ridge.
    """

    def __init__(
        self,
        *,
        class_weight: ClassWeight = "samples",
        n_directions: int = 64,
        ridge: float = 0.03,
        correlation_power: float = 0.0,
        center: bool = True,
        unit_norm: bool = True,
        n_components: int | None = None,
        whiten: bool = False,
        whitening_ridge: float = 1e-3,
    ) -> None:
        if class_weight not in get_args(ClassWeight):
            raise InputError(
                f"class_weight={class_weight!r} is not one of {get_args(ClassWeight)}"
            )
        self.class_weight = class_weight
        super().__init__(
            n_directions=n_directions,
            ridge=ridge,
            correlation_power=correlation_power,
            center=center,
            unit_norm=unit_norm,
            n_components=n_components,
            whiten=whiten,
            whitening_ridge=whitening_ridge,
        )

    def _links(self, sketch_labels: Labels, image_labels: Labels, links: Any) -> Links:
        if links is None:
            return class_links(sketch_labels, image_labels, class_weight=self.class_weight)
        return super()._links(sketch_labels, image_labels, links)
