"""What two sizes of the same work say about a third."""

from __future__ import annotations

from collections.abc import Sequence

EXPONENTS = {"evaluate": 2.0}
"""Growth of a stage in the samples: rankings compare queries with galleries; others are linear."""


def project(sizes: Sequence[int], values: Sequence[float], target: int, exponent: float) -> float:
    """Value at another size, by ``a + b n^exponent`` through the last two that were measured.

    Both are at least 0; with one size alone, a is 0.

    Parameters
    ----------
    sizes : sequence of int
        Samples, ascending.
    values : sequence of float
        What was measured with each.
    target : int
        Samples to project to.
    exponent : float
        Of the growth.
    """
    large = float(sizes[-1]) ** exponent
    slope = values[-1] / large
    if len(sizes) > 1:
        slope = (values[-1] - values[-2]) / (large - float(sizes[-2]) ** exponent)
        slope = min(max(slope, 0.0), values[-1] / large)
    return values[-1] + slope * (float(target) ** exponent - large)
