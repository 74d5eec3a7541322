"""Drawings that a worker has rendered, for the next extractor that describes them."""

from __future__ import annotations

import threading
import zlib
from collections import OrderedDict
from collections.abc import Hashable

import numpy as np

from cppcl.pictures.decoding import Picture

MOST_BYTES = 16 * 2**20
"""Of all drawings together: some thousands of 256 pixels, each of a few thousand bytes."""
_FAST = 1  # zlib's level


class RenderedDrawings:
    """Pictures, compressed without loss; those that were longest not asked for go first.

    Rendering a drawing costs ten times as much as unpacking it, and every extractor and score
    describes the same ones.

    Parameters
    ----------
    most_bytes : int
        Bytes that all of them may take.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self.most_bytes = most_bytes
        self._packed: OrderedDict[Hashable, tuple[bytes, tuple[int, ...]]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> Picture | None:
        """Picture of a key, or None if it is not here."""
        with self._lock:
            if key not in self._packed:
                return None
            self._packed.move_to_end(key)
            packed, shape = self._packed[key]
        return np.frombuffer(bytearray(zlib.decompress(packed)), dtype=np.uint8).reshape(shape)

    def keep(self, key: Hashable, picture: Picture) -> None:
        """Keep the picture of a key, unless it is here already."""
        packed = zlib.compress(np.ascontiguousarray(picture), _FAST)
        with self._lock:
            if key in self._packed or len(packed) > self.most_bytes:
                return
            self._packed[key] = packed, picture.shape
            self._bytes += len(packed)
            while self._bytes > self.most_bytes:
                _, (oldest, _) = self._packed.popitem(last=False)
                self._bytes -= len(oldest)
