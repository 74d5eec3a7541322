"""Which training samples entered in which round, and whether the easy ones were first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import InputError
from cppcl.features.base import Picture

SELECTED_ABOVE = 0.5
"""A sample has entered when its pacing variable v is above this."""
MOST_STRIPS = 8
"""Strips of pictures of each modality; more rounds than that share some."""
N_SHOWN = 8
"""Pictures of each strip."""


@dataclass(frozen=True)
class Entries:
    """Samples that entered in one round or in several that follow one another.

    Attributes
    ----------
    first, last : int
        The rounds, from 1.
    n_entered, n_so_far : int
        Samples that entered in them, and up to them.
    shown : (k,) int array
        Some of these samples, from the easiest on.
    """

    first: int
    last: int
    n_entered: int
    n_so_far: int
    shown: NDArray[np.int64]

    def __str__(self) -> str:
        return (
            f"Round {self.first}"
            if self.first == self.last
            else f"Rounds {self.first}–{self.last}"
        )


@dataclass(frozen=True)
class PacedSide:
    """Training samples of one modality, and how much each counted in each round.

    Parameters
    ----------
    modality : str
        'sketch' or 'image'.
    v : (rounds, n) array
        Pacing variables after each round, in [0, 1].
    ids, labels : sequences of n str
        Name of each sample that lasts, and what its picture is called.
    easiness : (n,) array
        Score of each sample, higher meaning easier; NaN where there is none.
    score : str
        What scored them; empty where nothing did.
    pictures : dict of int to ndarray
        Pictures, (h, w, 3) uint8, of the samples that `entries` show; empty where samples are no
        pictures.
    """

    modality: str
    v: NDArray[np.floating]
    ids: Sequence[str]
    labels: Sequence[str]
    easiness: NDArray[np.floating]
    score: str = ""
    pictures: Mapping[int, Picture] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if np.ndim(self.v) != 2 or not np.size(self.v):
            raise InputError(f"v has shape {np.shape(self.v)}; give (rounds, samples), not empty")
        n = self.v.shape[1]
        for name in ("ids", "labels", "easiness"):
            if (found := len(getattr(self, name))) != n:
                raise InputError(f"{name} are {found} and v is of {n} samples; give one a sample")

    @cached_property
    def entry_rounds(self) -> NDArray[np.int64]:
        """Round in which each sample entered, (n,); see `entry_rounds`."""
        return entry_rounds(self.v)

    @cached_property
    def mean_v(self) -> NDArray[np.float64]:
        """Mean pacing variable of each sample over rounds, (n,)."""
        mean: NDArray[np.float64] = self.v.mean(axis=0, dtype=np.float64)
        return mean

    @cached_property
    def entries(self) -> list[Entries]:
        """Samples by the round in which they entered, see `entries_of`."""
        return entries_of(self.entry_rounds, self.easiness, self.mean_v)

    @cached_property
    def widest(self) -> int:
        """Round, from 0, in which v tells samples apart most."""
        return int(self.v.std(axis=1, dtype=np.float64).argmax())

    @property
    def largest_sd(self) -> float:
        """Standard deviation of v over samples, in the round where it is largest."""
        return float(self.v[self.widest].std(dtype=np.float64))

    @property
    def n_scored(self) -> int:
        """Samples with a score."""
        return int(np.isfinite(self.easiness).sum())

    def correlations(self) -> tuple[float, float]:
        """Spearman's correlation of easiness with entry round, and with the mean of v.

        Negative and positive where easier samples enter earlier. A sample that never entered
        comes after all rounds. NaN where either does not vary.
        """
        never = len(self.v) + 1
        rounds = np.where(self.entry_rounds > 0, self.entry_rounds, never)
        return rank_correlation(self.easiness, rounds), rank_correlation(
            self.easiness, self.mean_v
        )


@dataclass(frozen=True)
class PacingResult:
    """Pacing of one method on one split.

    Parameters
    ----------
    method : str
        Which.
    sides : sequence of PacedSide
        Of the modalities; empty where their pacing was not kept.
    curricula : sequence of str
        Modalities whose curricula took part in its training.
    """

    method: str
    sides: Sequence[PacedSide] = ()
    curricula: Sequence[str] = ()


def entry_rounds(v: NDArray[np.floating]) -> NDArray[np.int64]:
    """Round, from 1, in which each sample entered; 0 for one that never did.

    A sample enters in the first round after which its pacing variable is above one half. By
    itself that is when its loss falls below gamma / E with regulariser A, relaxed or binary, and
    below gamma / 2 with regulariser B.

    Parameters
    ----------
    v : (rounds, n) array
        Pacing variables after each round.
    """
    above = np.asarray(v) > SELECTED_ABOVE
    return np.where(above.any(axis=0), above.argmax(axis=0) + 1, 0).astype(np.int64)


def entries_of(
    rounds: NDArray[np.int64], easiness: NDArray[np.floating], mean_v: NDArray[np.floating]
) -> list[Entries]:
    """Samples by the round in which they entered, with some that stand for them.

    Those shown are evenly spaced in the order of their easiness, those without a score last, by
    their mean v. Rounds in which none entered are left out; more than `MOST_STRIPS` are put
    together with their neighbours.

    Parameters
    ----------
    rounds : (n,) int array
        Of each sample, 0 for one that never entered.
    easiness, mean_v : (n,) arrays
        Scores, NaN where there is none, and mean pacing variables.
    """
    known = np.unique(rounds[rounds > 0])
    # Easiest first; what has no score is last, as sorting puts NaN.
    order = np.lexsort((-mean_v, -np.asarray(easiness, np.float64)))
    found: list[Entries] = []
    so_far = 0
    for group in np.array_split(known, min(len(known), MOST_STRIPS)) if len(known) else ():
        members = order[np.isin(rounds[order], group)]
        so_far += len(members)
        at = np.linspace(0, len(members) - 1, min(N_SHOWN, len(members))).round().astype(np.int64)
        found.append(Entries(int(group[0]), int(group[-1]), len(members), so_far, members[at]))
    return found


def rank_correlation(easiness: NDArray[np.floating], other: NDArray[Any]) -> float:
    """Spearman's correlation over samples with a score; NaN where either does not vary."""
    from scipy.stats import spearmanr

    known = np.isfinite(easiness)
    one, two = easiness[known], other[known]
    if len(one) < 2 or not np.ptp(one) or not np.ptp(two):
        return float("nan")
    return float(spearmanr(one, two).statistic)
