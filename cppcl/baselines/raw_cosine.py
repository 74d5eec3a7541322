"""Direct comparison of features as they are."""

from __future__ import annotations

from typing import ClassVar

from cppcl.baselines.base import DirectBaseline


class RawCosine(DirectBaseline):
    """The features themselves are the codes; both modalities need the same feature."""

    learns: ClassVar[bool] = False

    def __init__(self) -> None:
        super().__init__(center=False, unit_norm=False)
