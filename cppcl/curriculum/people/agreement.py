"""How far an automatic order of samples agrees with people's answers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cppcl.curriculum.pairs import ExplicitPairs


@dataclass(frozen=True)
class Agreement:
    """Agreement of scores with answered pairs.

    Attributes
    ----------
    n_pairs : int
        Answered pairs of which both samples have a score.
    kendall : float
        Kendall's tau over these pairs: those that scores order alike, less those that they order
        the other way, over all; a tie counts for neither. NaN without pairs.
    spearman : float
        Spearman's correlation of the scores with the share of its answers in which each sample
        was the easier one. NaN where either does not vary.
    n_samples : int
        Samples with an answer and a score.
    """

    n_pairs: int
    kendall: float
    spearman: float
    n_samples: int


def agreement(scores: NDArray[np.floating], answered: ExplicitPairs) -> Agreement:
    """Compare scores (n,), NaN where there is none, with answered pairs (harder, easier)."""
    from scipy.stats import spearmanr

    values = np.asarray(scores, dtype=np.float64)
    pairs = answered.pairs[~np.isnan(values[answered.pairs]).any(axis=1)]
    differences = values[pairs[:, 1]] - values[pairs[:, 0]]
    kendall = float(np.sign(differences).mean()) if len(pairs) else float("nan")
    easier = np.bincount(pairs[:, 1], minlength=len(values))
    asked = np.bincount(pairs.ravel(), minlength=len(values))
    known = np.flatnonzero(asked)
    shares, of_known = easier[known] / asked[known], values[known]
    varies = len(known) > 1 and np.ptp(shares) > 0 and np.ptp(of_known) > 0
    spearman = float(spearmanr(of_known, shares).statistic) if varies else float("nan")
    return Agreement(len(pairs), kendall, spearman, len(known))
