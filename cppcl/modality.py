"""The two kinds of pictures: what a user draws, and what a gallery holds."""

from __future__ import annotations

from typing import Literal

Modality = Literal["sketch", "image"]
MODALITIES: tuple[Modality, Modality] = ("sketch", "image")
"""Both, in the order in which pairs of anything are given."""
