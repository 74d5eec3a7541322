"""Train on one data set, ask on another: one sample table of both."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cppcl.datasets.files import made_whole
from cppcl.datasets.table import SampleTable
from cppcl.errors import InputError
from cppcl.modality import MODALITIES, Modality
from cppcl.validation import counted

Role = Literal["train_on", "test_on"]
ROLES: tuple[Role, Role] = ("train_on", "test_on")
"""What each of the two data sets is for; ids, groups and paths of its samples begin so."""

VERSION = 1
"""Raised whenever the table of two data sets changes."""


def joined_table(tables: Mapping[Role, SampleTable]) -> SampleTable:
    """Samples of both data sets, those that train first.

    Ids, groups and paths begin with the role of their data set, so that instances of the same
    name stay different ones. Labels are kept: the same name is the same class.

    Parameters
    ----------
    tables : dict of SampleTable
        By role.

    Raises
    ------
    InputError
        Both data sets hold the same pictures.
    """
    contents = {role: _contents(tables[role]) for role in ROLES}
    if contents["train_on"] == contents["test_on"]:
        raise InputError(
            "train_on and test_on hold the same pictures, so that nothing new would be asked; "
            "give another data set, or divide one with another experiment, such as 'folder'"
        )

    def prefixed(column: str) -> tuple[str, ...]:
        return tuple(
            f"{role}/{value}" for role in ROLES for value in getattr(tables[role], column)
        )

    first, second = (tables[role] for role in ROLES)
    return SampleTable(
        ids=prefixed("ids"),
        sha256=first.sha256 + second.sha256,
        paths=prefixed("paths"),
        modality=first.modality + second.modality,
        labels=first.labels + second.labels,
        groups=prefixed("groups"),
        titles=tuple(table.title(row) for table in (first, second) for row in range(len(table))),
    )


def joined_findings(tables: Mapping[Role, SampleTable]) -> list[str]:
    """Sentences on pictures that both have, and on test classes that training does not have."""
    found = []
    contents = {role: _contents(tables[role]) for role in ROLES}
    for modality in MODALITIES:
        n = len(contents["test_on"][modality])
        if shared := len(contents["train_on"][modality] & contents["test_on"][modality]):
            found.append(
                f"{shared} of {counted(n, modality)} of test_on are in train_on, too; a split "
                "gives each to training or to the test."
            )
    trained, asked = (set(tables[role].labels) for role in ROLES)
    # Where every instance has a label of its own, labels are names of instances.
    if len(asked) < len(set(tables["test_on"].groups)) and (unseen := sorted(asked - trained)):
        shown = ", ".join(map(repr, unseen[:5]))
        more = f" and {len(unseen) - 5} more" if len(unseen) > 5 else ""
        found.append(
            f"{len(unseen)} of {len(asked)} classes of test_on are not in train_on, so that "
            f"training never sees them: {shown}{more}."
        )
    return found


def joined_folder(roots: Mapping[Role, Path], directory: Path) -> Path:
    """Folder below `directory` with a symbolic link to the root of each data set.

    Paths of `joined_table` are relative to it, wherever the two lie.
    """
    places = {role: str(roots[role].absolute()) for role in ROLES}
    digest = hashlib.sha256("\0".join(places.values()).encode()).hexdigest()[:16]
    target = directory.absolute() / f"transfer-{digest}"
    if not target.is_dir():
        with made_whole(target) as partial:
            for role, place in places.items():
                (partial / role).symlink_to(place, target_is_directory=True)
    return target


def role_of(name: str) -> Role | None:
    """Role that an id or group begins with; None if it is of a data set alone."""
    return next((role for role in ROLES if name.startswith(f"{role}/")), None)


def answering(table: SampleTable) -> NDArray[np.bool_]:
    """Which images a search may answer with, (n,): of two data sets those that are asked."""
    roles = [role_of(name) for name in table.column("ids", "image")]
    return np.array([role != "train_on" for role in roles], dtype=bool)


def _contents(table: SampleTable) -> dict[Modality, set[str]]:
    return {modality: set(table.column("sha256", modality)) for modality in MODALITIES}
