"""TU-Berlin Extension as zero-shot publications use it: 30 unseen classes."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from cppcl.datasets.acquisition.layout import Part
from cppcl.datasets.published.tuberlin import TuBerlin
from cppcl.datasets.published.zero_shot import UnseenCounts, ZeroShotSet


class TuBerlinExt(ZeroShotSet):
    """TU-Berlin Extension for zero-shot retrieval: 250 classes, 30 of them unseen."""

    name: ClassVar[str] = "tuberlin-ext"
    title: ClassVar[str] = "TU-Berlin Extension, zero-shot"
    page: ClassVar[str] = TuBerlin.page
    terms: ClassVar[str] = TuBerlin.terms
    citation: ClassVar[str] = TuBerlin.citation
    remarks: ClassVar[tuple[str, ...]] = (
        *TuBerlin.remarks,
        "Publications draw different sets of 30 classes; this is one of them.",
    )
    parts: ClassVar[tuple[Part, ...]] = TuBerlin.parts
    unseen: ClassVar[dict[str, UnseenCounts]] = {"tuberlin-ext-30": UnseenCounts(2400, 27_989)}

    def home(self, directory: Path) -> Path:
        """Folder of its own, or that of `tuberlin` where only that one is there."""
        own, shared = super().home(directory), TuBerlin().home(directory)
        return shared if self.root is None and shared.is_dir() and not own.is_dir() else own
