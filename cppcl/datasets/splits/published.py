"""Splits as text files that name their samples, and the ones that come with the library."""

from __future__ import annotations

import json
from dataclasses import fields
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.datasets.splits.seeded import Split
from cppcl.datasets.table import SampleTable
from cppcl.errors import InputError
from cppcl.modality import Modality
from cppcl.regular_files import read_text

_FORMAT = 1
_PARTS: dict[str, Modality] = {
    "train_sketches": "sketch",
    "train_images": "image",
    "test_sketches": "sketch",
    "test_images": "image",
}


def split_to_text(split: Split, table: SampleTable, *, rule: str, seed: int) -> str:
    """JSON text that names the samples of a split, for publication.

    Parameters
    ----------
    split : Split
        Rows of `table`.
    table : SampleTable
        The samples; its digest is written too.
    rule : str
        How the split was made, in words or as a call.
    seed : int
        Seed of the rule.
    """
    document: dict[str, Any] = {
        "format": _FORMAT,
        "rule": rule,
        "seed": seed,
        "table_digest": table.digest(),
    }
    for field in fields(split):
        ids = table.column("ids", _PARTS[field.name])
        document[field.name] = [ids[row] for row in getattr(split, field.name)]
    return json.dumps(document, indent=0, ensure_ascii=False) + "\n"


def split_from_text(text: str, table: SampleTable, *, exact: bool = True) -> Split:
    """Inverse of `split_to_text`.

    Instead of ids, a part may hold the word ``rest``: all samples of its modality that the other
    part does not name; training leaves out those with the content of a test sample, too. A name
    that ends with ``/*`` stands for all ids that begin with what is before the star.

    Parameters
    ----------
    text : str
        JSON text.
    table : SampleTable
        The samples to find by their ids.
    exact : bool
        True if the whole table must equal the one of the split; otherwise the ids suffice.

    Raises
    ------
    InputError
        The text is no split; it has ids that the table does not have, or samples in both training
        and test; or it belongs to another table.
    """
    try:
        document = json.loads(text)
    except ValueError as error:
        raise InputError(f"a split file is JSON; this is not ({error})") from error
    wanted = {"format", "table_digest", *_PARTS}
    if not isinstance(document, dict) or not wanted <= document.keys():
        raise InputError(f"a split file has the keys {sorted(wanted)}; some are missing")
    if document["format"] != _FORMAT:
        raise InputError(f"split file has format {document['format']}; known is {_FORMAT}")
    rows: dict[str, NDArray[np.int64]] = {}
    for part, modality in _PARTS.items():
        if document[part] != "rest":
            rows[part] = _rows_of_ids(document[part], table, part, modality)
    for part, modality in _PARTS.items():
        if document[part] == "rest":
            rows[part] = _rest(table, modality, part, rows)
    for kind in ("sketches", "images"):
        chosen = np.concatenate([rows[f"train_{kind}"], rows[f"test_{kind}"]])
        if len(np.unique(chosen)) != len(chosen):
            raise InputError(f"the split names some {kind} twice")
    if exact and document["table_digest"] != table.digest():
        raise InputError(
            "the split was made for another version of the table (its ids are all here, but "
            "files, labels or groups differ); exact=False uses the ids alone"
        )
    return Split(**rows)


def _rows_of_ids(
    names: list[str], table: SampleTable, part: str, modality: Modality
) -> NDArray[np.int64]:
    ids = table.column("ids", modality)
    numbers = {name: row for row, name in enumerate(ids)}
    names = [found for name in names for found in _named(name, ids)]
    missing = [name for name in names if name not in numbers]
    if missing:
        shown = ", ".join(missing[:5]) + (", ..." if len(missing) > 5 else "")
        raise InputError(
            f"{len(missing)} of {len(names)} samples of {part} are not among the "
            f"{modality} samples of the table: {shown}"
        )
    return np.array(sorted(numbers[name] for name in names), dtype=np.int64)


def _named(name: str, ids: list[str]) -> list[str]:
    """Ids that a name stands for: itself, or those below a folder; itself where there are none."""
    below = [i for i in ids if i.startswith(name[:-1])] if name.endswith("/*") else []
    return below or [name]


def _rest(
    table: SampleTable, modality: Modality, part: str, rows: dict[str, NDArray[np.int64]]
) -> NDArray[np.int64]:
    side, _, kind = part.partition("_")
    other = "test" if side == "train" else "train"
    if f"{other}_{kind}" not in rows:
        raise InputError(f"{part} and {other}_{kind} are both the rest; one must name its samples")
    named = rows[f"{other}_{kind}"]
    content = table.column("sha256", modality)
    seen = {content[row] for row in named} if side == "train" else set()
    rest = np.setdiff1d(np.arange(len(content), dtype=np.int64), named)
    return rest[[content[row] not in seen for row in rest]]


def published_names() -> list[str]:
    """Names of the splits that come with the library, such as ``emoji-instance-0``."""
    folder = files("cppcl.datasets.splits")
    return sorted(
        f.name.removesuffix(".json") for f in folder.iterdir() if f.name.endswith(".json")
    )


def published_text(name: str) -> str:
    """Text of a published split."""
    if name not in published_names():
        raise InputError(f"no published split {name!r}; there are {', '.join(published_names())}")
    return (files("cppcl.datasets.splits") / f"{name}.json").read_text(encoding="utf-8")


def published_split(name: str, table: SampleTable, *, exact: bool = True) -> Split:
    """Return a published split, checked against the table."""
    return split_from_text(published_text(name), table, exact=exact)


def split_text(path: str, seed: int) -> str:
    """Text of a split file.

    Parameters
    ----------
    path : str
        A JSON file, or the name of a split that comes with the library; ``{seed}`` in it stands
        for the seed.
    seed : int
        What is put there.

    Raises
    ------
    InputError
        There is no such file or name.
    """
    name = path.replace("{seed}", str(seed))
    if not name.endswith(".json"):
        return published_text(name)
    try:
        return read_text(Path(name))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"split file {name!r} cannot be read ({error})") from error


def named_split(table: SampleTable, *, seed: int, path: str) -> Split:
    """Return the split of a file, or one that comes with the library, found by sample ids."""
    return split_from_text(split_text(path, seed), table, exact=False)
