"""Content-addressed artifacts on a file system: whole, checked, or not there.

`Store` holds them, `Recipe` gives their keys, `Writer` makes them, `Artifact` reads them, and
`write_block` runs wherever the work is done.
"""

from storage.artifact import Artifact
from storage.blocks import read_zarr, write_block
from storage.errors import (
    BlockError,
    DamagedArtifactError,
    MissingArtifactError,
    RecipeError,
    RemoteError,
    RemoteURLError,
    StoreAccessError,
    StoreError,
    StoreInUseError,
    UnknownReferenceError,
)
from storage.recipe import JSON, Recipe, Reference, canonical_json
from storage.remote.inventory import Inventory
from storage.remote.objects import Remote
from storage.remote.transfer import Transfer
from storage.remote.url import open_remote
from storage.repair import Repair
from storage.store import Outcome, Store
from storage.unfinished import load_checkpoint, save_checkpoint, write_block_note
from storage.verification import Problem
from storage.writer import Writer

__all__ = [
    "JSON",
    "Artifact",
    "BlockError",
    "DamagedArtifactError",
    "Inventory",
    "MissingArtifactError",
    "Outcome",
    "Problem",
    "Recipe",
    "RecipeError",
    "Reference",
    "Remote",
    "RemoteError",
    "RemoteURLError",
    "Repair",
    "Store",
    "StoreAccessError",
    "StoreError",
    "StoreInUseError",
    "Transfer",
    "UnknownReferenceError",
    "Writer",
    "canonical_json",
    "load_checkpoint",
    "open_remote",
    "read_zarr",
    "save_checkpoint",
    "write_block",
    "write_block_note",
]
