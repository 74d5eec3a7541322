"""Wrong pairs and wrong labels among training samples, by seed; the truth stays known."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

import numpy as np
from numpy.typing import NDArray

from cppcl.datasets.splits.seeded import Split
from cppcl.datasets.table import SampleTable
from cppcl.errors import InputError
from cppcl.modality import MODALITIES

Rows = NDArray[np.int64]


def noisy_targets(
    table: SampleTable,
    split: Split,
    *,
    seed: int,
    wrong_labels: float = 0.0,
    wrong_pairs: float = 0.0,
    near_pairs: float = 0.0,
) -> dict[str, Rows]:
    """Whose label, or whose group, each training sample of a split is said to have.

    Test samples keep theirs.

    Parameters
    ----------
    table : SampleTable
        The samples.
    split : Split
        Which of them train.
    seed : int
        Of the draws.
    wrong_labels : float, default 0
        Share of the training samples of each modality whose label is another one, drawn from
        those that train in this modality, all alike.
    wrong_pairs : float, default 0
        Share of the training images that have changed their groups with each other.
    near_pairs : float, default 0
        The same where names mislead: images exchange their groups two by two, each of a random
        order with the one whose title (the name of its group, if there are no titles) is the
        most similar by `difflib.SequenceMatcher`. Rounded to whole exchanges. Not together with
        ``wrong_pairs``.

    Returns
    -------
    dict of str to (n,) int64 array
        ``sketch_labels``, ``image_labels`` and ``image_groups``, those that change: for each
        training row of the modality, the row of the modality whose label or group it is given.

    Raises
    ------
    InputError
        If there are not two labels, or not two groups, to change, or both kinds of wrong pairs
        are asked for.
    """
    if wrong_pairs and near_pairs:
        raise InputError(
            f"wrong_pairs={wrong_pairs} and near_pairs={near_pairs}: pairs are made wrong in one "
            "way; set one of them to 0"
        )
    found: dict[str, Rows] = {}
    if wrong_labels:
        for number, modality in enumerate(MODALITIES):
            rows = split.train_sketches if modality == "sketch" else split.train_images
            rng = np.random.default_rng([seed, 1, number])
            names = table.column("labels", modality)
            found[f"{modality}_labels"] = _relabelled(names, rows, wrong_labels, rng)
    if wrong_pairs:
        rng = np.random.default_rng([seed, 2])
        names = table.column("groups", "image")
        found["image_groups"] = _exchanged(names, split.train_images, wrong_pairs, rng)
    if near_pairs:
        rng = np.random.default_rng([seed, 3])
        groups = table.column("groups", "image")
        names = table.column("titles", "image") if table.titles else groups
        found["image_groups"] = _confused(names, groups, split.train_images, near_pairs, rng)
    return found


def _relabelled(names: Sequence[str], rows: Rows, share: float, rng: np.random.Generator) -> Rows:
    """Rows of another label for a share of these rows."""
    known, first, labels = np.unique(
        np.array(names, dtype=str)[rows], return_index=True, return_inverse=True
    )
    if len(known) < 2:
        raise InputError(f"wrong_labels={share}: training samples have {len(known)} label")
    wrong = rng.permutation(len(rows))[: round(share * len(rows))]
    other = (labels[wrong] + rng.integers(1, len(known), len(wrong))) % len(known)
    given = rows.copy()
    given[wrong] = rows[first[other]]
    return given


def _exchanged(names: Sequence[str], rows: Rows, share: float, rng: np.random.Generator) -> Rows:
    """Rows whose groups a share of these rows have exchanged; nobody keeps its own."""
    groups = np.array(names, dtype=str)[rows]
    wrong = rng.permutation(len(rows))[: round(share * len(rows))]
    known, numbers = np.unique(groups[wrong], return_inverse=True)
    if not len(wrong):
        return rows.copy()
    # In the order of shuffled groups, one that is a group's size away is of another group.
    order = wrong[np.argsort(rng.permutation(len(known))[numbers], kind="stable")]
    step = int(np.bincount(numbers).max())
    if 2 * step > len(wrong):
        raise InputError(
            f"wrong_pairs={share}: {len(wrong)} training images are to exchange their groups, "
            f"but {step} of them are of one group; use a larger share"
        )
    given = rows.copy()
    given[order] = rows[np.roll(order, step)]
    return given


def _confused(
    names: Sequence[str],
    groups: Sequence[str],
    rows: Rows,
    share: float,
    rng: np.random.Generator,
) -> Rows:
    """Rows whose groups images of similar names have exchanged."""
    given = rows.copy()
    free = rng.permutation(len(rows)).tolist()
    for _ in range(round(share * len(rows) / 2)):
        one = free.pop()
        matcher = SequenceMatcher(b=names[rows[one]], autojunk=False)

        def similarity(other: int, matcher: SequenceMatcher[str] = matcher) -> float:
            matcher.set_seq1(names[rows[other]])
            return matcher.ratio()

        others = [k for k in free if groups[rows[k]] != groups[rows[one]]]
        if not others:
            raise InputError(
                f"near_pairs={share}: training images left to exchange are all of the group "
                f"{groups[rows[one]]!r}; use a smaller share"
            )
        two = max(others, key=similarity)
        free.remove(two)
        given[one], given[two] = rows[two], rows[one]
    return given
