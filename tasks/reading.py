"""Reading of artifacts on workers: the library and storage only."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cppcl.curriculum import ExplicitPairs
from cppcl.datasets.table import Modality
from storage import Reference, Store


def open_curriculum(
    store: Store, reference: Reference, modality: Modality, kept: NDArray[np.bool_]
) -> ExplicitPairs:
    """Read the pairs of one modality, restricted to training samples that are kept.

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
    pairs = store.open(reference).array(f"{modality}_pairs").reshape(-1, 2)
    return ExplicitPairs(pairs, len(kept)).restrict(np.flatnonzero(kept))
