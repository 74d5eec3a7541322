"""What every data set offers."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Protocol

from cppcl.datasets.table import SampleTable


class DataSet(Protocol):
    """Pictures of two modalities, as a folder and a table.

    The constructor takes keyword arguments only, typed and with defaults where a default makes
    sense: they are the options that a user sets.

    Attributes
    ----------
    name : str
        Its name in the registry.
    version : int
        Raised whenever the table, titles aside, or the files of its samples change.
    has_pictures : bool
        False for one whose samples are rows of numbers.
    """

    name: ClassVar[str]
    version: ClassVar[int]
    has_pictures: ClassVar[bool]

    @property
    def licence(self) -> str:
        """Attribution and licence, one or more lines, for reports that show the pictures."""
        ...

    def check(self) -> None:
        """Refuse early what `fetch` and `table` would refuse of the places that were given.

        Writes nothing, and reads no picture and no matrix. A data set that is given no places
        needs none.

        Raises
        ------
        InputError
            A folder or file is missing or of another kind.
        """
        ...

    def fetch(self, directory: Path) -> Path:
        """Put the files below `directory` where they have to be made or downloaded.

        Returns the root that the paths of the table are relative to. Calling it again changes
        nothing; being killed leaves nothing half-made under the final name.
        """
        ...

    def table(self, root: Path) -> SampleTable:
        """Return the samples under the root that `fetch` returned."""
        ...

    def findings(self, root: Path) -> list[str]:
        """Return what the user should know about the data, one sentence each."""
        ...
