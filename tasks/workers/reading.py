"""Reading of artifacts on workers: the library and storage only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cppcl.curriculum import Curriculum
from cppcl.curriculum.union import curriculum_from_arrays
from cppcl.datasets.table import Modality
from storage import Reference, Store


@dataclass(frozen=True)
class TrainingSamples:
    """Training samples of one modality.

    Attributes
    ----------
    modality : {'sketch', 'image'}
        Which.
    rows : (n,) int64
        Rows of the modality, in the sample table and in its features.
    kept : (m,) bool
        Which of the m training rows of the split these are.
    labels, groups : (n,) str
        What relevance goes by, and the instance of each.
    """

    modality: Modality
    rows: NDArray[np.int64]
    kept: NDArray[np.bool_]
    labels: NDArray[np.str_]
    groups: NDArray[np.str_]

    def features(self, store: Store, reference: Reference) -> NDArray[np.floating]:
        """Their rows of an `extract` artifact, (n, m)."""
        return store.open(reference).rows("features", self.rows)

    def curriculum(self, store: Store, reference: Reference | None) -> Curriculum | None:
        """Their pairs of a `curricula` artifact."""
        if reference is None:
            return None
        return open_curriculum(store, reference, self.modality, self.kept)


def open_curriculum(
    store: Store, reference: Reference, modality: Modality, kept: NDArray[np.bool_]
) -> Curriculum:
    """Read the curriculum of one modality, restricted to training samples that are kept.

    Parameters
    ----------
    store : Store
        Where the artifact is.
    reference : Reference
        A `curricula` artifact.
    modality : {'sketch', 'image'}
        Whose pairs.
    kept : (n,) bool
        Which training samples have features; pairs refer to those alone afterwards.
    """
    artifact, prefix = store.open(reference), f"{modality}_"
    names = [name for name in artifact.names if name.startswith(prefix)]
    arrays = {name.removeprefix(prefix): artifact.array(name) for name in names}
    if len(arrays) > 1 and not len(arrays["pairs"]):
        del arrays["pairs"]
    return curriculum_from_arrays(arrays, len(kept)).restrict(np.flatnonzero(kept))
