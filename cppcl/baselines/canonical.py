"""Canonical correlation analysis as a baseline, whatever the links stand for."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cppcl.baselines.base import SIDES, LinearBaseline, check_at_least
from cppcl.baselines.cca import canonical_correlation
from cppcl.baselines.links import Links
from cppcl.preparation import Floating


class CanonicalBaseline(LinearBaseline):
    """Ridge canonical correlation analysis of samples linked by label, or by given links.

    The analysis always takes covariances about the mean.

    Parameters
    ----------
    n_directions : int
        Length of the codes, at most the number of directions that correlate.
    ridge : float
        Added to each covariance, relative to its largest eigenvalue.
    correlation_power : float
        Directions are scaled by their canonical correlation to this power, so that the cosine
        trusts them accordingly; 0 weighs all alike, the textbook's form.
    """

    version: ClassVar[int] = 2

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
        check_at_least("n_directions", n_directions, 1)
        check_at_least("ridge", ridge, 0)
        check_at_least("correlation_power", correlation_power, 0)
        self.n_directions = n_directions
        self.ridge = ridge
        self.correlation_power = correlation_power
        super().__init__(
            center=center,
            unit_norm=unit_norm,
            n_components=n_components,
            whiten=whiten,
            whitening_ridge=whitening_ridge,
        )

    @property
    def correlations_(self) -> NDArray[np.float64]:
        """Canonical correlations of the directions, largest first, (d,)."""
        return self._fitted("correlations")

    def _maps(self, sketches: Floating, images: Floating, links: Links) -> dict[str, NDArray[Any]]:
        arrays = canonical_correlation(
            sketches, images, links, n_directions=self.n_directions, ridge=self.ridge
        )
        scale = arrays["correlations"] ** self.correlation_power
        return arrays | {
            f"{side}_projection": arrays[f"{side}_projection"] * scale for side in SIDES
        }
