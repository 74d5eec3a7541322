"""Partial curricula: which samples the learner should take up before which others."""

from cppcl.curriculum.base import Curriculum
from cppcl.curriculum.orders import AllPairs, ChainedPairs
from cppcl.curriculum.pairs import ExplicitPairs
from cppcl.curriculum.scores import pairs_from_scores
from cppcl.curriculum.semiorder import Semiorder, order_by_scores
from cppcl.curriculum.union import Union

__all__ = [
    "AllPairs",
    "ChainedPairs",
    "Curriculum",
    "ExplicitPairs",
    "Semiorder",
    "Union",
    "order_by_scores",
    "pairs_from_scores",
]
