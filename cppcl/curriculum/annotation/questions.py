"""Which pair to ask a person about next: each sample with its nearest, then the least sure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.curriculum.pairs import ExplicitPairs
from cppcl.errors import InputError

RowPair = tuple[int, int]
"""Rows of two samples, the lower one first."""

FEATURES = ("shog", "hog")
"""Extractors by whose features the nearest samples are found, the best first."""
ROWS_AT_ONCE = 1024
REACH = 3
"""How far apart, in the order of easiness within a class, samples are still compared."""
TOLERANCE = 1e-6
"""Largest gradient at which the easiness counts as found."""


def classes_to_ask_within(labels: NDArray[Any] | Sequence[Any]) -> NDArray[np.int64]:
    """Number the classes that pairs are formed within, (n,).

    All samples form one class where no class has two, as in the scope 'auto' of
    `cppcl.curriculum.semiorder.order_by_scores`.
    """
    _, classes = np.unique(np.asarray(labels, dtype=str), return_inverse=True)
    if len(classes) and np.bincount(classes).max() == 1:
        return np.zeros(len(classes), dtype=np.int64)
    return classes.astype(np.int64)


def nearest_pairs(
    features: NDArray[np.floating], classes: NDArray[np.integer], *, seed: int = 0
) -> NDArray[np.int64]:
    """RowPair each sample with its nearest of the same class.

    These are the pairs that people were asked about in Section 4 of the paper, with SHOG as the
    feature.

    Parameters
    ----------
    features : (n, m) array
        One row a sample. Rows are compared by cosine; samples whose row is zero or not finite
        take no part.
    classes : (n,) array
        Class of each sample.
    seed : int
        Of the order in which pairs are listed, so that any beginning is of all classes.

    Returns
    -------
    (p, 2) int64
        Rows, the lower one first, each pair once. Of several nearest the lowest row is taken.

    Raises
    ------
    InputError
        If lengths differ.
    """
    values = np.asarray(features)
    if values.ndim != 2 or len(values) != len(classes):
        raise InputError(
            f"features have shape {values.shape} and classes {np.shape(classes)}; give one row "
            "of features and one class a sample"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        norms = np.linalg.norm(values, axis=1)
    usable = np.isfinite(norms) & (norms > 0)
    found: set[tuple[int, int]] = set()
    for number in np.unique(np.asarray(classes)[usable]):
        members = np.flatnonzero(usable & (classes == number))
        if len(members) < 2:
            continue
        unit = values[members] / norms[members, None]
        for start in range(0, len(members), ROWS_AT_ONCE):
            part = np.arange(start, min(start + ROWS_AT_ONCE, len(members)))
            similarity = unit[part] @ unit.T
            similarity[np.arange(len(part)), part] = -np.inf
            nearest = members[np.argmax(similarity, axis=1)]
            found |= {
                (min(a, b), max(a, b))
                for a, b in zip(members[part].tolist(), nearest.tolist(), strict=True)
            }
    pairs = np.array(sorted(found), dtype=np.int64).reshape(-1, 2)
    order: NDArray[np.int64] = np.random.default_rng(seed).permutation(len(pairs))
    return pairs[order]


def next_proposal(
    proposals: Iterable[RowPair],
    times_answered: Mapping[RowPair, int],
    done: AbstractSet[RowPair],
    shown: Collection[RowPair] = (),
    *,
    again: bool = False,
) -> RowPair | None:
    """Choose among proposed pairs.

    Parameters
    ----------
    proposals : iterable of pair
        In the order in which they are asked.
    times_answered : mapping
        Number of people who answered each pair.
    done : set of pair
        Pairs that this person answered.
    shown : collection of pair
        Pairs that others look at now.
    again : bool
        True to prefer pairs that someone else has answered, so that agreement can be measured;
        those with the fewest answers come first.

    Returns
    -------
    pair or None
        None if every proposal was answered by someone.
    """
    left = [pair for pair in proposals if pair not in done and pair not in shown]
    if again:
        answered = [pair for pair in left if times_answered.get(pair)]
        if answered:
            return min(answered, key=lambda pair: times_answered[pair])
    return next((pair for pair in left if not times_answered.get(pair)), None)


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


def least_sure(
    strengths: NDArray[np.floating],
    classes: NDArray[np.integer],
    times_answered: Mapping[RowPair, int],
    done: AbstractSet[RowPair],
    shown: Collection[RowPair] = (),
) -> RowPair | None:
    """Choose the pair within a class whose order is least certain by the answers.

    Candidates are neighbours, up to the third, in the order of easiness within a class. The pair
    that the fewest answered comes first, then that whose samples have the fewest answers, then
    that of the closest easiness.

    Parameters
    ----------
    strengths : (n,) array
        Easiness of each sample by the answers, `strengths`; NaN
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
