"""What an SVG holds that is not drawn, as an error."""

from __future__ import annotations


class NotDrawnError(ValueError):
    """An SVG cannot be drawn, or not as it is meant; the message says what is at fault."""
