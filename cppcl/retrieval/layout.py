"""Places of codes in the plane, so that people can look at a collection."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cppcl.errors import InputError
from cppcl.retrieval.exact import METRICS, Metric, checked_codes, nearest, prepared_rows
from cppcl.validation import check_choice, check_number

N_COMPONENTS = 50
"""Principal components from which neighbours are taken."""
PERPLEXITY = 30.0
LEAST = 5
"""Codes that are laid out; fewer stand on a circle."""
N_NEAREST = 3
"""Pictures laid out before, between which another one is placed."""
TOWARDS_OTHERS = 0.25
"""How far a query stands from its nearest picture, on the way to the mean of the nearest."""
_APART = 0.006
_GOLDEN = np.pi * (3 - np.sqrt(5))


def picture_layout(
    codes: ArrayLike, *, metric: Metric = "cosine", seed: int = 0, most: int = 2000
) -> NDArray[np.float32]:
    """Lay codes out so that those alike are near to each other.

    t-SNE (van der Maaten and Hinton, 2008; scikit-learn) of at most `most` codes, drawn at random,
    after reduction to 50 principal components. Each other one is placed at the mean of the three
    of these that are nearest to it.

    Parameters
    ----------
    codes : array_like, (n, N)
        Finite numbers, at least one row.
    metric : {'cosine', 'l2', 'intersection'}
        Codes count by their directions if it is the cosine.
    seed : int
        The same seed gives the same layout on the same machine.
    most : int
        Codes that are laid out by t-SNE, at least 5.

    Returns
    -------
    ndarray, (n, 2) float32
        Between 0 and 1, filling the longer side.

    Raises
    ------
    InputError
        There is no code, or one is not finite.
    """
    check_choice("metric", metric, METRICS)
    check_number("most", most, least=LEAST, whole=True)
    given = checked_codes("codes", codes)
    if not len(given):
        raise InputError("codes are empty; lay out at least one picture")
    drawn = np.arange(len(given))
    if len(given) > most:
        drawn = np.sort(np.random.default_rng(seed).permutation(len(given))[:most])
    places = np.empty((len(given), 2))
    places[drawn] = _embedded(prepared_rows(given[drawn], metric), seed)
    if len(drawn) < len(given):
        others = np.setdiff1d(np.arange(len(given)), drawn)
        found, _ = nearest(given[others], given[drawn], N_NEAREST, metric=metric)
        places[others] = places[drawn][found].mean(axis=1)
    low, high = places.min(axis=0), places.max(axis=0)
    extent = float((high - low).max()) or 1.0
    return np.asarray((places - (low + high) / 2) / extent + 0.5, np.float32)


def query_layout(places: NDArray[np.floating], found: NDArray[np.integer]) -> NDArray[np.float32]:
    """Place queries beside the pictures that they find.

    Parameters
    ----------
    places : (n, 2) floating
        Of pictures, as `picture_layout`.
    found : (q, k) integer
        Rows of the pictures that are nearest to each query, nearest first.

    Returns
    -------
    ndarray, (q, 2) float32
        Near the nearest picture, a quarter of the way to the mean of all k. Those of one picture
        are spread around it, so that none hides another.
    """
    first = places[found[:, 0]]
    towards = places[found].mean(axis=1) - first
    turns = _GOLDEN * np.arange(len(found))
    apart = _APART * np.stack([np.cos(turns), np.sin(turns)], axis=1)
    return np.asarray(first + TOWARDS_OTHERS * towards + apart, np.float32)


def _embedded(rows: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    n = len(rows)
    if n < LEAST or np.ptp(rows, axis=0).max() == 0:
        turns = 2 * np.pi * np.arange(n) / n
        return np.stack([np.cos(turns), np.sin(turns)], axis=1)
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE

    n_components = min(N_COMPONENTS, n - 1, rows.shape[1])
    reduced = PCA(n_components, random_state=seed).fit_transform(rows)
    perplexity = min(PERPLEXITY, (n - 1) / 3)
    start = np.zeros((n, 2))
    start[:, : min(2, n_components)] = reduced[:, :2]
    start *= 1e-4 / start[:, 0].std()
    made = TSNE(perplexity=perplexity, init=start.astype(np.float32), random_state=seed, n_jobs=1)
    return np.asarray(made.fit_transform(reduced.astype(np.float32)), np.float64)
