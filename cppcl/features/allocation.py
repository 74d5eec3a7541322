"""What the C library's allocator does with memory that arrays free."""

from __future__ import annotations

import ctypes
from functools import lru_cache

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h
MOST_MAPPED_BYTES = 32 * 2**20
"""Arrays from here on go back to the system when freed; the most that mallopt(3) allows."""
MOST_KEPT_BYTES = 64 * 2**20
"""Free memory at the end of a heap beyond this goes back to the system."""


@lru_cache(maxsize=1)
def keep_freed_memory() -> bool:
    """Let this process keep some of the memory that arrays free, for the next ones.

    By itself glibc gives the layers of a network back to the system, picture by picture, and the
    system fills every page that is asked for anew with zeros: a fifth of the time of a network on
    a CPU, an eighth of SIFT's. No value changes. The process keeps `MOST_KEPT_BYTES` at the
    end of a heap, and holes between what is in use.

    Returns
    -------
    bool
        True if the C library accepted the setting; only glibc is asked.
    """
    library = ctypes.CDLL(None)
    if not hasattr(library, "gnu_get_libc_version"):
        return False
    asked = ((_M_MMAP_THRESHOLD, MOST_MAPPED_BYTES), (_M_TRIM_THRESHOLD, MOST_KEPT_BYTES))
    return all(library.mallopt(option, value) == 1 for option, value in asked)
