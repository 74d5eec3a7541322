"""One's own features: two matrices and a table of labels."""

from __future__ import annotations

import csv
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cppcl.datasets.files import file_sha256, made_whole
from cppcl.datasets.folder import of_one_modality
from cppcl.datasets.table import SampleTable
from cppcl.errors import InputError
from cppcl.modality import MODALITIES, Modality
from cppcl.regular_files import check_regular
from cppcl.validation import check_columns, counted

_ROWS_A_BLOCK = 4096


@dataclass(frozen=True, kw_only=True)
class Matrices:
    """Feature matrices (samples in rows) with a CSV file of labels.

    Parameters
    ----------
    sketch_features, image_features : Path
        ``.npy``, or ``.npz`` with one array or with `array`; a run of the chain takes ``.zarr``
        too. The two may have different numbers of columns.
    labels : Path
        CSV file with the columns ``modality`` (sketch or image), ``row`` (from 0), ``label`` and
        optionally ``group`` and ``id``; one line for every row of both matrices.
    array : str, optional
        Name of the array in ``.npz`` files that hold several.
    """

    name: ClassVar[str] = "matrices"
    version: ClassVar[int] = 1
    has_pictures: ClassVar[bool] = False

    sketch_features: Path
    image_features: Path
    labels: Path
    array: str | None = None

    @property
    def licence(self) -> str:
        """A reminder: nothing is known about the user's features."""
        return "Features: licence unknown, provided by the user."

    def check(self) -> None:
        """Refuse matrices that are not there, and lines of labels that cannot be read."""
        for path in (Path(self.sketch_features), Path(self.image_features)):
            check_regular(path)
            if not path.exists():
                raise InputError(f"{path}: no such file, or a link to one that is gone")
        self._lines()

    def fetch(self, directory: Path) -> Path:
        """Copy both matrices as float32 ``.npy`` to a folder named by their contents.

        Raises
        ------
        InputError
            No readable two-dimensional real matrix, or rows with values that are not finite.
        """
        given: dict[Modality, Path] = {
            "sketch": Path(self.sketch_features),
            "image": Path(self.image_features),
        }
        for path in given.values():
            if path.suffix == ".zarr" or path.is_dir():
                raise InputError(
                    f"{path} is a folder: features are taken from .npy or .npz files; "
                    "save a Zarr array with numpy.save first"
                )
        digest = hashlib.sha256(repr((self.version, self.array)).encode())
        for path in given.values():
            digest.update(file_sha256(path).encode())
        target = Path(directory) / f"{self.name}-{digest.hexdigest()[:16]}"
        if target.is_dir():
            return target
        with made_whole(target) as partial:
            for modality, path in given.items():
                _copy_finite(_load(path, self.array), partial / f"{modality}.npy", path)
        return target

    def table(self, root: Path) -> SampleTable:
        """Return one row a matrix row, in matrix order; paths look like ``sketch.npy#17``.

        Raises
        ------
        InputError
            Lines of the CSV file are missing, repeated, or name rows that do not exist.
        """
        lines = self._lines()
        columns: dict[str, list[str]] = {c: [] for c in ("id", "sha256", "path", "label", "group")}
        modalities: list[Modality] = []
        for modality in MODALITIES:
            matrix = np.load(Path(root) / f"{modality}.npy", mmap_mode="r", allow_pickle=False)
            self._check_rows(modality, len(matrix), lines)
            for row in range(len(matrix)):
                line = lines[modality, row]
                sample = line.get("id") or f"{modality}/{row}"
                columns["id"].append(sample)
                columns["sha256"].append(hashlib.sha256(matrix[row].tobytes()).hexdigest())
                columns["path"].append(f"{modality}.npy#{row}")
                columns["label"].append(line["label"])
                columns["group"].append(line.get("group") or sample)
                modalities.append(modality)
        return SampleTable(
            ids=tuple(columns["id"]),
            sha256=tuple(columns["sha256"]),
            paths=tuple(columns["path"]),
            modality=tuple(modalities),
            labels=tuple(columns["label"]),
            groups=tuple(columns["group"]),
        )

    def findings(self, root: Path) -> list[str]:
        """Classes of one modality only, and rows that are all zero."""
        lines = self._lines()
        found = of_one_modality(
            "class", {(m, str(r)): line["label"] for (m, r), line in lines.items()}
        )
        for modality in MODALITIES:
            matrix = np.load(Path(root) / f"{modality}.npy", mmap_mode="r", allow_pickle=False)
            zero = [
                start + int(row)
                for start in range(0, len(matrix), _ROWS_A_BLOCK)
                for row in np.flatnonzero(~matrix[start : start + _ROWS_A_BLOCK].any(axis=1))
            ]
            if zero:
                found.append(
                    f"All zero: {counted(len(zero), 'row')} of the {modality} features, "
                    f"{_some(zero)}."
                )
        return found

    def _lines(self) -> dict[tuple[Modality, int], dict[str, str]]:
        path = Path(self.labels)
        check_regular(path)
        try:
            with path.open(encoding="utf-8-sig", newline="") as file:
                reader = csv.DictReader(file)
                columns = set(check_columns(reader.fieldnames, f"{path}, line 1"))
                lines = [(reader.line_num, line) for line in reader]
        except FileNotFoundError as error:
            raise InputError(f"labels: {path} does not exist") from error
        except UnicodeDecodeError as error:
            raise InputError(f"labels: {path} is not UTF-8 text ({error})") from error
        except csv.Error as error:
            raise InputError(f"labels: {path} is no CSV ({error})") from error
        if not {"modality", "row", "label"} <= columns:
            raise InputError(
                f"{path} has columns {sorted(columns)}; it needs modality, row, label[, group, id]"
            )
        rows: dict[tuple[Modality, int], dict[str, str]] = {}
        for number, line in lines:
            modality, text, label = line["modality"], line["row"] or "", line["label"]
            if modality not in MODALITIES or not text.isdecimal() or not label:
                raise InputError(
                    f"{path}, line {number}: modality {modality!r}, row {text!r}, label "
                    f"{label!r}; needed are sketch or image, a number from 0, and a label"
                )
            if (modality, int(text)) in rows:
                raise InputError(f"{path}, line {number}: {modality} row {text} occurs twice")
            rows[modality, int(text)] = line
        return rows

    def _check_rows(
        self, modality: Modality, n_rows: int, lines: dict[tuple[Modality, int], dict[str, str]]
    ) -> None:
        named = {row for m, row in lines if m == modality}
        missing = sorted(set(range(n_rows)) - named)
        if missing:
            raise InputError(
                f"{self.labels} has no line for {len(missing)} of {n_rows} {modality} rows: "
                f"{_some(missing)}"
            )
        beyond = sorted(row for row in named if row >= n_rows)
        if beyond:
            raise InputError(
                f"{self.labels} names {modality} rows {_some(beyond)}, but the matrix has "
                f"{n_rows} rows (0 to {n_rows - 1})"
            )


def _some(rows: list[int], most: int = 5) -> str:
    return ", ".join(map(str, rows[:most])) + (", ..." if len(rows) > most else "")


def _load(path: Path, array: str | None) -> NDArray[Any]:
    check_regular(path)
    try:
        loaded = np.load(path, mmap_mode="r", allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return loaded
        with loaded:
            names = list(loaded)
            if array is None and len(names) != 1:
                raise InputError(f"{path} holds the arrays {names}; name one of them with array")
            if array is not None and array not in names:
                raise InputError(f"{path} holds the arrays {names}, not {array!r}")
            matrix: NDArray[Any] = loaded[array or names[0]]
            return matrix
    except InputError:
        raise
    except (ValueError, EOFError, OSError) as error:
        raise InputError(f"{path}: no readable .npy or .npz file ({error})") from error


def _copy_finite(matrix: NDArray[Any], target: Path, source: Path) -> None:
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise InputError(
            f"{source} has shape {matrix.shape}; features are a matrix (samples, dimensions)"
        )
    if matrix.dtype.kind not in "fiub":
        raise InputError(f"{source} has dtype {matrix.dtype}; features are real numbers")
    copy = np.lib.format.open_memmap(target, mode="w+", dtype=np.float32, shape=matrix.shape)
    bad: list[int] = []
    for start in range(0, len(matrix), _ROWS_A_BLOCK):
        with np.errstate(over="ignore"):
            block = matrix[start : start + _ROWS_A_BLOCK].astype(np.float32)
        bad += (start + np.flatnonzero(~np.isfinite(block).all(axis=1))).tolist()
        copy[start : start + _ROWS_A_BLOCK] = block
    copy.flush()
    if bad:
        raise InputError(
            f"{source}: {counted(len(bad), 'row')} with values that are not finite (NaN or "
            f"infinite in float32): {_some(bad)}; remove or replace them"
        )
