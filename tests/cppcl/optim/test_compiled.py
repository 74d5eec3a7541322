"""Compiled functions return the same bytes from wherever they were read."""

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import hashlib
import numpy as np
from cppcl.methods import make_method
rng = np.random.default_rng(0)
labels = np.arange(24) % 6
centres = rng.normal(size=(6, 16))
sketches, images = (
    (centres[labels] + 0.5 * rng.normal(size=(24, 16))).astype(np.float32) for _ in range(2)
)
method = make_method("cprl", n_atoms=4, n_rounds=6, alpha=0.01)
arrays = method.fit(sketches, images, labels, labels).to_arrays()
print(hashlib.sha256(b"".join(arrays[name].tobytes() for name in sorted(arrays))).hexdigest())
"""


def test_a_process_that_compiles_learns_what_one_that_reads_learns(tmp_path: Path) -> None:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    compiling, reading = (
        subprocess.check_output([sys.executable, "-c", PROGRAM], env=environment) for _ in range(2)
    )
    assert any(tmp_path.rglob("*.nbc"))
    assert compiling == reading
