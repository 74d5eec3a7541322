"""The part of a report on pacing."""
