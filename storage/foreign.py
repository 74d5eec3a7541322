"""Zarr arrays that somebody else wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from storage.errors import StoreError


def read_zarr(path: str | Path) -> NDArray[Any]:
    """Return a Zarr array from outside the store, whole.

    Raises
    ------
    StoreError
        If the folder is no Zarr array, with a hint.
    """
    import zarr

    try:
        array = zarr.open_array(str(path), mode="r")
        values = np.asarray(array[...])
    except Exception as error:  # zarr raises errors of many kinds for what is no array
        raise StoreError(
            f"{path} cannot be read as a Zarr array ({error}); give the folder of one array"
        ) from error
    return values
