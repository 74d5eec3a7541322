"""Data sets that were published elsewhere, and what they have in common."""
