"""A gallery of codes that is searched often: prepared once, then a few milliseconds a query."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cppcl.errors import InputError
from cppcl.retrieval.exact import (
    METRICS,
    Metric,
    checked_codes,
    exact_similarities,
    in_type_of,
    nearest,
    prepared_rows,
)
from cppcl.validation import check_choice, check_number

SPARSE_BELOW = 0.1
"""Share of entries that are not zero, below which codes are held by atom."""
MOST_KEPT_SORTED = 256
"""Scores that are kept in order while the others pass; more are found by partition."""
_CHUNK = 4096
_LEAST_SCALED = 1e-120
_UNIT = 2.0**-23  # twice the rounding error of a float32: sums carry both factors' errors


class Gallery:
    """Codes of a gallery, in single precision and, where they are sparse, by atom.

    It finds exactly what `cppcl.retrieval.exact.nearest` finds. Products in single precision
    propose candidates: every code that could be among the k nearest within their rounding error,
    whose similarity is then computed in double precision. Where few entries are not zero, only the
    codes that share an atom with the query are touched.

    Parameters
    ----------
    codes : array_like, (g, N)
        Finite numbers; rows are codes. They are kept, not copied.
    metric : {'cosine', 'l2', 'intersection'}
        See `nearest`; the intersection is passed on to it.

    Raises
    ------
    InputError
        For what `nearest` refuses in a gallery.
    """

    def __init__(self, codes: ArrayLike, *, metric: Metric = "cosine") -> None:
        check_choice("metric", metric, METRICS)
        self.codes = checked_codes("gallery_codes", codes)
        if not len(self.codes):
            raise InputError("gallery_codes are empty; index at least one picture")
        self.metric = metric
        self._prepared = metric != "intersection" and self._prepare()

    def __len__(self) -> int:
        return len(self.codes)

    def __repr__(self) -> str:
        """Sizes and metric."""
        n, length = self.codes.shape
        return f"Gallery({n} codes of {length} {self.codes.dtype}, metric={self.metric!r})"

    def _repr_html_(self) -> str:
        """Sizes, metric, and how much of the codes is filled, as a notebook shows it."""
        n, length = self.codes.shape
        filled = np.count_nonzero(self.codes) / self.codes.size
        empty = int((~self.codes.any(axis=1)).sum())
        rows = {
            "codes": f"{n:,}",
            "length": f"{length:,} ({self.codes.dtype})",
            "metric": self.metric,
            "entries not zero": f"{100 * filled:.1f} %",
            "empty codes": f"{empty:,}",
        }
        body = "".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in rows.items())
        return f"<table><caption>Gallery</caption><tbody>{body}</tbody></table>"

    def nearest(
        self, query_codes: ArrayLike, k: int
    ) -> tuple[NDArray[np.int64], NDArray[np.floating]]:
        """Find the k nearest codes of every query, exactly.

        Parameters
        ----------
        query_codes : array_like, (q, N)
            Finite numbers; rows are codes. Meant for few queries: `cppcl.retrieval.exact.nearest`
            does many at once.
        k : int
            Number of neighbours, at least 1; at most g are returned.

        Returns
        -------
        indices, similarities : ndarray, (q, min(k, g))
            As `cppcl.retrieval.exact.nearest`.

        Raises
        ------
        InputError
            As `cppcl.retrieval.exact.nearest`.
        """
        check_number("k", k, least=1, whole=True)
        queries = checked_codes("query_codes", query_codes)
        if not self._prepared or queries.shape[1] != self.codes.shape[1]:
            return nearest(queries, self.codes, k, metric=self.metric)  # or its error
        k = min(k, len(self.codes))
        indices = np.empty((len(queries), k), np.int64)
        similarities = np.empty((len(queries), k))
        for row, query in enumerate(prepared_rows(queries, self.metric)):
            indices[row], similarities[row] = self._nearest_of_one(query, k)
        return indices, in_type_of(similarities, queries, self.codes)

    def _prepare(self) -> bool:
        """Hold the codes in single precision; false for distances too small for that."""
        from scipy import sparse

        parts = [slice(first, first + _CHUNK) for first in range(0, len(self.codes), _CHUNK)]
        filled = sum(np.count_nonzero(self.codes[part]) for part in parts)
        self._sparse = filled < SPARSE_BELOW * self.codes.size
        self._scale = 1.0  # brings distances to a size whose square single precision holds
        if self.metric == "l2":
            largest = max(float(np.abs(self.codes[part]).max()) for part in parts) or 1.0
            if largest < _LEAST_SCALED:
                return False
            self._scale /= largest
        held: list[Any] = []
        norms = np.empty(len(self.codes))
        for part in parts:
            rows = prepared_rows(self.codes[part], self.metric) * self._scale
            norms[part] = np.einsum("ij,ij->i", rows, rows)
            single = rows.astype(np.float32)
            held.append(sparse.csr_array(single) if self._sparse else single)
        self._products: Any = sparse.vstack(held).tocsc() if self._sparse else np.concatenate(held)
        self._norms = norms.astype(np.float32)
        self._largest = float(np.sqrt(norms.max()))
        self._zero = np.flatnonzero(norms == 0)
        return True

    def _nearest_of_one(
        self, query: NDArray[np.float64], k: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        scaled = query * self._scale
        norm = float(np.sqrt(scaled @ scaled))
        if not norm < 1e15:
            found, similarity = nearest(query[None], self.codes, k, metric=self.metric)
            return found[0], similarity[0].astype(np.float64)
        scores, error = self._proposals(scaled, norm)
        bound = -np.inf
        if len(scores) > k:
            bound = _kth_largest(scores, k) - 2 * error
        candidates = np.flatnonzero(scores >= bound)
        codes = prepared_rows(self.codes[candidates], self.metric)
        exact = exact_similarities(np.broadcast_to(query, codes.shape), codes, self.metric)
        order = np.lexsort((candidates, -exact))[:k]
        return candidates[order], exact[order]

    def _proposals(
        self, query: NDArray[np.float64], norm: float
    ) -> tuple[NDArray[np.float32], float]:
        """Cosines, or the squared query less squared distances, and a bound of their error."""
        support = np.flatnonzero(query)
        single = query.astype(np.float32)
        if self._sparse:
            from cppcl.retrieval.gallery_kernels import sum_of_columns

            products = np.zeros(len(self.codes), np.float32)
            by_atom = self._products
            sum_of_columns(
                by_atom.indptr, by_atom.indices, by_atom.data, support, single, products
            )
        else:
            products = self._products @ single
        terms = len(support) + 8
        if self.metric == "cosine":
            products[self._zero] = -np.inf
            if not norm:
                products[:] = -np.inf
            return products, terms * _UNIT
        products *= 2
        products -= self._norms
        return products, 2 * terms * _UNIT * (norm + self._largest) ** 2


def _kth_largest(scores: NDArray[np.float32], k: int) -> float:
    if k > MOST_KEPT_SORTED:
        return float(np.partition(scores, -k)[-k])
    from cppcl.retrieval.gallery_kernels import write_largest

    largest = np.empty(k, np.float32)
    write_largest(scores, largest)
    return float(largest[-1])
