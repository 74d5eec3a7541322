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
        Easiness of each sample by the answers, `cppcl.curriculum.people.strengths.strengths`; NaN
        for samples that are not to be asked about.
    classes : (n,) array
        Class of each sample.
    times_answered, done, shown
        As in `next_proposal`.
    """
    n = len(strengths)
    asked = np.array(list(times_answered), dtype=np.int64).reshape(-1, 2)
    times = np.array(list(times_answered.values()), dtype=np.int64)
    of_sample = np.bincount(asked.ravel(), np.repeat(times, 2), n).astype(np.int64)
    usable = np.flatnonzero(~np.isnan(strengths))
    order = usable[np.lexsort((strengths[usable], classes[usable]))]
    steps = range(1, REACH + 1)
    first = np.concatenate([order[:-step] for step in steps])
    second = np.concatenate([order[step:] for step in steps])
    same = classes[first] == classes[second]
    first, second = first[same], second[same]
    low, high = np.minimum(first, second), np.maximum(first, second)
    taken = np.array([*done, *shown], dtype=np.int64).reshape(-1, 2)
    free = ~np.isin(low * n + high, taken @ [n, 1])
    low, high = low[free], high[free]
    if not len(low):
        return None
    names = asked @ [n, 1]
    sorting = np.argsort(names)
    names, times = np.append(names[sorting], n * n), np.append(times[sorting], 0)
    place = np.searchsorted(names, low * n + high)
    of_pair = np.where(names[place] == low * n + high, times[place], 0)
    gap = np.abs(strengths[high] - strengths[low])
    best = np.lexsort((high, low, gap, of_sample[low] + of_sample[high], of_pair))[0]
    return int(low[best]), int(high[best])
