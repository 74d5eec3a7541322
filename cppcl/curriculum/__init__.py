"""Partial curricula: which samples the learner should take up before which others."""

from cppcl.curriculum.base import Curriculum
from cppcl.curriculum.pairs import ExplicitPairs
from cppcl.curriculum.scores import pairs_from_scores

__all__ = ["Curriculum", "ExplicitPairs", "pairs_from_scores"]
