"""Scores of easiness for curricula."""
