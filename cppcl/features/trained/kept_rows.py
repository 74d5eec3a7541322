"""Features of pictures that were described lately."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cppcl.features.base import MIB, Extractor, Picture

MOST_BYTES = 128 * MIB
"""Features that a process keeps; then the oldest go."""


class KeptRows:
    """Rows of a frozen extractor, by the content of pictures.

    What is learned in several splits, and described with each, needs the same frozen features
    many times.

    Parameters
    ----------
    most : int
        Bytes of rows that are kept.
    """

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most, self._bytes, self._lock = most, 0, threading.Lock()
        self._rows: OrderedDict[bytes, NDArray[np.float32]] = OrderedDict()

    def transform(
        self, extractor: Extractor, identity: bytes, pictures: Sequence[Picture]
    ) -> NDArray[np.float32]:
        """Features of pictures, (n, m).

        Parameters
        ----------
        extractor : Extractor
            Describes those that are not kept.
        identity : bytes
            Of the extractor and its options.
        pictures : sequence of Picture
            What is described.
        """
        keys = [_digest(identity, picture) for picture in pictures]
        with self._lock:
            found = {key: self._rows[key] for key in keys if key in self._rows}
        missing = [number for number, key in enumerate(keys) if key not in found]
        if missing:
            rows = extractor.transform([pictures[number] for number in missing])
            for number, row in zip(missing, rows, strict=True):
                found[keys[number]] = row.copy()
                self._keep(keys[number], found[keys[number]])
        if not keys:
            return extractor.transform([])
        return np.stack([found[key] for key in keys])

    def _keep(self, key: bytes, row: NDArray[np.float32]) -> None:
        with self._lock:
            if key not in self._rows:
                self._rows[key] = row
                self._bytes += row.nbytes
            while self._bytes > self._most:
                _, oldest = self._rows.popitem(last=False)
                self._bytes -= oldest.nbytes


def _digest(identity: bytes, picture: Picture) -> bytes:
    shape = repr(picture.shape).encode()
    return hashlib.blake2b(
        identity + shape + np.ascontiguousarray(picture).tobytes(), digest_size=16
    ).digest()
