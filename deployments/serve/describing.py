"""Features of one query, of which the extractors work side by side."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from cppcl.features import Extractor
from cppcl.features.combination import CombinedExtractor
from cppcl.pictures.decoding import Picture


class Describer:
    """Compute features with each extractor of a combination in a thread of its own.

    Networks and resizing let go of Python's lock, so that two cores share a query. Rows are those
    of the extractor, to the bit. One thread at a time may ask.

    Parameters
    ----------
    extractor : Extractor
        A combination; any other works in the thread that asks.
    """

    def __init__(self, extractor: Extractor) -> None:
        self._extractor = extractor
        n = len(extractor.parts) if isinstance(extractor, CombinedExtractor) else 0
        self._pool = ThreadPoolExecutor(n, thread_name_prefix="describe") if n else None

    def rows(self, pictures: Sequence[Picture]) -> NDArray[np.float32]:
        """Vectors of n pictures, (n, dimension) float32."""
        extractor = self._extractor
        if self._pool is None or not isinstance(extractor, CombinedExtractor):
            return extractor.transform(pictures)
        parts = extractor.parts
        return extractor.join([*self._pool.map(lambda part: part.transform(pictures), parts)])
