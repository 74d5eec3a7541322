"""Direct comparison of features as they are."""

from __future__ import annotations

from cppcl.baselines.base import LinearBaseline
from cppcl.preparation import Preparation


class RawCosine(LinearBaseline):
    """The features themselves are the codes; both modalities need the same feature."""

    def __init__(self) -> None:
        super().__init__(*(Preparation(center=False, unit_norm=False) for _ in range(2)))
