"""Training pictures as a network sees them, held in memory, with their classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cppcl.features.training.augmentation import (
    CROP,
    moved,
    other_width,
    strokes_of,
    without_strokes,
)
from cppcl.modality import Modality


@dataclass(frozen=True)
class Views:
    """Pictures of one modality.

    Attributes
    ----------
    maps : (n, c, side, side) uint8 array
        What `seen_by_network` made of each.
    targets : (n,) int64 array
        Class of each.
    drawn : bool
        True for sketches, whose strokes can be told apart.
    asks : (n,) bool array or None
        Which may be queries where they are held out; None for all.
    """

    maps: NDArray[np.uint8]
    targets: NDArray[np.int64]
    drawn: bool = False
    asks: NDArray[np.bool_] | None = None


class Lesson:
    """Gives a network the pictures of a batch, each time changed a little.

    Parameters
    ----------
    views : dict of Views
        Training pictures by modality.
    n_classes : int
        Classes that targets number.
    device : str
        Where the network is.
    changed : bool
        False to give pictures as they are.
    """

    def __init__(
        self,
        views: Mapping[Modality, Views],
        n_classes: int,
        device: str = "cpu",
        *,
        changed: bool = True,
    ) -> None:
        self.views, self.n_classes, self.device, self.changed = views, n_classes, device, changed
        self._rng = np.random.default_rng(0)
        self._strokes = {
            modality: np.stack([strokes_of(view[0]) for view in found.maps])
            for modality, found in views.items()
            if found.drawn and changed and len(found.maps)
        }

    def begin(self, rng: np.random.Generator) -> None:
        """Draw changes by this generator from here on."""
        self._rng = rng

    def pictures(self, modality: Modality, rows: NDArray[np.int64]) -> Tensor:
        """Pictures of a batch, (n, c, side, side) float32 in [0, 1], on the device."""
        chosen = self.views[modality].maps[rows]
        if modality in self._strokes:
            chosen = without_strokes(chosen, self._strokes[modality][rows], self._rng)
        found = as_input(chosen, self.device)
        if not self.changed:
            return found
        if found.shape[1] > 1:
            return moved(found, self._rng, CROP)
        return moved(other_width(found, self._rng), self._rng)

    def classes(self, modality: Modality, rows: NDArray[np.int64]) -> Tensor:
        """Class of each picture of a batch, (n,) int64, on the device."""
        return torch.from_numpy(self.views[modality].targets[rows]).to(self.device)


def as_input(maps: NDArray[np.uint8], device: str) -> Tensor:
    """Maps as a network takes them, (n, c, side, side) float32 in [0, 1]."""
    return torch.from_numpy(np.ascontiguousarray(maps)).to(device).float() / 255
