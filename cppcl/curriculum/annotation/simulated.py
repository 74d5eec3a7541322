"""A simulated annotator, for sets of sketches that nobody has annotated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cppcl.curriculum.annotation.answers import PairAnswer
from cppcl.curriculum.annotation.questions import classes_to_ask_within, nearest_pairs
from cppcl.errors import InputError

ANNOTATOR = {"features": "hog", "detail": "stroke_length"}
"""Extractors that the annotator needs of sketches, by what it needs them for."""
BAND = 0.1
"""Standard deviations of detail within which two sketches are too alike to be told apart."""


def simulated_answers(
    detail: NDArray[Any],
    features: NDArray[np.floating],
    labels: NDArray[Any] | Sequence[Any],
    ids: Sequence[str],
    *,
    seed: int = 0,
) -> list[PairAnswer]:
    """Answers that people might have given: the sketch with more detail is the easier one.

    The pairs are those that people were asked about in Section 4 of the paper: each sketch with
    its nearest of the same class. The paper's annotators had seen sketches of more details called
    easier; they could skip a pair, as is done here where details differ by less than a tenth of
    their standard deviation. That people would answer so is an assumption of ours, which no
    annotation was at hand to test.

    Parameters
    ----------
    detail : array_like, (n,)
        Of each sample, such as `cppcl.features.scores.stroke_length.StrokeLength`; NaN where it is
        not known, and nothing is asked about the sample.
    features : (n, m) array
        By which the nearest are found.
    labels : array_like, (n,)
        Class of each sample.
    ids : sequence of str
        Name of each sample.
    seed : int
        Of the order of pairs, see `cppcl.curriculum.annotation.questions.nearest_pairs`.

    Raises
    ------
    InputError
        If lengths differ.
    """
    values = np.asarray(detail, dtype=np.float64)
    if not len(values) == len(features) == len(labels) == len(ids):
        raise InputError(
            f"detail, features, labels and ids have {len(values)}, {len(features)}, {len(labels)} "
            f"and {len(ids)} entries; give one of each a sample"
        )
    known = ~np.isnan(values)
    if not known.any():
        return []
    features = np.where(known[:, None], features, 0)
    band = BAND * values[known].std()
    answers = []
    for a, b in nearest_pairs(features, classes_to_ask_within(labels), seed=seed).tolist():
        more = values[a] - values[b]
        easier: Any = "skip" if abs(more) <= band else "a" if more > 0 else "b"
        answers.append(PairAnswer(ids[a], ids[b], easier))
    return answers
