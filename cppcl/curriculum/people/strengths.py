"""How easy samples are by people's answers alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cppcl.curriculum.pairs import ExplicitPairs

TOLERANCE = 1e-6


def strengths(answered: ExplicitPairs, *, variance: float = 1.0) -> NDArray[np.float64]:
    r"""Most probable easiness of each sample under the model of Bradley and Terry.

    A sample of easiness :math:`s_a` is found easier than one of :math:`s_b` with probability
    :math:`1 / (1 + \exp(s_b - s_a))`, and each :math:`s` is a priori normal of mean 0.

    Bradley and Terry, "Rank analysis of incomplete block designs", Biometrika 1952.

    Parameters
    ----------
    answered : ExplicitPairs
        (harder, easier) as often as it was answered, over n samples.
    variance : float
        Of the prior; samples without an answer keep 0.

    Returns
    -------
    (n,) float64
        In log-odds, higher is easier.
    """
    from scipy.optimize import minimize
    from scipy.special import expit

    harder, easier = answered.pairs.T
    n = answered.n_samples
    if not len(harder):
        return np.zeros(n)

    def loss(s: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        margin = s[easier] - s[harder]
        surprise = expit(-margin)
        gradient = s / variance
        gradient -= np.bincount(easier, surprise, n)
        gradient += np.bincount(harder, surprise, n)
        return float(np.logaddexp(0, -margin).sum() + s @ s / (2 * variance)), gradient

    result = minimize(
        loss,
        np.zeros(n),
        jac=True,
        method="L-BFGS-B",
        options={"gtol": TOLERANCE, "ftol": 0.0, "maxiter": 10_000},
    )
    found: NDArray[np.float64] = result.x
    return found
