"""Which pair of samples to ask a person about next."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet

import numpy as np
from numpy.typing import NDArray

Pair = tuple[int, int]
"""Rows of two samples, the lower one first."""

REACH = 3
"""How far apart, in the order of easiness within a class, samples are still compared."""


def next_proposal(
    proposals: Iterable[Pair],
    times_answered: Mapping[Pair, int],
    done: AbstractSet[Pair],
    shown: Collection[Pair] = (),
    *,
    again: bool = False,
) -> Pair | None:
    """Choose among proposed pairs.

    Parameters
    ----------
    proposals : iterable of pair
        In the order in which they are asked.
    times_answered : mapping
        Number of people who answered a pair.
    done : set of pair
        What this person answered.
    shown : collection of pair
        What others look at now.
    again : bool
        Whether to prefer what someone else has answered, so that agreement can be measured;
        what the fewest did comes first.

    Returns
    -------
    pair or None
        None where every proposal was answered by someone.
    """
    left = [pair for pair in proposals if pair not in done and pair not in shown]
    if again:
        answered = [pair for pair in left if times_answered.get(pair)]
        if answered:
            return min(answered, key=lambda pair: times_answered[pair])
    return next((pair for pair in left if not times_answered.get(pair)), None)


def least_sure(
    strengths: NDArray[np.floating],
    classes: NDArray[np.integer],
    times_answered: Mapping[Pair, int],
    done: AbstractSet[Pair],
    shown: Collection[Pair] = (),
) -> Pair | None:
    """Choose the pair of one class that answers say least about.

    Candidates are neighbours, up to the third, in the order of easiness within a class. The pair
    that the fewest answered comes first, then that whose samples have the fewest answers, then
    that of the closest easiness.

    Parameters
    ----------
    strengths : (n,) array
        Easiness of each sample by the answers, `cppcl.curriculum.strengths.strengths`; NaN for
        samples that are not to be asked about.
    classes : (n,) array
        Class of each sample.
    times_answered, done, shown
        As in `next_proposal`.
    """
    of_sample = np.zeros(len(strengths), dtype=np.int64)
    for pair, times in times_answered.items():
        of_sample[list(pair)] += times
    usable = np.flatnonzero(~np.isnan(strengths))
    order = usable[np.lexsort((strengths[usable], classes[usable]))]
    best: tuple[int, int, float, Pair] | None = None
    for step in range(1, REACH + 1):
        first, second = order[:-step], order[step:]
        same = classes[first] == classes[second]
        for a, b in zip(first[same].tolist(), second[same].tolist(), strict=True):
            pair = (min(a, b), max(a, b))
            if pair in done or pair in shown:
                continue
            rank = (
                times_answered.get(pair, 0),
                int(of_sample[a] + of_sample[b]),
                float(strengths[b] - strengths[a]),
                pair,
            )
            if best is None or rank < best:
                best = rank
    return best[3] if best else None
