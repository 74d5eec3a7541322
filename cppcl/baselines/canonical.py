"""Canonical correlation analysis as a baseline, whatever the links stand for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cppcl.baselines.base import SIDES, LinearBaseline
from cppcl.baselines.cca import canonical_correlation
from cppcl.baselines.links import Links
from cppcl.learning.preparation import Floating
from cppcl.validation import check_number


@dataclass(kw_only=True, eq=False, repr=False)
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

    n_directions: int = 64
    ridge: float = 0.03
    correlation_power: float = 0.0

    def __post_init__(self) -> None:
        check_number("n_directions", self.n_directions, least=1, whole=True)
        check_number("ridge", self.ridge, least=0)
        check_number("correlation_power", self.correlation_power, least=0)
        super().__post_init__()

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
