"""Blocks that kill their workers, described picture by picture until the one at fault is known.

Imports the library and storage only: this runs on Dask workers.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from cppcl.errors import CppclError, InputError
from storage.files import write_atomically

DEATHS = 2
"""Workers that must die at a picture alone before it is passed over: one may be an accident."""
MODEL = -1
"""Row of a journal while the extractor itself is made."""


@dataclass
class Journal:
    """What a worker is about to do, written before it does it: the next one knows what killed it.

    Parameters
    ----------
    file : Path
        Where it is kept.
    at : int or None
        Row that is being described.
    deaths : dict of int to int
        Workers that died at a row.
    """

    file: Path
    at: int | None = None
    deaths: dict[int, int] = field(default_factory=dict)

    @classmethod
    def open(cls, partial: str, block: int) -> Journal:
        """Journal of a block below an unfinished artifact; counts the death it tells of."""
        journal = cls(Path(partial) / "journal" / f"{block}.json")
        if journal.file.exists():
            document = json.loads(journal.file.read_text())
            journal.deaths = {int(row): n for row, n in document["deaths"].items()}
            if document["at"] is not None:
                row = document["at"]
                journal.deaths[row] = journal.deaths.get(row, 0) + 1
                journal.begin(None)
        return journal

    def begin(self, row: int | None) -> None:
        """Say which row comes next."""
        self.at = row
        document = {name: value for name, value in asdict(self).items() if name != "file"}
        write_atomically(self.file, json.dumps(document).encode())

    def begin_model(self) -> None:
        """Say that the extractor is made next.

        Raises
        ------
        CppclError
            If workers died at that: no picture is at fault.
        """
        if self.deaths.get(MODEL, 0) >= DEATHS:
            raise CppclError(
                f"{DEATHS} workers died while the extractor was made, probably out of memory; "
                "raise compute.memory_per_worker (finished blocks are kept)"
            )
        self.begin(MODEL)

    def verdict(self, row: int, path: str) -> InputError | None:
        """Why a row is passed over, if workers died at it."""
        if self.deaths.get(row, 0) < DEATHS:
            return None
        return InputError(
            f"{path}: {DEATHS} workers died while they described it alone, out of memory or by a "
            "fault of a decoder; remove it, or raise compute.memory_per_worker and force extract"
        )

    @property
    def n_deaths(self) -> int:
        """Workers that died at this block since it is described picture by picture."""
        return sum(self.deaths.values())
