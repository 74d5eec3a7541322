"""The sample table: one row a picture, the same columns for every data set."""

from __future__ import annotations

import csv
import hashlib
import io
from dataclasses import dataclass, fields
from pathlib import PurePosixPath

import numpy as np
from numpy.typing import NDArray

from cppcl.errors import InputError
from cppcl.modality import MODALITIES, Modality
from cppcl.validation import check_columns


@dataclass(frozen=True)
class SampleTable:
    """Pictures of a data set, one entry of every column a picture.

    Row numbers used elsewhere (features, scores, codes, splits) count within one modality:
    row ``k`` of the sketch features belongs to the ``k``-th sketch of the table.

    Parameters
    ----------
    ids : tuple of str
        Unique name of each sample, stable when the data set moves.
    sha256 : tuple of str
        Hexadecimal digest of the file's bytes.
    paths : tuple of str
        File of each sample, POSIX, relative to the root of the data set; ``FILE.npy#17`` for row
        17 of a matrix, where samples are no pictures. Not part of `digest`.
    modality : tuple of {'sketch', 'image'}
        What each sample is.
    labels : tuple of str
        Class of each sample.
    groups : tuple of str
        Instance that ties a sketch to its picture; the sample's own id where there is none.
    titles : tuple of str
        What a person calls what is on each sample; empty where the data set knows no titles. Not
        part of `digest`.
    """

    ids: tuple[str, ...]
    sha256: tuple[str, ...]
    paths: tuple[str, ...]
    modality: tuple[Modality, ...]
    labels: tuple[str, ...]
    groups: tuple[str, ...]
    titles: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        lengths = {name: len(getattr(self, name)) for name in self._filled()}
        if len(set(lengths.values())) > 1:
            raise InputError(f"columns of a sample table differ in length: {lengths}")
        if len(set(self.ids)) != len(self.ids):
            seen: set[str] = set()
            repeated = next(i for i in self.ids if i in seen or seen.add(i))  # type: ignore[func-returns-value]
            raise InputError(f"sample id {repeated!r} occurs more than once; ids must be unique")
        unknown = set(self.modality) - set(MODALITIES)
        if unknown:
            raise InputError(f"modality {sorted(unknown)[0]!r} is not one of {MODALITIES}")

    def __len__(self) -> int:
        return len(self.ids)

    def rows(self, modality: Modality) -> NDArray[np.int64]:
        """Table rows of one modality, in order."""
        return np.flatnonzero(np.array(self.modality, dtype=object) == modality).astype(np.int64)

    def title(self, row: int) -> str:
        """What a person calls a table row: its title, else its label, else its file's name."""
        given = self.titles[row] if self.titles else ""
        return given or self.labels[row] or PurePosixPath(self.paths[row]).stem

    def column(self, name: str, modality: Modality) -> list[str]:
        """Return one column, restricted to one modality."""
        values = getattr(self, name)
        return [values[row] for row in self.rows(modality)]

    def digest(self) -> str:
        """Hexadecimal sha256 over every column but the paths and titles."""
        digest = hashlib.sha256()
        for row in zip(
            self.ids, self.sha256, self.modality, self.labels, self.groups, strict=True
        ):
            for value in row:
                digest.update(value.encode())
                digest.update(b"\x00")
        return digest.hexdigest()

    def repetitions(self) -> list[str]:
        """Sentences on pictures with the same content in different groups.

        A split may put one of them in training and another in the test.
        """
        found = []
        for modality in MODALITIES:
            twins: dict[str, list[int]] = {}
            for row in self.rows(modality):
                twins.setdefault(self.sha256[row], []).append(int(row))
            repeated = [r for r in twins.values() if len({self.groups[row] for row in r}) > 1]
            if repeated:
                shown = "; ".join(" = ".join(self.ids[row] for row in r[:3]) for r in repeated[:3])
                n = sum(map(len, repeated))
                found.append(
                    f"{n} {modality} samples have the same content as another one, so that "
                    f"training and test may share them: {shown}"
                    + ("; ..." if len(repeated) > 3 else ".")
                )
        return found

    def to_csv(self) -> str:
        """Comma-separated text with a header line, readable by `from_csv`."""
        text = io.StringIO()
        # Quoted throughout: a bare carriage return in a file name would not be read back.
        writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
        names = self._filled()
        writer.writerow(names)
        writer.writerows(zip(*(getattr(self, name) for name in names), strict=True))
        return text.getvalue()

    def _filled(self) -> list[str]:
        """Names of the columns, without that of titles where there are none."""
        return [f.name for f in fields(self) if f.name != "titles" or self.titles]

    @classmethod
    def from_csv(cls, text: str) -> SampleTable:
        """Inverse of `to_csv`."""
        header, *rows = csv.reader(io.StringIO(text))
        check_columns(header, "line 1")
        columns = zip(*rows, strict=True) if rows else [()] * len(header)
        return cls(**dict(zip(header, map(tuple, columns), strict=True)))
