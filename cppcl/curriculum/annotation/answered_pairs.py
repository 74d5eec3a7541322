"""Ordered pairs from people's answers, and how far automatic scores agree with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cppcl.curriculum.annotation.answers import PairAnswer
from cppcl.curriculum.pairs import ExplicitPairs
from cppcl.errors import InputError


@dataclass(frozen=True)
class AnsweredPairs:
    """Pairs from the answers about one modality, and counts of the answers.

    Attributes
    ----------
    pairs : ExplicitPairs
        (harder, easier) in the order of the answers; a pair counts as often as it was answered.
    n_answers : int
        Answers in the table.
    n_skipped : int
        Skips.
    n_foreign : int
        Answers about other samples.
    n_contradicted : int
        Pairs that were answered in both directions.
    n_in_cycles : int
        Pairs that lie on a cycle (a contradiction is the shortest one). They are kept, since the
        pacing step has a slack for each.
    """

    pairs: ExplicitPairs
    n_answers: int
    n_skipped: int
    n_foreign: int
    n_contradicted: int
    n_in_cycles: int

    def counts(self) -> dict[str, int]:
        """Return the counts, with the number of pairs, by name."""
        return {
            "pairs": len(self.pairs),
            "answers": self.n_answers,
            "skipped": self.n_skipped,
            "of other samples": self.n_foreign,
            "contradicted": self.n_contradicted,
            "in cycles": self.n_in_cycles,
        }


def pairs_from_answers(
    answers: Sequence[PairAnswer], ids: Sequence[str], *, share: float = 1.0, seed: int = 0
) -> AnsweredPairs:
    """Ordered pairs of the samples of one modality that people decided.

    Parameters
    ----------
    answers : sequence of PairAnswer
        In the order in which pairs are listed.
    ids : sequence of str
        Id of each of the n samples; answers about others are counted and left out.
    share : float
        Share of the decided pairs to keep, drawn at random, in [0, 1].
    seed : int
        Of the draw.

    Raises
    ------
    InputError
        For a share out of range.
    """
    if not 0 <= share <= 1:
        raise InputError(f"answer_share={share} must be a share in [0, 1]")
    row_of = {name: row for row, name in enumerate(ids)}
    decided = [answer for answer in answers if answer.easier != "skip"]
    found = []
    for answer in decided:
        a, b = row_of.get(answer.sample_a), row_of.get(answer.sample_b)
        if a is not None and b is not None:
            found.append((b, a) if answer.easier == "a" else (a, b))
    listed = np.array(found, dtype=np.int64).reshape(-1, 2)
    draw = np.random.default_rng(seed).choice(
        len(listed), round(share * len(listed)), replace=False, shuffle=False
    )
    pairs = listed[np.sort(draw)]
    directions = {(int(harder), int(easier)) for harder, easier in pairs}
    return AnsweredPairs(
        ExplicitPairs(pairs, len(ids)),
        n_answers=len(answers),
        n_skipped=len(answers) - len(decided),
        n_foreign=len(decided) - len(listed),
        n_contradicted=sum((e, h) in directions for h, e in directions) // 2,
        n_in_cycles=count_in_cycles(pairs, len(ids)),
    )


def count_in_cycles(pairs: NDArray[np.int64], n_samples: int) -> int:
    """Count the pairs (harder, easier) that lie on a cycle, and so cannot all be satisfied."""
    from scipy import sparse

    if not len(pairs):
        return 0
    links = (np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1]))
    graph = sparse.coo_array(links, shape=(n_samples, n_samples)).tocsr()
    # Two samples lie on a cycle if and only if each is reached from the other.
    _, component = sparse.csgraph.connected_components(graph, connection="strong")
    return int((component[pairs[:, 0]] == component[pairs[:, 1]]).sum())


@dataclass(frozen=True)
class PairAgreement:
    """PairAgreement of scores with answered pairs.

    Attributes
    ----------
    n_pairs : int
        Answered pairs of which both samples have a score.
    kendall : float
        Kendall's tau over these pairs: those that scores order alike, less those that they order
        the other way, over all; a tie counts for neither. NaN without pairs.
    spearman : float
        Spearman's correlation of the scores with the share of its answers in which each sample
        was the easier one. NaN where either does not vary.
    n_samples : int
        Samples with an answer and a score.
    """

    n_pairs: int
    kendall: float
    spearman: float
    n_samples: int


def agreement(scores: NDArray[np.floating], answered: ExplicitPairs) -> PairAgreement:
    """Compare scores (n,), NaN where there is none, with answered pairs (harder, easier)."""
    from scipy.stats import spearmanr

    values = np.asarray(scores, dtype=np.float64)
    pairs = answered.pairs[~np.isnan(values[answered.pairs]).any(axis=1)]
    differences = values[pairs[:, 1]] - values[pairs[:, 0]]
    kendall = float(np.sign(differences).mean()) if len(pairs) else float("nan")
    easier = np.bincount(pairs[:, 1], minlength=len(values))
    asked = np.bincount(pairs.ravel(), minlength=len(values))
    known = np.flatnonzero(asked)
    shares, of_known = easier[known] / asked[known], values[known]
    varies = len(known) > 1 and np.ptp(shares) > 0 and np.ptp(of_known) > 0
    spearman = float(spearmanr(of_known, shares).statistic) if varies else float("nan")
    return PairAgreement(len(pairs), kendall, spearman, len(known))
