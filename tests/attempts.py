"""How often tests try something: once a test, unless it says otherwise or Hypothesis draws."""

from __future__ import annotations

_tried = 0


def tried(times: int = 1) -> None:
    """Note attempts of the test that runs."""
    global _tried
    _tried += times


def taken() -> int:
    """Attempts that were noted since this was asked last."""
    global _tried
    found, _tried = _tried, 0
    return found
