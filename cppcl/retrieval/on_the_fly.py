"""Scores over the course of drawing: what is found when so much of a sketch is there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cppcl.errors import InputError

CONVENTION = (
    " On the fly: every test sketch is asked at each step of its drawing, by share of its ink. "
    "percentile is the mean of (g - r) / (g - 1), r the rank of the first relevant of g pictures, "
    "and reciprocal_rank that of 1 / r, over sketches and steps."
)
"""What is added to that of rankings."""


@dataclass(frozen=True)
class Course:
    """How well sketches find over the course of their drawing, one entry a step.

    Parameters
    ----------
    shares : (s,) float64 array
        Of the ink that is there, least first, in (0, 1].
    percentile : (s,) float64 array
        Mean of (g - r) / (g - 1): 1 where the relevant picture is first, 0 where it is last.
    reciprocal_rank : (s,) float64 array
        Mean of 1 / r.
    found : dict of int to (s,) float64 array
        Share of the sketches with a relevant picture among the first k, by k.
    """

    shares: NDArray[np.float64]
    percentile: NDArray[np.float64]
    reciprocal_rank: NDArray[np.float64]
    found: dict[int, NDArray[np.float64]]

    def scores(self) -> dict[str, float]:
        """Means over the steps: ``percentile`` and ``reciprocal_rank``."""
        return {
            "percentile": float(self.percentile.mean()),
            "reciprocal_rank": float(self.reciprocal_rank.mean()),
        }


def course(
    first_relevant_rank: ArrayLike,
    shares: ArrayLike,
    n_gallery: int,
    ranks: Sequence[int] = (1, 5, 10),
) -> Course:
    """Gather ranks by how much of each sketch was there.

    After Bhunia et al., "Sketch Less for More: On-the-Fly Fine-Grained Sketch Based Image
    Retrieval", CVPR 2020, whose m@A and m@B are the areas under the first two curves.

    Parameters
    ----------
    first_relevant_rank : (q,) array_like of int
        As in `cppcl.retrieval.metrics.RankingScores`: from 1, 0 for a query without any.
    shares : (q,) array_like
        Of the ink that is there in each query.
    n_gallery : int
        Pictures that were ranked, g.
    ranks : sequence of int
        The k of `Course.found`.

    Raises
    ------
    InputError
        There is a single picture, lengths differ, or no query has a relevant picture at a step.
    """
    first = np.asarray(first_relevant_rank, dtype=np.int64)
    given = np.asarray(shares, dtype=np.float64)
    if first.shape != given.shape or first.ndim != 1:
        raise InputError(
            f"first_relevant_rank has shape {first.shape} and shares {given.shape}; give one of "
            "each a query"
        )
    if n_gallery < 2:
        raise InputError(f"n_gallery={n_gallery}: a percentile needs two pictures or more")
    steps = np.unique(given)
    of_step = [first[(given == share) & (first > 0)] for share in steps]
    if not len(steps) or not all(map(len, of_step)):
        raise InputError("at a step of the drawings no query has a relevant picture")
    return Course(
        shares=steps,
        percentile=np.array([np.mean((n_gallery - r) / (n_gallery - 1)) for r in of_step]),
        reciprocal_rank=np.array([np.mean(1 / r) for r in of_step]),
        found={k: np.array([np.mean(r <= k) for r in of_step]) for k in ranks},
    )


def chance(n_relevant: ArrayLike, n_gallery: int) -> dict[str, float]:
    """Exact expectation of `Course.scores` over random rankings.

    Of g pictures R are relevant; the first of them has the rank r with probability
    binom(g - r, R - 1) / binom(g, R), and (g + 1) / (R + 1) on average.

    Parameters
    ----------
    n_relevant : (q,) array_like of int
        R of each query, 1 or more.
    n_gallery : int
        g.
    """
    R, counts = np.unique(np.asarray(n_relevant, dtype=np.int64), return_counts=True)
    percentile = (n_gallery - (n_gallery + 1) / (R + 1)) / (n_gallery - 1)
    reciprocal = [_mean_reciprocal(int(r), n_gallery) for r in R]
    return {
        "percentile": float(np.average(percentile, weights=counts)),
        "reciprocal_rank": float(np.average(reciprocal, weights=counts)),
    }


def _mean_reciprocal(n_relevant: int, n_gallery: int) -> float:
    """Expectation of 1 / r of the first relevant picture."""
    total, none_yet = 0.0, 1.0
    for r in range(1, n_gallery - n_relevant + 2):
        here = n_relevant / (n_gallery - r + 1)
        total += none_yet * here / r
        none_yet *= 1 - here
    return total
