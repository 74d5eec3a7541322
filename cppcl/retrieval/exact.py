"""Exact ranking of gallery codes by their nearness to query codes, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cppcl.errors import InputError
from cppcl.learning.preparation import row_norms
from cppcl.validation import as_array, check_choice, check_number

Metric = Literal["cosine", "l2", "intersection"]
METRICS: tuple[Metric, ...] = get_args(Metric)

_QUERY_BLOCK = 256
_RANKED_SCORES = 2**22
_BLOCK_ENTRIES = 2**24
_LARGEST_VALUE = 1e150  # its square is still a float64
_TINY = float(np.finfo(np.float64).tiny)
_LEAST_SQUARED = 1e-120  # the squares of less lose digits, and so may those of their differences


def nearest(
    query_codes: ArrayLike,
    gallery_codes: ArrayLike,
    k: int,
    *,
    metric: Metric = "cosine",
    chunk: int = 4096,
) -> tuple[NDArray[np.int64], NDArray[np.floating]]:
    """Find the k nearest gallery codes of every query, exactly.

    Matrix products only propose candidates: the similarity of every gallery code that could be
    among the k nearest within their rounding error is recomputed directly, so that L2 distances
    do not suffer from cancellation and equal codes tie exactly.

    Parameters
    ----------
    query_codes : array_like, (q, N)
        Finite numbers; rows are codes.
    gallery_codes : array_like, (g, N)
        Likewise. Needs not be contiguous.
    k : int
        Number of neighbours, at least 1; at most g are returned.
    metric : {'cosine', 'l2', 'intersection'}
        What is compared: the cosine, the Euclidean distance, or the intersection of histograms,
        the sum over entries of the smaller of both values. Codes of any sign are compared as
        their positive and negative parts: the smaller size, where the signs agree. It is not
        normalised: histograms should sum to the same value.
    chunk : int
        Gallery codes that are held in float64 at once; fewer where codes are so long that they
        would take more than 128 MiB.

    Returns
    -------
    indices : ndarray, (q, min(k, g)) int64
        Rows of the gallery, nearest first, ties in the order of the gallery.
    similarities : ndarray, (q, min(k, g)), floating type of the codes
        Cosine, intersection, or the negative of the distance; float64 where the type of the codes
        cannot hold them all. The cosine of an all-zero code is ``-inf``, so that such codes come
        last.

    Raises
    ------
    InputError
        For NaN, infinite or huge values (names the row), an empty gallery, codes of different
        length, or an unknown metric.
    """
    queries, gallery = _checked_pair(query_codes, gallery_codes, metric, chunk)
    check_number("k", k, least=1, whole=True)
    k = min(k, len(gallery))
    indices = np.empty((len(queries), k), np.int64)
    similarities = np.empty((len(queries), k))
    chunk = _bounded(chunk, gallery)
    for block in _slices(len(queries), _bounded(_QUERY_BLOCK, queries)):
        indices[block], similarities[block] = _nearest_of_block(
            prepared_rows(queries[block], metric), gallery, k, metric, chunk
        )
    return indices, in_type_of(similarities, queries, gallery)


def rank_gallery(
    query_codes: ArrayLike,
    gallery_codes: ArrayLike,
    *,
    metric: Metric = "cosine",
    seed: int = 0,
    chunk: int = 4096,
) -> Iterator[tuple[slice, NDArray[np.int64]]]:
    """Rank the whole gallery for every query, a few queries at a time.

    Ties are broken by one shuffle of the gallery with a fixed seed, the same for all queries:
    neither the order of the files nor their classes may decide. Sparse codes tie often.

    Parameters
    ----------
    query_codes : array_like, (q, N)
        Finite numbers; rows are codes.
    gallery_codes : array_like, (g, N)
        Likewise.
    metric : {'cosine', 'l2', 'intersection'}
        What is compared, see `nearest`. The cosine of an all-zero code ranks below every other.
    seed : int
        Seed of the shuffle.
    chunk : int
        Gallery codes that are held in float64 at once, see `nearest`.

    Yields
    ------
    queries : slice
        Rows of the queries that this block ranks.
    order : ndarray, (rows, g) int64
        Rows of the gallery, nearest first. Blocks hold about 4 million entries, or one query.

    Raises
    ------
    InputError
        As `nearest`, when the first block is asked for.
    """
    queries, gallery = _checked_pair(query_codes, gallery_codes, metric, chunk)
    check_number("seed", seed, least=0, whole=True)
    shuffle = np.random.default_rng(seed).permutation(len(gallery))
    chunk = _bounded(chunk, gallery)
    first = _first_equal_row(gallery, chunk) if metric == "cosine" else None
    rows = _bounded(max(1, _RANKED_SCORES // len(gallery)), queries)
    for block in _slices(len(queries), rows):
        prepared = prepared_rows(queries[block], metric)
        scores = np.empty((len(prepared), len(gallery)))
        for columns in _slices(len(gallery), chunk):
            codes = prepared_rows(gallery[columns], metric)
            scores[:, columns] = _scores(prepared, codes, metric)
        if first is not None:
            # A matrix product may round equal columns differently.
            scores = scores[:, first]
        np.negative(scores, out=scores)
        scores = scores[:, shuffle]
        yield block, shuffle[np.argsort(scores, axis=1, kind="stable")]


def zero_codes(codes: ArrayLike) -> NDArray[np.bool_]:
    """Mark codes that are zero in every entry, (n,) bool; their cosine is undefined."""
    zero: NDArray[np.bool_] = (np.asarray(codes) == 0).all(axis=1)
    return zero


def _nearest_of_block(
    queries: NDArray[np.float64],
    gallery: NDArray[np.generic],
    k: int,
    metric: Metric,
    chunk: int,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    indices = np.empty((len(queries), 0), np.int64)
    similarities = np.empty((len(queries), 0))
    for columns in _slices(len(gallery), chunk):
        codes = prepared_rows(gallery[columns], metric)
        approximate, error = _approximate(queries, codes, metric)
        bound = np.full(len(queries), -np.inf)
        if len(codes) > k:
            bound = np.partition(approximate, -k, axis=1)[:, -k] - 2 * error
        if similarities.shape[1] == k:
            worst = similarities[:, -1]
            if metric == "l2":
                worst = -(worst**2)
            bound = np.maximum(bound, worst - error)
        row, column = np.nonzero(approximate >= bound[:, None])
        exact = np.concatenate(
            [
                exact_similarities(queries[row[part]], codes[column[part]], metric)
                for part in _slices(len(row), chunk)
            ]
            or [np.empty(0)]
        )
        width = similarities.shape[1]
        row = np.concatenate([np.repeat(np.arange(len(queries)), width), row])
        column = np.concatenate([indices.ravel(), column + columns.start])
        exact = np.concatenate([similarities.ravel(), exact])
        order = np.lexsort((column, -exact, row))
        counts = np.bincount(row, minlength=len(queries))
        starts = np.cumsum(counts) - counts
        kept = order[starts[:, None] + np.arange(min(k, columns.start + len(codes)))]
        indices, similarities = column[kept], exact[kept]
    return indices, similarities


def _approximate(
    queries: NDArray[np.float64], codes: NDArray[np.float64], metric: Metric
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Cosines or negative squared distances, and a bound of their error for each query."""
    unit = 8 * (queries.shape[1] + 8) * np.finfo(np.float64).eps
    if metric == "cosine":
        return _cosines(queries, codes), np.full(len(queries), unit)
    if metric == "intersection":
        return _intersections(queries, codes), unit * np.abs(queries).sum(axis=1)
    query_norms = np.einsum("ij,ij->i", queries, queries)
    norms = np.einsum("ij,ij->i", codes, codes)
    scores = 2 * (queries @ codes.T) - query_norms[:, None] - norms
    # Squares below the least normal number have lost digits.
    error = unit * (np.sqrt(query_norms) + np.sqrt(norms.max())) ** 2
    return scores, error + queries.shape[1] * _TINY


def exact_similarities(
    queries: NDArray[np.float64], codes: NDArray[np.float64], metric: Metric
) -> NDArray[np.float64]:
    """Similarity of row with row, summed in an order that depends on nothing else."""
    if metric == "l2":
        return -np.asarray(row_norms(queries - codes), np.float64)
    if metric == "intersection":
        from cppcl.retrieval.intersection import intersections_of_pairs

        overlaps = np.empty(len(queries))
        intersections_of_pairs(queries, codes, overlaps)
        return overlaps
    cosines = (queries * codes).sum(axis=1)
    cosines[zero_codes(queries) | zero_codes(codes)] = -np.inf
    return np.asarray(np.clip(cosines, -np.inf, 1.0), np.float64)


def _scores(
    queries: NDArray[np.float64], codes: NDArray[np.float64], metric: Metric
) -> NDArray[np.float64]:
    """Similarity of every query with every code, larger being nearer."""
    if metric == "cosine":
        return _cosines(queries, codes)
    if metric == "intersection":
        return _intersections(queries, codes)
    return _negative_distances(queries, codes)


def _cosines(queries: NDArray[np.float64], codes: NDArray[np.float64]) -> NDArray[np.float64]:
    scores = queries @ codes.T
    scores[zero_codes(queries)] = -np.inf
    scores[:, zero_codes(codes)] = -np.inf
    return scores


def _intersections(
    queries: NDArray[np.float64], codes: NDArray[np.float64]
) -> NDArray[np.float64]:
    from cppcl.retrieval.intersection import intersections

    scores = np.empty((len(queries), len(codes)))
    intersections(queries, codes, scores)
    return scores


def _negative_distances(
    queries: NDArray[np.float64], codes: NDArray[np.float64]
) -> NDArray[np.float64]:
    from scipy.spatial.distance import cdist

    distances = np.asarray(cdist(queries, codes), np.float64)
    if min(_least_size(queries), _least_size(codes)) < _LEAST_SQUARED:
        row, column = np.nonzero(distances < _LEAST_SQUARED)
        for part in _slices(len(row), _bounded(4096, codes)):
            differences = queries[row[part]] - codes[column[part]]
            distances[row[part], column[part]] = row_norms(differences)
    return -distances


def _least_size(codes: NDArray[np.float64]) -> float:
    """Least magnitude of entries that are not zero."""
    return float(np.min(np.abs(codes), where=codes != 0, initial=np.inf))


def prepared_rows(codes: NDArray[np.generic], metric: Metric) -> NDArray[np.float64]:
    """Contiguous float64 rows; of unit norm (or zero) for the cosine."""
    rows = np.array(codes, dtype=np.float64, order="C")
    if metric == "cosine":
        largest = np.abs(rows).max(axis=1, keepdims=True)
        rows /= np.where(largest > 0, largest, 1.0)  # before squaring: no under- or overflow
        norms = np.sqrt(np.square(rows).sum(axis=1, keepdims=True))
        rows /= np.where(norms > 0, norms, 1.0)
    return rows


def _first_equal_row(gallery: NDArray[np.generic], chunk: int) -> NDArray[np.int64] | None:
    """Row of the first code with the same direction as each; None where all differ."""
    parts = _slices(len(gallery), chunk)
    sums = np.concatenate([_bit_sums(prepared_rows(gallery[part], "cosine")) for part in parts])
    first = np.arange(len(gallery))
    _, group, counts = np.unique(sums, return_inverse=True, return_counts=True)
    alike = np.flatnonzero(counts[group] > 1)
    seen: dict[bytes, int] = {}
    for part in _slices(len(alike), chunk):
        rows = alike[part]
        for row, code in zip(rows, prepared_rows(gallery[rows], "cosine"), strict=True):
            code += 0.0  # -0.0 and 0.0 are equal but differ in their bytes
            first[row] = seen.setdefault(blake2b(code.data, digest_size=16).digest(), row)
    return None if len(seen) == len(alike) else first


def _bit_sums(codes: NDArray[np.float64]) -> NDArray[np.uint64]:
    """A number for each row: the same for equal rows, and hardly ever for others."""
    weights = np.random.default_rng(0).integers(2**64, size=codes.shape[1], dtype=np.uint64)
    return (codes + 0.0).view(np.uint64) @ weights


def _checked_pair(
    query_codes: ArrayLike, gallery_codes: ArrayLike, metric: Metric, chunk: int
) -> tuple[NDArray[np.generic], NDArray[np.generic]]:
    check_choice("metric", metric, METRICS)
    check_number("chunk", chunk, least=1, whole=True)
    queries = checked_codes("query_codes", query_codes)
    gallery = checked_codes("gallery_codes", gallery_codes)
    if queries.shape[1] != gallery.shape[1]:
        raise InputError(
            f"query_codes have {queries.shape[1]} entries and gallery_codes "
            f"{gallery.shape[1]}; both must come from the same model"
        )
    if not len(gallery):
        raise InputError("gallery_codes are empty; index at least one picture")
    return queries, gallery


def checked_codes(name: str, codes: ArrayLike) -> NDArray[np.generic]:
    """Codes as an array (n, N), refused unless all are finite and of a usable size."""
    array = as_array(codes, name)
    if array.ndim != 2 or array.shape[1] == 0 or array.dtype.kind not in "fiub":
        raise InputError(
            f"{name} have shape {array.shape} and type {array.dtype}; "
            "give real numbers, a row a code, (n, N) with N >= 1"
        )
    for part in _slices(len(array), _bounded(4096, array)):
        bad = ~(np.abs(array[part].astype(np.float64)) < _LARGEST_VALUE)
        if bad.any():
            row, column = map(int, np.argwhere(bad)[0])
            raise InputError(
                f"{name} row {part.start + row} holds {array[part.start + row, column]}; "
                f"every entry must be finite and below {_LARGEST_VALUE:g} in size"
            )
    return array


def floating_type(*arrays: NDArray[np.generic]) -> np.dtype[np.floating]:
    """Type of similarities of such codes."""
    kinds = np.result_type(*arrays)
    return np.dtype(kinds if kinds in (np.float32, np.float64) else np.float64)


def in_type_of(
    similarities: NDArray[np.float64], *codes: NDArray[np.generic]
) -> NDArray[np.floating]:
    """Similarities in the floating type of such codes, if it holds them all."""
    dtype = floating_type(*codes)
    sizes = np.abs(similarities)
    largest = float(np.max(sizes, where=np.isfinite(sizes), initial=0))
    return similarities.astype(dtype) if largest <= float(np.finfo(dtype).max) else similarities


def _bounded(rows: int, codes: NDArray[np.generic]) -> int:
    """At most so many rows of codes, at least one, that take up to 128 MiB in float64."""
    return max(1, min(rows, _BLOCK_ENTRIES // int(codes.shape[1])))


def _slices(n: int, size: int) -> Iterator[slice]:
    return (slice(start, min(start + size, n)) for start in range(0, n, size))
