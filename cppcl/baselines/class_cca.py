"""Ridge canonical correlation analysis of class links."""

from __future__ import annotations

from cppcl.baselines.base import check_one_of
from cppcl.baselines.canonical import CanonicalBaseline
from cppcl.baselines.links import ClassWeight


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
        check_one_of("class_weight", class_weight, ClassWeight)
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
