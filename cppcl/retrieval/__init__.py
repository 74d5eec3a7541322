"""Ranking, galleries, scores of rankings and their comparison."""
