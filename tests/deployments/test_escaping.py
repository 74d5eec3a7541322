"""What names may do to a terminal, and what becomes of a reader that has enough."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest

from deployments.cli import main
from deployments.escaping import EscapedStream, escaped
from deployments.server import last_words
from deployments.terminal import Terminal

ROOT = Path(__file__).parents[2]
NAME = "a\x1b]0;title\x07\x9b2J\u202e\r.png"
SHOWN = "a\\x1b]0;title\\x07\\x9b2J\\u202e\\r.png"


def test_commands_to_a_terminal_are_escaped_and_nothing_else_is():
    assert escaped(NAME) == SHOWN
    assert escaped("Übung\t– 猫\n") == "Übung\t– 猫\n"
    stream = io.StringIO()
    print(NAME, file=EscapedStream(stream))
    assert stream.getvalue() == SHOWN + "\n"
    assert EscapedStream(stream).isatty() is False


def test_messages_and_tables_escape_names():
    stream = io.StringIO()
    terminal = Terminal(EscapedStream(stream))
    terminal.message(NAME)
    terminal.table(NAME, [NAME], [[NAME]])
    assert stream.getvalue().count(SHOWN) == 4
    assert not set(stream.getvalue()) & set("\x1b\x07\x9b\u202e\r")


def test_errors_escape_names(capsys, tmp_path):
    assert main(["run", "\x1b[31mred.yaml", "--workspace", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "\\x1b[31mred" in said
    assert "\x1b" not in said


@pytest.mark.parametrize("command", [["stages"], ["options", "emoji"]])
def test_a_reader_that_has_enough_ends_a_command_quietly(command):
    process = subprocess.Popen(
        [sys.executable, "-m", "deployments.cli", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    with process.stderr as words:
        assert words.read() == b""
    assert process.wait() == 128 + 13


def test_the_last_words_of_a_program_are_told():
    assert last_words(io.BytesIO(b"Traceback\nOSError: no space left\n\n")) == (
        ": OSError: no space left"
    )
    assert last_words(io.BytesIO()) == ""
