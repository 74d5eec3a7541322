"""Memory that arrays free is kept for the next ones."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

ROUNDS, PAGES = 20, 4 * 8 * 2**20 // 4096
PROGRAM = f"""
import ctypes, resource, sys
import numpy as np

from cppcl.features import make_extractor

if sys.argv[1] == "extractor":
    make_extractor("hog")
ctypes.CDLL(None).prctl(41, 1, 0, 0, 0)  # PR_SET_THP_DISABLE: pages of 4 KiB alone are counted
def work():
    arrays = [np.full(2**20, 1.0) for _ in range(4)]
work()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range({ROUNDS}):
    work()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "gnu_get_libc_version"), reason="glibc is what is asked"
)
def test_pages_are_not_asked_for_again_once_there_is_an_extractor() -> None:
    def faults(what: str) -> int:
        run = subprocess.run(
            [sys.executable, "-c", PROGRAM, what], capture_output=True, text=True, check=True
        )
        return int(run.stdout)

    assert faults("none") > ROUNDS * PAGES / 2
    assert faults("extractor") < PAGES
