"""Names of files and labels as a terminal may show them: nothing in them is a command to it."""

from __future__ import annotations

import re
from typing import Any

# Control characters but for line feed and tab, and marks that turn the direction of writing.
_COMMANDS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def escaped(text: str) -> str:
    r"""Text with an escape, such as ``\x1b``, in place of every command to a terminal."""
    return _COMMANDS.sub(lambda found: repr(found.group())[1:-1], text)


class EscapedStream:
    """A text stream to a terminal, to which `escaped` texts are written.

    Parameters
    ----------
    stream : text file
        What it writes to; everything else is that stream's own.
    """

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write a text; returns the number of its characters."""
        self.stream.write(escaped(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        """Attribute of the stream."""
        return getattr(self.stream, name)
