"""Pairs or labels in the order in which they are suspected of being wrong."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cppcl.learning.agreement import Agreement


@dataclass(frozen=True)
class Suspect:
    """A pair, or the label of one sample.

    Attributes
    ----------
    sketch, image : int or None
        Rows of its samples among those that were judged; a label has one of the two.
    given : str
        The group of a pair, or the label.
    suggested : str
        Label that the sample more likely has; empty where that is the given one, and of a pair.
    score : float
        Of the agreement out of fold, higher where more likely right.
    probability_wrong : float
        In [0, 1].
    """

    sketch: int | None
    image: int | None
    given: str
    suggested: str
    score: float
    probability_wrong: float


def suspects_of(
    found: Agreement, sketch_targets: Sequence[str], image_targets: Sequence[str]
) -> list[Suspect]:
    """Everything that was judged, the most suspect first.

    Parameters
    ----------
    found : Agreement
        Of n_s sketches and n_i images.
    sketch_targets, image_targets : sequences of n_s and n_i str
        Groups, or labels, that were judged.

    Returns
    -------
    list of Suspect
        By falling probability, then rising score. Of a group with several sketches and one image,
        or the reverse, every one of the several is a suspect, beside the one.
    """
    judge = pairs_of if found.kind == "pairs" else labels_of
    suspects = judge(found, sketch_targets, image_targets)
    return sorted(suspects, key=lambda one: (-one.probability_wrong, one.score))


def pairs_of(
    found: Agreement, sketch_targets: Sequence[str], image_targets: Sequence[str]
) -> list[Suspect]:
    """Pairs in the order of their groups; samples without a partner are left out."""
    images: dict[str, list[int]] = defaultdict(list)
    sketches: dict[str, list[int]] = defaultdict(list)
    for of_modality, targets in ((sketches, sketch_targets), (images, image_targets)):
        for row, target in enumerate(targets):
            of_modality[target].append(row)
    suspects = []
    for target in sorted(sketches.keys() & images.keys()):
        mine, theirs = sketches[target], images[target]
        several_sketches = len(mine) >= len(theirs)
        scores = found.sketch if several_sketches else found.image
        right = found.sketch_probability if several_sketches else found.image_probability
        for row in mine if several_sketches else theirs:
            if np.isnan(scores[row]):
                continue
            pair = (row, theirs[0]) if several_sketches else (mine[0], row)
            suspects.append(Suspect(*pair, target, "", float(scores[row]), 1 - float(right[row])))
    return suspects


def labels_of(
    found: Agreement, sketch_targets: Sequence[str], image_targets: Sequence[str]
) -> list[Suspect]:
    """Labels of sketches, then of images."""
    suspects = []
    sides = (
        (sketch_targets, found.sketch, found.sketch_probability, found.sketch_likeliest),
        (image_targets, found.image, found.image_probability, found.image_likeliest),
    )
    for is_image, (targets, scores, right, likeliest) in enumerate(sides):
        for row, (given, score) in enumerate(zip(targets, scores.tolist(), strict=True)):
            sketch, image = (None, row) if is_image else (row, None)
            suggested = str(likeliest[row])
            suspects.append(
                Suspect(
                    sketch,
                    image,
                    given,
                    "" if suggested == given else suggested,
                    score,
                    1 - float(right[row]),
                )
            )
    return suspects
