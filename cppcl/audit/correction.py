"""Training samples as people judged them: wrong ones left out, or with another label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cppcl.audit.verdicts import Verdict, wrong_items
from cppcl.datasets.splits import Split
from cppcl.datasets.table import SampleTable
from cppcl.modality import MODALITIES, Modality

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Corrected:
    """A split after an audit.

    Attributes
    ----------
    split : Split
        Without what is left out of training; the test is as it was.
    given : dict of str to (n,) int64 array
        What training samples are said to be, as of `cppcl.datasets.splits.noise.noisy_targets`.
    n_left_out, n_relabelled : int
        Training samples.
    n_aside : int
        Wrong pairs or labels of verdicts that training does not have.
    """

    split: Split
    given: dict[str, Rows]
    n_left_out: int
    n_relabelled: int
    n_aside: int


def corrected(
    split: Split,
    table: SampleTable,
    verdicts: Sequence[Verdict],
    *,
    target: Literal["groups", "labels"],
    given: Mapping[str, Rows] | None = None,
) -> Corrected:
    """Leave out of training what more people call wrong than right, or give it the right label.

    Where training goes by labels, a sample with a wrong label gets the one that most people name,
    and is left out if they name none that the table has. Where it goes by groups, both samples of
    a wrong pair are left out, but of a group with several sketches, or several images, that one of
    the several alone. Verdicts on another label or group than training has are left aside.

    Parameters
    ----------
    split : Split
        Rows of the table.
    table : SampleTable
        Samples.
    verdicts : sequence of Verdict
        Of any number of people.
    target : {'groups', 'labels'}
        What training goes by.
    given : mapping, optional
        Rows whose label or group training rows are said to have, where they are not their own.
    """
    said = dict(given or {})
    sides = {m: _Side(table, m, target, rows, said) for m, rows in _training(split).items()}
    wrong = wrong_items(verdicts)
    n_aside = 0
    for (sketch, image, name), label in wrong.items():
        named = {"sketch": sketch, "image": image}
        mine = [sides[m] for m in MODALITIES if named[m]]
        is_pair = len(mine) == 2
        there = all(side.given.get(named[side.modality]) == name for side in mine)
        if is_pair != (target == "groups") or not there:
            n_aside += 1
        elif is_pair:
            several = next((side for side in mine if side.sizes[name] > 1), None)
            for side in mine if several is None else [several]:
                side.left_out.add(named[side.modality])
        else:
            mine[0].name(named[mine[0].modality], label)
    rows = {m: side.kept_rows() for m, side in sides.items()}
    said = {key: values[sides[_modality_of(key)].is_kept()] for key, values in said.items()}
    for modality, side in sides.items():
        if side.relabelled:
            said[f"{modality}_labels"] = side.rows_of_labels()
    return Corrected(
        replace(split, train_sketches=rows["sketch"], train_images=rows["image"]),
        said,
        sum(len(side.left_out) for side in sides.values()),
        sum(len(side.relabelled) for side in sides.values()),
        n_aside,
    )


class _Side:
    """Training samples of one modality, and what becomes of them."""

    def __init__(
        self,
        table: SampleTable,
        modality: Modality,
        target: str,
        rows: Rows,
        said: Mapping[str, Rows],
    ) -> None:
        self.modality = modality
        self.rows = rows
        self.whose = said.get(f"{modality}_{target}", rows)
        self.names = table.column(target, modality)
        ids = table.column("ids", modality)
        self.ids = [ids[row] for row in rows.tolist()]
        targets = [self.names[row] for row in self.whose.tolist()]
        self.given = dict(zip(self.ids, targets, strict=True))
        self.sizes = Counter(targets)
        self.left_out: set[str] = set()
        self.relabelled: dict[str, int] = {}

    def name(self, sample: str, label: str) -> None:
        """Give a sample another label, or leave it out where the table has none of that name."""
        if label in self.names:
            self.relabelled[sample] = self.names.index(label)
        else:
            self.left_out.add(sample)

    def is_kept(self) -> NDArray[np.bool_]:
        """Which training rows stay."""
        return np.array([name not in self.left_out for name in self.ids], dtype=bool)

    def kept_rows(self) -> Rows:
        """Training rows that stay."""
        return self.rows[self.is_kept()]

    def rows_of_labels(self) -> Rows:
        """Of each that stays, the row whose label it has."""
        rows = zip(self.ids, self.whose.tolist(), strict=True)
        found = [self.relabelled.get(name, row) for name, row in rows]
        return np.array(found, dtype=np.int64)[self.is_kept()]


def _training(split: Split) -> dict[Modality, Rows]:
    return {"sketch": split.train_sketches, "image": split.train_images}


def _modality_of(key: str) -> Modality:
    return "sketch" if key.startswith("sketch_") else "image"
