"""An approximate index of codes, for galleries that are too large to be searched exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cppcl.errors import DataUnavailableError, InputError
from cppcl.retrieval.exact import checked_codes, exact_similarities, nearest, prepared_rows
from cppcl.validation import check_number


class ApproximateGallery:
    """Nearest codes by the cosine over a graph of neighbours (HNSW), which may miss some.

    What the graph proposes is ordered by the exact cosine. Needs faiss: the extra ``approximate``.

    Parameters
    ----------
    codes : array_like, (g, N)
        Finite numbers; rows are codes.
    n_links : int, default 32
        Links of a code in the graph: memory and time of building for recall.
    breadth : int, default 64
        Codes that are kept in sight during a search: time for recall.

    Raises
    ------
    InputError
        For what `cppcl.retrieval.exact.nearest` refuses in a gallery.
    DataUnavailableError
        Where faiss is not installed.

    Notes
    -----
    Malkov and Yashunin, "Efficient and robust approximate nearest neighbor search using
    hierarchical navigable small world graphs", PAMI 2020. On unit vectors the nearest by the
    inner product are those by the cosine.
    """

    def __init__(self, codes: ArrayLike, *, n_links: int = 32, breadth: int = 64) -> None:
        self.codes = checked_codes("gallery_codes", codes)
        if not len(self.codes):
            raise InputError("gallery_codes are empty; index at least one picture")
        self.n_links = check_number("n_links", n_links, least=2, whole=True)
        self.breadth = check_number("breadth", breadth, least=1, whole=True)
        # Codes of zero are similar to nothing: they are no part of the graph.
        self._rows = np.flatnonzero((self.codes != 0).any(axis=1))
        faiss = _faiss()
        self._graph: Any = faiss.IndexHNSWFlat(
            self.codes.shape[1], self.n_links, faiss.METRIC_INNER_PRODUCT
        )
        for first in range(0, len(self._rows), 4096):
            rows = self.codes[self._rows[first : first + 4096]]
            self._graph.add(prepared_rows(rows, "cosine").astype(np.float32))

    def nearest(
        self, query_codes: ArrayLike, k: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Find about the k nearest codes of every query.

        Parameters
        ----------
        query_codes : array_like, (q, N)
            Finite numbers; rows are codes.
        k : int
            Number of neighbours, at least 1.

        Returns
        -------
        indices : ndarray, (q, min(k, g)) int64
            Rows of the gallery, nearest first; -1 where the graph found no more.
        similarities : ndarray, (q, min(k, g)) float64
            Exact cosines; ``-inf`` at -1, and for a query of zero.
        """
        queries = checked_codes("query_codes", query_codes)
        if queries.shape[1] != self.codes.shape[1]:
            nearest(queries, self.codes, k)  # raises
        k = min(check_number("k", k, least=1, whole=True), len(self.codes))
        prepared = prepared_rows(queries, "cosine")
        self._graph.hnsw.efSearch = max(self.breadth, k)
        _, found = self._graph.search(prepared.astype(np.float32), k)
        indices = np.full((len(queries), k), -1, np.int64)
        similarities = np.full((len(queries), k), -np.inf)
        for row, (query, proposed) in enumerate(zip(prepared, found, strict=True)):
            if not query.any():
                continue
            rows = self._rows[proposed[proposed >= 0]]
            codes = prepared_rows(self.codes[rows], "cosine")
            exact = exact_similarities(np.broadcast_to(query, codes.shape), codes, "cosine")
            order = np.lexsort((rows, -exact))
            indices[row, : len(rows)], similarities[row, : len(rows)] = rows[order], exact[order]
        return indices, similarities

    def recall(self, query_codes: ArrayLike, k: int) -> float:
        """Share of the k truly nearest codes that are found, over all queries."""
        exact, _ = nearest(query_codes, self.codes, k)
        if not len(exact):
            raise InputError("query_codes are empty; recall needs at least one query")
        found, _ = self.nearest(query_codes, k)
        shares = [np.isin(ours, theirs).mean() for ours, theirs in zip(exact, found, strict=True)]
        return float(np.mean(shares))


def _faiss() -> Any:
    try:
        import faiss
    except ImportError as error:
        raise DataUnavailableError(
            "an approximate gallery needs faiss: pip install 'cppcl[approximate]'; or use "
            "cppcl.retrieval.gallery.Gallery, which is exact"
        ) from error
    return faiss
