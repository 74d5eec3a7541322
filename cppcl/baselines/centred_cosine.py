"""Direct comparison after removing each modality's mean."""

from __future__ import annotations

from cppcl.baselines.base import DirectBaseline


class CentredCosine(DirectBaseline):
    """Codes are the features less the training mean of their modality, at unit norm.

    Both modalities need the same feature. The mean is what tells line drawings from pictures as
    such, so removing it lets the content decide.
    """

    def __init__(self) -> None:
        super().__init__()
