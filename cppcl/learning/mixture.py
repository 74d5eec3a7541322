"""Right and wrong samples told apart by their scores, a mixture of which one part is known."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

LOWER = 0.7
"""Part of the places among wrong scores by which the share of wrong ones is estimated."""
CLEAN = 0.95
"""An estimated share of right samples above this cannot be told from 1."""


def mixture(scores: Array, wrong: Array) -> tuple[Array, float]:
    """Probability that each score is of a right sample, and the share of right ones.

    The place z of a score among those of wrong samples is uniform from 0 to 1 where the sample is
    wrong. Where it is right, few places are low. So the density of z up to 0.7 is fitted as
    ``a + b z^2`` by maximum likelihood, and a is the share of the wrong ones. Their probability at
    a score is a over the density of z there, which is taken to increase (Grenander's estimate).

    Parameters
    ----------
    scores : (n,) array
        Observed scores, higher where more likely right.
    wrong : (m,) array
        Scores of samples that are wrong.

    Returns
    -------
    probability : (n,) array
    right_share : float
        1 where it cannot be told from 1; all probabilities are 1 then.

    Notes
    -----
    Storey, "A direct approach to false discovery rates", J. R. Stat. Soc. B 2002, whose estimate
    is this one with ``b = 0``; Grenander, "On the theory of mortality measurement", 1956.
    """
    ordered = np.sort(wrong)
    below, up_to = (np.searchsorted(ordered, scores, side) for side in ("left", "right"))
    place = ((below + up_to) / 2 + 0.5) / (len(wrong) + 1)
    wrong_share = _density_at_zero(place)
    if 1 - wrong_share >= CLEAN:
        return np.ones(len(scores)), 1.0
    return 1 - np.minimum(wrong_share / _increasing_density(place), 1.0), 1 - wrong_share


def _density_at_zero(place: Array) -> float:
    """Density at 0 of values in (0, 1), by ``a + b z^2`` with ``b >= 0`` over the lower part."""
    low = place[place < LOWER] / LOWER
    shares = np.linspace(0, 1, 201)
    likelihood = [np.log(1 - s + 3 * s * low**2 + 1e-12).sum() for s in shares]
    density = len(low) / len(place) / LOWER * (1 - shares[int(np.argmax(likelihood))])
    return min(float(density), 1.0)


def _increasing_density(place: Array) -> Array:
    """Density of values in (0, 1) at each of them, the likeliest one that does not decrease."""
    from scipy.optimize import isotonic_regression

    values, where, counts = np.unique(place, return_inverse=True, return_counts=True)
    edges = np.concatenate([[0.0], values])
    edges[-1] = 1.0
    widths = np.diff(edges)
    fitted = isotonic_regression(counts / len(place) / widths, weights=widths).x
    density: Array = fitted[where]
    return density
