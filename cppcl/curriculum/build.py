"""A curriculum of one modality from scores, from people's answers, or from both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from numpy.typing import NDArray

from cppcl.curriculum.annotation.answered_pairs import AnsweredPairs
from cppcl.curriculum.base import Curriculum
from cppcl.curriculum.orders import AllPairs, ChainedPairs
from cppcl.curriculum.scores import draw_pairs, hash_pairs
from cppcl.curriculum.semiorder import DeltaUnit, Scope, order_by_scores
from cppcl.curriculum.union import joined
from cppcl.errors import InputError
from cppcl.validation import check_choice, check_number

Source = Literal["scores", "answers", "both"]
"""Where pairs come from."""

PairForm = Literal["sampled", "hashed", "all", "chain"]
"""What becomes of the pairs that scores admit."""


@dataclass(frozen=True)
class Built:
    """A curriculum, and how many pairs scores admitted for it."""

    curriculum: Curriculum
    n_admissible: int


def build_curriculum(
    scores: NDArray[Any],
    labels: NDArray[Any] | Sequence[Any],
    answered: AnsweredPairs | None = None,
    *,
    ids: Sequence[str] | None = None,
    source: Source = "scores",
    pair_form: PairForm = "sampled",
    delta: float = 0.5,
    delta_unit: DeltaUnit = "deviation",
    rho: float = 0.3,
    scope: Scope = "auto",
    maximum_pairs: int | None = 100_000,
    seed: int = 0,
) -> Built:
    """Build the curriculum of one modality.

    Parameters
    ----------
    scores : array_like, (n,)
        Easiness of each sample, NaN where there is none.
    labels : array_like, (n,)
        Class of each sample.
    answered : AnsweredPairs, optional
        Of the same samples; needed unless the source is 'scores'.
    ids : sequence of str, optional
        Name of each sample that lasts; needed for 'hashed'.
    source : {'scores', 'answers', 'both'}
        Where pairs come from. Pairs that contradict each other are kept.
    pair_form : {'sampled', 'hashed', 'all', 'chain'}
        What becomes of the pairs that scores admit: a random sample of them is listed
        (`cppcl.curriculum.scores.draw_pairs`), or one by their names, which stays when samples
        are added (`cppcl.curriculum.scores.hash_pairs`); or all count, without being listed
        (`cppcl.curriculum.AllPairs`); or the worst violation of each sample does
        (`cppcl.curriculum.ChainedPairs`).
    delta, delta_unit, scope
        Which pairs scores admit, see `cppcl.curriculum.semiorder.order_by_scores`.
    rho, maximum_pairs, seed
        Of the samples, see `cppcl.curriculum.scores`.

    Raises
    ------
    InputError
        For an option out of range, or a source of answers without any.
    """
    check_choice("source", source, Source)
    check_choice("pair_form", pair_form, PairForm)
    check_number("rho", rho, least=0, most=1)
    if source != "scores" and answered is None:
        raise InputError(f"source={source!r} needs answers; give some, or use source='scores'")
    admissible = order_by_scores(scores, labels, delta=delta, delta_unit=delta_unit, scope=scope)
    parts: list[Curriculum] = []
    if source != "answers":
        size: dict[str, Any] = {"rho": rho, "maximum_pairs": maximum_pairs, "seed": seed}
        if pair_form == "sampled":
            parts.append(draw_pairs(admissible, **size))
        elif pair_form == "hashed":
            if ids is None:
                raise InputError("pair_form='hashed' needs ids, the names of the samples")
            parts.append(hash_pairs(admissible, ids, **size))
        else:
            parts.append((AllPairs if pair_form == "all" else ChainedPairs)(admissible))
    if source != "scores" and answered is not None:
        parts.append(answered.pairs)
    return Built(joined(parts), admissible.n_pairs)
