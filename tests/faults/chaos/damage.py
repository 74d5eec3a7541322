"""Damage to files, drawn from a seed."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from store_job import N_BLOCKS

from storage.blocks import raw_bytes

HOW = ("flip a bit of", "cut", "empty", "delete", "overwrite", "swap")


@dataclass(frozen=True)
class Hurt:
    """A file that was damaged, and how."""

    path: Path
    how: str

    def __str__(self) -> str:
        return f"{self.how} {'/'.join(self.path.parts[-4:])}"

    @property
    def label(self) -> str:
        """Kind of file."""
        name = self.path.name
        kinds = {"manifest.json": "manifest", "run.json": "run.json", "zarr.json": "Zarr metadata"}
        return kinds.get(name, "chunk" if name.startswith("c.") else "file")

    def blocks(self) -> int:
        """Blocks of the array made in blocks that have to be made again."""
        parts = self.path.parts
        if parts[parts.index("store") + 1] != "features":
            return 0
        if self.label in ("manifest", "run.json") or self.how == "swap":
            return N_BLOCKS
        return int(self.label == "chunk")


def damage(root: Path, seed: int, eligible: Callable[[Path], bool]) -> Hurt | None:
    """Damage one file below a folder; None if there is none that may be."""
    rng = random.Random(seed)
    paths = sorted(
        path
        for path in root.rglob("*")
        if path.is_file() and "locks" not in path.parts and eligible(path)
    )
    if not paths:
        return None
    path, how = rng.choice(paths), rng.choice(HOW)
    data = bytearray(path.read_bytes())
    other = path.with_name(path.name.replace("c.1", "c.0"))
    if how == "swap" and other != path and other.read_bytes() != bytes(data):
        path.write_bytes(other.read_bytes())  # intact, but in the wrong place
        return Hurt(path, how)
    if how in ("swap", "flip a bit of") and data:
        how = "flip a bit of"
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
    elif how == "cut" and len(data) > 1:
        path.write_bytes(data[: rng.randrange(1, len(data))])
    elif how == "overwrite" and data:
        path.write_bytes(bytes(b ^ 0x55 for b in data))
    elif how == "empty" and data:
        path.write_bytes(b"")
    else:
        how = "delete"
        path.unlink()
    return Hurt(path, how)


def digest(value: np.ndarray | bytes) -> str:
    """Digest as manifests have it."""
    data = value if isinstance(value, bytes) else raw_bytes(value)
    return hashlib.sha256(data).hexdigest()
