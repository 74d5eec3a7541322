"""Memory of a worker: what extraction is declared to need, and what it took."""

from __future__ import annotations

import resource
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cppcl.errors import InputError

MIB = 2**20
PROCESS = 176 * MIB
"""A worker with Dask, NumPy and the project imported (64 MiB without serving, 110 with)."""
DECODING = 64 * MIB
"""A picture as it lies in its file: decoded whole and reduced, up to 7 megapixels."""
WORKING_ARRAYS = 32
"""Arrays of doubles, of a picture's pixels, that an extractor may hold at once."""
NUMERICS = 320 * MIB
"""Compiled kernels, what scikit-image, SciPy, Numba and scikit-learn bring, and samples drawn."""
LIGHT = frozenset({"pixels", "hog", "helo", "precomputed", "perceptual_edge_lite"})
"""Extractors that need little of these."""
LIGHT_NUMERICS = 64 * MIB
TORCH = 640 * MIB
"""PyTorch imported, with a small network."""
PACKAGED = "efficientnet_lite0"
LARGE_NETWORK = 768 * MIB
"""Weights of a larger network, twice while they are loaded."""


@dataclass(frozen=True)
class Budget:
    """Bytes that a worker needs to extract blocks.

    Attributes
    ----------
    process : int
        Interpreter and imports.
    model : int
        Networks, and what was learned.
    pictures : int
        Decoded pictures of a block, twice where the next ones are read meanwhile.
    rows : int
        Features of a block.
    working : int
        What an extractor holds while it describes a picture.
    """

    process: int
    model: int
    pictures: int
    rows: int
    working: int

    @property
    def total(self) -> int:
        """Bytes in all."""
        return self.process + self.model + self.pictures + self.rows + self.working

    def check(self, available: int, block_rows: int, longest_side: int) -> None:
        """Raise `InputError` if a worker has less."""
        if self.total <= available:
            return
        raise InputError(
            f"compute.memory_per_worker={_text(available)} is less than the {_text(self.total)} "
            f"that extraction needs: {_text(self.process + self.working)} for the process, "
            f"{_text(self.model)} for the model, {_text(self.pictures + self.rows)} for blocks of "
            f"block_rows={block_rows} pictures of longest_side={longest_side}; raise "
            "compute.memory_per_worker, or lower block_rows or longest_side"
        )


def extraction_budget(
    *,
    extractor: str,
    device: str,
    options: dict[str, Any],
    dimension: int,
    block_rows: int,
    longest_side: int,
    learned_bytes: int = 0,
    ahead: bool = False,
) -> Budget:
    """Declare what extraction needs, from the size of blocks and the model.

    Parameters
    ----------
    extractor : str
        Registered name, or several joined by ``+``.
    device : {'cpu', 'gpu'}
        Where it prefers to run: networks prefer a GPU.
    options : dict
        Its options, for the network and its file of weights; those of parts of a combination are
        dictionaries.
    dimension : int
        Values of a row.
    block_rows, longest_side : int
        Pictures of a block, and their longest side in pixels.
    learned_bytes : int
        Arrays that the extractor has learned.
    ahead : bool
        Whether the next block is decoded while one is described.
    """
    picture = 3 * longest_side**2
    network = 0
    for part in [options, *(part for part in options.values() if isinstance(part, dict))]:
        if weights := part.get("weights"):
            path = Path(str(weights)).expanduser()
            network += 3 * path.stat().st_size if path.is_file() else LARGE_NETWORK
        elif str(part.get("network", PACKAGED)) != PACKAGED:
            network += LARGE_NETWORK
    light = all(name in LIGHT or name == "cnn" for name in extractor.split("+"))
    numerics = LIGHT_NUMERICS if light else NUMERICS
    return Budget(
        process=PROCESS,
        model=numerics + (TORCH + network if device == "gpu" else 0) + 3 * learned_bytes,
        pictures=DECODING + (1 + ahead) * block_rows * picture,
        # A batch of the extractor, the block, and its compressed copy.
        rows=3 * block_rows * dimension * 4,
        working=WORKING_ARRAYS * 8 * longest_side**2,
    )


def peak_memory() -> int:
    """Largest resident memory of this process so far, in bytes."""
    try:
        # Unlike getrusage, without what the parent held when this process began.
        status = Path("/proc/self/status").read_text()
        (line,) = (line for line in status.splitlines() if line.startswith("VmHWM:"))
        return 1024 * int(line.split()[1])
    except (OSError, ValueError):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else 1024 * peak


def _text(n_bytes: int) -> str:
    return f"{n_bytes / 2**30:.3g}GiB" if n_bytes >= 2**30 else f"{n_bytes / MIB:.4g}MiB"
